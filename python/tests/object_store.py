"""A real object store for tests, versitygw on a loopback port, and a proxy before it that makes requests fail."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import http.client
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "tools" / "versitygw"
KEY, SECRET = "throwaway", "throwaway-secret"
BUCKET = "bucket"


def built() -> Path:
    """The server's program. It is built once for each version, which takes a minute or more; a failure is an error."""
    digest = hashlib.sha256(b"".join((MODULE / name).read_bytes() for name in ("go.mod", "go.sum"))).hexdigest()[:16]
    folder = ROOT / "build" / "versitygw"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"versitygw-{digest}"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several test processes one builds it
        if not program.exists():
            partial = program.with_suffix(".partial")
            command = [
                "go",
                "build",
                "-C",
                str(MODULE),
                "-o",
                str(partial),
                "github.com/versity/versitygw/cmd/versitygw",
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (
                f"versitygw, which the tests of archives in buckets need, cannot be built: {done.stderr}"
            )
            partial.replace(program)
    return program


@dataclass
class Server:
    """A server with one bucket, whose objects are files of a folder."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def files(self, prefix: str) -> list[Path]:
        """The objects under a prefix."""
        return sorted(path for path in (self.folder / BUCKET / prefix).rglob("*") if path.is_file())


def environment(url: str) -> dict[str, str]:
    """What reaches the server at an address, whatever the machine has set."""
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL_S3": url,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Runs a server until the end of the block."""
    program = built()
    (folder / BUCKET).mkdir(parents=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [program, "--quiet", "--port", f"127.0.0.1:{port}", "posix", str(folder)],
        env={**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _await(process, port)
        yield Server(folder, port)
    finally:
        process.kill()
        process.wait()


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(600):
        assert process.poll() is None, f"versitygw has ended with {process.returncode}"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError("versitygw does not answer")


@dataclass(frozen=True)
class Request:
    """A request that has come to the proxy."""

    method: str
    path: str
    #: How many have come before.
    number: int

    def kind(self) -> str:
        """What it asks for: "PUT commits", "GET packs", "POST packs?uploads", …"""
        where, _, query = self.path.partition("?")
        place = re.search("/(commits|catalogs|packs|velocpy.store)", where)
        asks = re.search("(list-type|uploads|partNumber|uploadId|location)", query)
        return f"{self.method} {place[1] if place else ''}{'?' + asks[1] if asks else ''}"


@dataclass
class Fault:
    """What the proxy does to a request."""

    #: Answer with this status at once, without a server.
    status: int | None = None
    #: Send only so many bytes of the reply's body, and cut the connection.
    cut: int | None = None
    #: Let the server carry it out, and cut the connection instead of a reply.
    lose_reply: bool = False
    #: Change the first byte of what is sent, or of what comes back.
    alter_sent: bool = False
    alter_received: bool = False
    #: Headers of the reply that are replaced.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Called before anything is done, and when the server has carried it out.
    before: Callable[[], None] | None = None
    after: Callable[[], None] | None = None


@dataclass
class Proxy:
    """Requests go through it. ``fault`` says what happens to each; None: nothing."""

    url: str
    fault: Callable[[Request], Fault | None] | None = None
    seen: list[Request] = field(default_factory=list)
    statuses: list[tuple[Request, int]] = field(default_factory=list)

    def fail_once(self, kind: str, fault: Fault) -> None:
        """The first request of a kind from now on meets a fault."""
        left = [fault]

        def choose(request: Request) -> Fault | None:
            return left.pop() if left and request.kind() == kind else None

        self.fault = choose


@contextlib.contextmanager
def proxied(server: Server) -> Iterator[Proxy]:
    """Runs a proxy before a server until the end of the block."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                request = Request(self.command, self.path, len(proxy.seen))
                proxy.seen.append(request)
                fault = (proxy.fault(request) if proxy.fault else None) or Fault()
            if fault.before:
                fault.before()
            if fault.status:
                self._answer(request, fault.status, {}, b"", fault)
                return
            if fault.alter_sent and body:
                at = body.find(b"\r\n") + 2 if b"chunk-signature" in body[:200] else 0
                body = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
            upstream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            try:
                upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    upstream.putheader(name, value)
                upstream.endheaders(body)
                reply = upstream.getresponse()
                content = reply.read()
            finally:
                upstream.close()
            if fault.after:
                fault.after()
            if fault.lose_reply:
                self.close_connection = True
                return
            if fault.alter_received and content:
                content = bytes([content[0] ^ 1]) + content[1:]
            left_out = {"transfer-encoding", *map(str.lower, fault.headers)}
            headers = {name: value for name, value in reply.getheaders() if name.lower() not in left_out}
            self._answer(request, reply.status, headers | dict(fault.headers), content, fault)

        def _answer(self, request: Request, status: int, headers: Mapping[str, str], body: bytes, fault: Fault) -> None:
            with lock:
                proxy.statuses.append((request, status))
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() != "content-length" or self.command == "HEAD":
                    self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if fault.cut is not None:
                body = body[: fault.cut]
                self.close_connection = True
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_one

        def log_message(self, *_: object) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: object) -> None:
            """A client that was killed has cut the connection."""

    listener = Listener(("127.0.0.1", 0), Handler)
    proxy = Proxy(f"http://127.0.0.1:{listener.server_port}")
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
