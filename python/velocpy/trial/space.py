"""How much room there is: bytes, inodes, quota."""

from __future__ import annotations

import os

from velocpy.quantity import sized

from . import system
from .finding import NOTHING, Finding, absent, failed, ok, warning
from .place import Place

#: Below these a store has hardly room to begin.
FEW_BYTES, FEW_INODES = 1 << 30, 1000

_REMEDY = "Free room there, or choose another directory."


def look(place: Place) -> Finding:
    """Judges the file system's free room."""
    found = os.statvfs(place.path)
    free, total = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    facts = {"free_bytes": free, "total_bytes": total, "free_inodes": found.f_favail, "total_inodes": found.f_files}
    text = f"{sized(free)} of {sized(total)} free"
    if found.f_files:
        text += f", {found.f_favail} inodes free"
    if not total:
        return absent(
            "the file system does not say how much room there is", f"{NOTHING}; it is not known here.", **facts
        )
    if not free or (found.f_files and not found.f_favail):
        return failed(text, _REMEDY, **facts)
    if free < FEW_BYTES or (found.f_files and found.f_favail < FEW_INODES):
        return warning(text, _REMEDY, **facts)
    return ok(text, **facts)


def look_at_quota(place: Place) -> Finding:
    """Asks what the user and the group may still write."""
    fd = os.open(place.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _tightest(fd)
    finally:
        os.close(fd)


def _tightest(fd: int) -> Finding:
    limits = []
    for whose, kind, owner in (("user", 0, os.geteuid()), ("group", 1, os.getegid())):
        try:
            found = system.quota(fd, kind, owner)
        except OSError:
            continue
        hard = found.hard or found.soft
        if hard:
            limits.append((max(hard * 1024 - found.used, 0), hard * 1024, whose))
    if not limits:
        remedy = f"{NOTHING}; what a server limits is for its own command to tell (quota, lfs quota, mmlsquota)."
        return absent("no quota is in force that the kernel tells of", remedy)
    left, most, whose = min(limits)
    text = f"{sized(left)} of the {whose}'s {sized(most)} left"
    facts = {"left_bytes": left, "limit_bytes": most, "whose": whose}
    remedy = "Remove files there, or ask for more."
    if not left:
        return failed(text, remedy, **facts)
    return warning(text, remedy, **facts) if left < FEW_BYTES else ok(text, **facts)
