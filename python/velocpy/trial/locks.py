"""Whether a lock keeps another process out, on which it rests that one alone writes a store."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys

from .files import opened
from .finding import Finding, failed, ok, unsupported
from .place import Place

# The other process: it tells whether it gets the lock. Not a fork of this one.
_OTHER = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        print("kept out")
    else:
        print("let in")
"""

_REMEDY = (
    "See that one process alone writes a store there, or choose another file system; "
    "NFS wants its lock service, Lustre the mount option 'flock'."
)


def look(place: Place) -> Finding:
    """Takes a lock, and lets another process try before and after it is given up."""
    name = place.room / "locked"
    with opened(name, os.O_RDWR | os.O_CREAT) as fd:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if not unsupported(error) and error.errno not in _NO_LOCKS:
                raise
            return failed(f"no locks: {os.strerror(error.errno or 0)}", _REMEDY)
        held = _other(str(name))
        fcntl.lockf(fd, fcntl.LOCK_UN)
        free = _other(str(name))
    if held == "let in":
        return failed("two processes had the same lock", _REMEDY)
    if (held, free) != ("kept out", "let in"):
        return failed(f"another process was {held} of a lock held, and {free} of one given up", _REMEDY)
    return ok("a lock keeps another process out until it is given up (on this machine)")


# EAGAIN and EACCES: another process has the lock, though no other process knows the file.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.EAGAIN, errno.EACCES})


def _other(name: str) -> str:
    command = [sys.executable, "-I", "-S", "-c", _OTHER, name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return done.stdout.strip() or "refused an answer"
