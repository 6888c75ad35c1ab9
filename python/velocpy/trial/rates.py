"""How fast bytes go to the disk and come back."""

from __future__ import annotations

import errno
import mmap
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from velocpy.quantity import rated, sized

from . import system
from .files import opened
from .filesystem import MEMORY
from .finding import Finding, absent, failed, ok, unsupported, warning
from .place import Place

#: Bytes of one transfer, transfers at once, and seconds in each direction.
PIECE, LANES, LONG = 2 << 20, 4, 0.5

#: Bytes at most: past the page cache to a disk, and where they lie in memory first.
MOST, MOST_IN_MEMORY = 512 << 20, 64 << 20

#: Bytes per second below which captures soon wait for the disk.
SLOW = 100e6


def look(place: Place) -> Finding:
    """Writes and reads for half a second each, with several transfers at once as a store does."""
    status = os.statvfs(place.path)
    name, direct = _direct(place.room / "rates")
    on_disk = direct and system.magic(place.path) not in MEMORY
    most = min(MOST if on_disk else MOST_IN_MEMORY, status.f_bavail * status.f_frsize // 8)
    pieces = most // PIECE
    if pieces < LANES:
        return absent(f"too little room to measure rates: {sized(most * 8)} free", "Free room there and ask again.")
    with opened(name, os.O_RDWR | direct) as fd, mmap.mmap(-1, LANES * PIECE) as memory:
        try:
            system.fallocate(fd, 0, 0, pieces * PIECE)
        except OSError as error:
            if not unsupported(error):
                raise
        return _measure(fd, memory, pieces, direct=bool(direct))


def _direct(name: Path) -> tuple[Path, int]:
    """Makes the file; O_DIRECT where it has that."""
    for flags in (os.O_DIRECT, 0):
        try:
            with opened(name, os.O_RDWR | os.O_CREAT | flags):
                return name, flags
        except OSError as error:
            if not flags or not unsupported(error):
                raise
    raise AssertionError


def _measure(fd: int, memory: mmap.mmap, pieces: int, *, direct: bool) -> Finding:
    source = os.urandom(PIECE)
    for lane in range(LANES):
        memory[lane * PIECE : (lane + 1) * PIECE] = source
    began = time.perf_counter()
    written = _round(lambda buffer, at: os.pwritev(fd, [buffer], at), memory, pieces)
    os.fdatasync(fd)
    write = sum(written) * PIECE / (time.perf_counter() - began)
    if not direct:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    memory[:] = bytes(LANES * PIECE)
    began = time.perf_counter()
    read = _round(lambda buffer, at: os.preadv(fd, [buffer], at), memory, min(written) * LANES)
    rate = sum(read) * PIECE / (time.perf_counter() - began)
    if any(memory[lane * PIECE : (lane + 1) * PIECE] != source for lane in range(LANES)):
        return failed("what was written came back changed", "Test the machine's memory and disk.")
    how = "past the page cache" if direct else "through the page cache"
    text = f"written at {rated(write)}, read at {rated(rate)}, {how}"
    facts = {
        "write_bytes_per_second": write,
        "read_bytes_per_second": rate,
        "bytes": sum(written) * PIECE,
        "direct": direct,
    }
    if min(write, rate) < SLOW:
        return warning(text, "A store that outruns its memory waits for this disk: a local one may be faster.", **facts)
    return ok(text, **facts)


def _round(move: Callable[[memoryview, int], int], memory: mmap.mmap, pieces: int) -> list[int]:
    """Lets each lane move every so-many-th piece until time or pieces end; how many each has moved: one at least."""
    end = time.monotonic() + LONG

    def lane(number: int) -> int:
        count = 0
        with memoryview(memory) as whole, whole[number * PIECE : (number + 1) * PIECE] as buffer:
            for piece in range(number, pieces, LANES):
                if move(buffer, piece * PIECE) != PIECE:
                    raise OSError(errno.ENOSPC, "a transfer was cut short")  # a full disk does that
                count += 1
                if time.monotonic() > end:
                    break
        return count

    with ThreadPoolExecutor(LANES) as lanes:
        return list(lanes.map(lane, range(LANES)))
