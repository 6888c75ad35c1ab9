"""The ceiling of a durable stream: writes past the page cache with fdatasync between them, and nothing around them."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from velocpy.bench.rawdisk import BLOCK, RawDisk

DEPTH = 8  # writes at once


def raw(folder: Path, total: int, piece: int) -> float:
    """Seconds in which this process writes a new file of ``total`` bytes, with an fdatasync after each ``piece``."""
    disk = RawDisk(folder, total)
    try:
        return disk.write_synced(piece)
    finally:
        disk.close()


def has_fio() -> bool:
    """Whether fio is installed."""
    return shutil.which("fio") is not None


def fio(folder: Path, total: int, size: int, group: int) -> float:
    """Seconds in which fio does what `raw` does for checkpoints of ``size`` bytes, ``group`` of them per fdatasync.

    It writes as many blocks at once as a group has, up to eight, and its sync waits for none that is still on its way:
    a little less than what a store has to do. Neither counts the time to preallocate the file.
    """
    block = min(size, BLOCK)
    writes = group * size // block
    depth = min(writes, DEPTH)
    with tempfile.TemporaryDirectory(dir=folder) as own:
        command = ["fio", "--name=stream", f"--directory={own}", "--rw=write", "--direct=1", "--fallocate=native"]
        command += [f"--size={total}", f"--bs={block}", f"--fdatasync={writes}", "--end_fsync=1"]
        command += [f"--ioengine={'psync' if depth == 1 else 'libaio'}", f"--iodepth={depth}", "--output-format=json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"fio: {done.stderr[-2000:] or done.returncode}")
    (job,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    if job["write"]["io_bytes"] != total:
        raise RuntimeError(f"fio wrote {job['write']['io_bytes']} of {total} bytes")
    return float(job["write"]["runtime"]) / 1e3
