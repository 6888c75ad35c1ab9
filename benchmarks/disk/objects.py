"""A real object store, versitygw on a loopback port, for benchmarks and for the tests of archives in buckets."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ROOT

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
            if done.returncode:
                raise RuntimeError(f"versitygw, the server of object stores, cannot be built: {done.stderr}")
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
        if process.poll() is not None:
            raise RuntimeError(f"versitygw has ended with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError("versitygw does not answer")
