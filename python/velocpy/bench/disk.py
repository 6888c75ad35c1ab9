"""The disk tier and durable checkpoints beside direct I/O on the same disk."""

from __future__ import annotations

import errno
import shutil
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

import velocpy

from .rawdisk import RawDisk
from .report import Report
from .stamped import Stamped
from .table import compared
from .timing import Contender, by_turns

SIZE = 16 << 20
MOST = 2 << 30
#: Written first, to tell how much this disk moves in the time that there is.
PROBE = 128 << 20
#: A pass, which is one write or one read of all bytes, shall take about so long.
PASS_SECONDS = 1.5
DEPTHS = (4, 16)


def run(folder: Path, total: int | None = None, size: int = SIZE, rounds: int = 5, seconds: float = 40) -> Report:
    """A history of `total` bytes through a small host tier to disk and back; None: as much as the disk's rate allows.

    `size`, the bytes of a checkpoint, is a multiple of 4 MiB, the block of direct I/O. `total` is rounded up to
    checkpoints. The folder needs room for some seven times the total.
    """
    count = -(-(_fitting(folder, size) if total is None else total) // size)
    total = count * size
    report = Report("disk", {"checkpoint": f"{size >> 10} KiB", "history": f"{total >> 20} MiB"})
    stamped = Stamped(size)
    with ExitStack() as stack:
        raw = {depth: stack.enter_context(closing(RawDisk(folder, total, depth))) for depth in DEPTHS}
        scratch = _opened(stack, folder, total, size, durable=False)
        durable = _opened(stack, folder, total, size, durable=True)
        writes = {f"O_DIRECT, {depth} at once": disk.write for depth, disk in raw.items()}
        reads = {f"O_DIRECT, {depth} at once": disk.read for depth, disk in raw.items()}
        ways: dict[str, Contender] = {
            **{f"{name}, write": way for name, way in writes.items()},
            "write and sync": lambda: raw[DEPTHS[-1]].write_synced(total),
            "scratch, write": lambda: _written(scratch, stamped, count),
            "durable, write": lambda: _written(durable, stamped, count),
            **{f"{name}, read": way for name, way in reads.items()},
            "scratch, read": lambda: _read(scratch, count),
        }
        for way in list(ways.values()):
            way()  # a later round may begin with a read
        took = by_turns(ways, rounds, seconds=seconds)
        different = _different(scratch, stamped, count) + _different(durable, stamped, count)
        direct = scratch.stats()["tiers"]["disk"]["direct_io"] and all(disk.direct for disk in raw.values())
    report.settings["rounds"] = len(took["scratch, read"])
    report.rows += [
        compared("write", total, {name: took[f"{name}, write"] for name in writes}, took["scratch, write"]),
        compared("read", total, {name: took[f"{name}, read"] for name in reads}, took["scratch, read"]),
        compared("write, durable", total, {"O_DIRECT, fdatasync": took["write and sync"]}, took["durable, write"]),
    ]
    report.never("checkpoints that came back different", different)
    if not direct:
        report.remark("This file system takes no direct I/O: its rates are those of the page cache.")
    return report


def _fitting(folder: Path, size: int) -> int:
    """Bytes that the disk writes in about `PASS_SECONDS`, within a tenth of its free space."""
    with closing(RawDisk(folder, PROBE)) as disk:
        rate = PROBE / disk.write()
    room = shutil.disk_usage(folder).free // 10
    if room < size:
        raise OSError(errno.ENOSPC, "too little room to measure the disk", str(folder))
    return min(max(int(rate * PASS_SECONDS), 8 * size), MOST, room)


def _opened(stack: ExitStack, folder: Path, total: int, size: int, *, durable: bool) -> velocpy.Store:
    """A store in a folder of its own, with room for two versions of every checkpoint."""
    path = stack.enter_context(tempfile.TemporaryDirectory(dir=folder))
    host, disk = 8 * size, 2 * total + (64 << 20)
    tuning = velocpy.Tuning(flush="eager")
    return stack.enter_context(velocpy.open(path, host=host, disk=disk, durable=durable, tuning=tuning))


def _written(store: velocpy.Store, stamped: Stamped, count: int) -> float:
    """Seconds from the first checkpoint until all lie on disk."""
    history = store.history("disk")
    began = time.perf_counter()
    for key in range(count):
        history.checkpoint(key, u=stamped.of(key))
    history.wait("disk")
    return time.perf_counter() - began


def _read(store: velocpy.Store, count: int) -> float:
    """Seconds to restore everything in the order of writing; all but the last few come from disk."""
    history = store.history("disk")
    history.hint(range(count))
    began = time.perf_counter()
    for key in range(count):
        history.restore(key).release()
    return time.perf_counter() - began


def _different(store: velocpy.Store, stamped: Stamped, count: int) -> int:
    """How many checkpoints have other bytes than they were given."""
    history, different = store.history("disk"), 0
    for key in range(count):
        with history.restore(key) as state:
            different += not stamped.same(key, state["u"])
    return different
