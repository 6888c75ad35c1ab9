"""A real object store for tests, that of the benchmarks, and a proxy before it that makes requests fail."""

from __future__ import annotations

import contextlib
import http.client
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from benchmarks.disk.objects import BUCKET, SECRET, Server, environment, serving

__all__ = ["BUCKET", "SECRET", "Fault", "Proxy", "Request", "Server", "environment", "proxied", "serving"]


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
