"""System calls that Python's library does not have."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)

#: Flags of `fallocate`.
KEEP_SIZE, PUNCH_HOLE = 1, 2

# The number is the same for all architectures since Linux 5.14.
_QUOTACTL_FD = 443
_GET_QUOTA = 0x800007


def _check(result: int, name: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)


def magic(path: Path) -> int:
    """The number by which statfs(2) names the type of a file system."""
    words = (ctypes.c_ulong * 64)()  # larger than the structure on every machine; its first word is the type
    _check(_libc.statfs(os.fsencode(path), ctypes.byref(words)), "statfs")
    return words[0] & 0xFFFFFFFF


def fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    """Asks the file system itself; os.posix_fallocate() writes zeros where it cannot."""
    result = _libc.fallocate(fd, mode, ctypes.c_longlong(offset), ctypes.c_longlong(length))
    _check(result, "fallocate")


class Quota(ctypes.Structure):
    """``struct if_dqblk``: limits in units of 1024 bytes, 0 for none; what is used in bytes."""

    _fields_ = (
        ("hard", ctypes.c_uint64),
        ("soft", ctypes.c_uint64),
        ("used", ctypes.c_uint64),
        ("hard_inodes", ctypes.c_uint64),
        ("soft_inodes", ctypes.c_uint64),
        ("used_inodes", ctypes.c_uint64),
        ("grace", ctypes.c_uint64),
        ("grace_inodes", ctypes.c_uint64),
        ("valid", ctypes.c_uint32),
    )


def quota(fd: int, kind: int, owner: int) -> Quota:
    """The quota of a user (kind 0) or a group (kind 1) on the file system of a descriptor."""
    found = Quota()
    request = ctypes.c_uint(_GET_QUOTA << 8 | kind)
    _check(_libc.syscall(_QUOTACTL_FD, ctypes.c_uint(fd), request, owner, ctypes.byref(found)), "quotactl_fd")
    return found
