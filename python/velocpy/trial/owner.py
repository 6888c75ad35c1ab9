"""Whether a store lies there, and which process writes it."""

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
    """Looks for a store's identity, and asks the kernel which process has its lock. Neither is changed."""
    try:
        status = (place.path / IDENTITY).lstat()
    except FileNotFoundError:
        return absent(
            "no store lies here",
            "Nothing need be done: a program that opens one here makes it, and so does `velocpy import`.",
        )
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
    """The process that has a lock on a file; 0 where it is not known, or not of this machine.

    Not to be called in a process that has taken the lock with F_SETLK: closing the file gives that one up.
    """
    fd = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        wanted = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = struct.unpack(_LOCK, fcntl.fcntl(fd, fcntl.F_GETLK, wanted))
    finally:
        os.close(fd)
    if kind == fcntl.F_UNLCK:
        return None
    # A lock of an open file description has no process. Its holder has locked the directory with flock, which has one.
    return process if process > 0 else _flock_holder(lock.parent)


def _flock_holder(directory: Path) -> int:
    """The process that has locked a directory with flock; 0 where the kernel names none."""
    status = directory.stat()
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    for line in lines:
        fields = line.split()  # number, kind, strictness, mode, process, file, range
        if len(fields) >= 6 and fields[1] == "FLOCK" and fields[5] == file:
            return max(int(fields[4]), 0)
    return 0


def _name(process: int) -> str | None:
    """What it is called, without its arguments: these may hold secrets."""
    try:
        return Path(f"/proc/{process}/comm").read_text(encoding="utf-8", errors="replace").strip() if process else None
    except OSError:
        return None
