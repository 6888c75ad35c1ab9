"""Whether a store lies there, and who writes it."""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from pathlib import Path

from .finding import Finding, absent, ok, warning
from .place import Place

IDENTITY, LOCK = "velocpy.store", "lock"

# struct flock: type, whence, start, length, process.
_LOCK = "hhqqi4x"


def look(place: Place) -> Finding:
    """Looks for a store's identity, and asks the kernel who has its lock. Neither is changed."""
    try:
        status = (place.path / IDENTITY).lstat()
    except FileNotFoundError:
        return absent("no store lies here", "velocpy.open(path) makes one.")
    if not stat.S_ISREG(status.st_mode):
        return warning(f"{IDENTITY} is no ordinary file", "Move it away, or choose another directory.")
    try:
        process = holder(place.path / LOCK)
    except FileNotFoundError:
        return ok("a store lies here, and nobody writes it")
    except OSError as error:
        remedy = "Look with the rights of the store's owner."
        return warning(f"a store lies here; its lock cannot be asked: {os.strerror(error.errno or 0)}", remedy)
    if process is None:
        return ok("a store lies here, and nobody writes it")
    name = _name(process)
    writer = f"process {process} ({name})" if name else "a process of another machine or container"
    return ok(f"a store lies here; {writer} has it open for writing", process=process, name=name)


def holder(lock: Path) -> int | None:
    """The process that has a lock on a file; 0 where it is not of this machine.

    To be called where nobody has that lock: whoever closes the file gives up the process's own.
    """
    fd = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        wanted = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = struct.unpack(_LOCK, fcntl.fcntl(fd, fcntl.F_GETLK, wanted))
    finally:
        os.close(fd)
    return None if kind == fcntl.F_UNLCK else max(process, 0)


def _name(process: int) -> str | None:
    """What it is called, without its arguments: these may hold what is nobody's business."""
    try:
        return Path(f"/proc/{process}/comm").read_text(encoding="utf-8", errors="replace").strip() if process else None
    except OSError:
        return None
