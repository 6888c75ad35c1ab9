"""Archives in buckets: what names one, and the program by which the core reaches object stores.

The program, ``velocpy-s3``, runs beside this process as long as it lives, once something in a bucket is asked for. It
has the environment of this process, and reads the credentials as other clients of object stores do.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from velocpy import _core, knobs
from velocpy.errors import InvalidArgument, TierUnavailable

__all__ = ["is_place", "reach", "require_place"]

PROGRAM = "velocpy-s3"

#: How archives in buckets are named.
SCHEME = "s3://"

#: Connections to the program, each with one request at a time.
_CONNECTIONS = 16

#: Variables that change what the program reaches, besides those that begin with AWS_.
_OTHERS = ("HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE")


class _Running(NamedTuple):
    process: subprocess.Popen[bytes]
    environment: Mapping[str, str]
    owner: int


_lock = threading.Lock()
_running: list[_Running] = []


def is_place(path: Any) -> bool:
    """Whether a path names an archive in a bucket.

    Raises
    ------
    InvalidArgument
        It is a `pathlib.Path` that was made of such a name, and has lost one of its slashes.

    Examples
    --------
    >>> from velocpy.archive.buckets import is_place
    >>> is_place("s3://bucket/run"), is_place("run")
    (True, False)
    """
    if isinstance(path, os.PathLike) and os.fspath(path)[:4] == "s3:/":
        raise InvalidArgument(f"{path!r} has lost a slash: give the place of an archive in a bucket as a text.")
    return isinstance(path, str) and path.startswith(SCHEME)


def require_place(path: str) -> str:
    """The place without what may follow its prefix.

    Raises
    ------
    InvalidArgument
        It names no bucket, or no prefix.

    Examples
    --------
    >>> from velocpy.archive.buckets import require_place
    >>> require_place("s3://bucket/run/")
    's3://bucket/run'
    """
    bucket, _, prefix = path.removeprefix(SCHEME).partition("/")
    if not bucket or not prefix.strip("/") or "//" in prefix.strip("/") or "\0" in path:
        raise InvalidArgument(
            f"the archive is {path!r}; give s3://bucket/prefix, with a prefix of its own. Nothing was changed."
        )
    return f"{SCHEME}{bucket}/{prefix.strip('/')}"


def reach() -> None:
    """Lets the core reach object stores, with the credentials and the endpoint that the environment has now.

    Raises
    ------
    TierUnavailable
        This build has no program for object stores, or it cannot be started.
    """
    environment = _environment()
    with _lock:
        now = _running[-1] if _running else None
        usable = now is not None and now.owner == os.getpid() and now.process.poll() is None
        if usable and now is not None and now.environment == environment:
            return
        _running.append(_Running(_start(), environment, os.getpid()))


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("AWS_") or name in _OTHERS}


def _start() -> subprocess.Popen[bytes]:
    """Starts the program, and gives the core the other ends of its connections."""
    program = Path(__file__).parent.with_name(PROGRAM)
    pairs = [socket.socketpair() for _ in range(_CONNECTIONS)]
    try:
        theirs = [each.fileno() for _, each in pairs]
        process = subprocess.Popen(
            [str(program), *map(str, theirs)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=theirs, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        for ours, _ in pairs:
            ours.close()
        raise TierUnavailable(
            f"archives in buckets need the program {str(program)!r}, which cannot be started: {error.strerror}. "
            "Nothing was opened. Install a wheel, or build without VELOCPY_S3=0.", tier="archive",
        ) from error  # fmt: skip
    finally:
        for _, each in pairs:
            each.close()
    if not _running:
        atexit.register(_end)
    knobs.load_core()
    _core.inspect(json.dumps({"op": "connections", "descriptors": [ours.detach() for ours, _ in pairs]}), None)
    return process


def _end() -> None:
    """Ends the programs that this process has started."""
    for each in _running:
        if each.owner == os.getpid():
            each.process.kill()
            each.process.wait()
