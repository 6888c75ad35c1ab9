"""What a test may leave behind in its process: nothing that it did not find there.

Counted are what the core holds (stores, histories, operations, leases, mapped bytes, goroutines), open stores, threads
of Python, descriptors, and files in the working directory and of the scratch tier. A goroutine or a thread ends a
moment after the call that ends its work, so that what is left is looked at until it is gone or has stayed for
`PATIENCE`.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import velocpy
from velocpy import _core

#: Seconds until what is still there counts as left behind. Only a test that leaks takes so long.
PATIENCE = 20.0


def held() -> Counter[str]:
    """What the process has now, by name."""
    found: Counter[str] = Counter()
    if _core.loaded():
        found.update({f"{name} of the core": count for name, count in json.loads(_core.core_in_use()).items()})
    found.update(f"open store in {store.path or 'memory'}" for store in velocpy.stores())
    found.update(f"thread {thread.name}" for thread in threading.enumerate())
    found.update(f"descriptor of {target}" for target in _descriptors())
    found.update(f"file {name}" for name in _files())
    return found


def left(before: Counter[str]) -> Counter[str]:
    """What is there beside what was there before, once it has had the time to go."""
    more = held() - before
    if not more:
        return more
    end = time.monotonic() + PATIENCE
    pause = 0.001
    while more and time.monotonic() < end:
        gc.collect()
        more = held() - before
        time.sleep(pause if more else 0)
        pause = min(2 * pause, 0.5)
    return more


#: Of other libraries, which keep them for later: fonts, the memory of multiprocessing, sockets of notebooks.
OTHERS = (sys.prefix + "/", "/dev/shm/pym-", "socket:", "anon_inode:[eventpoll]")
#: Of NVIDIA's driver, which opens them when a context is made and keeps them.
DRIVERS = ("/dev/nvidia", "/dev/shm/cuda", "/proc/", "/memfd:", "anon_inode:", "pipe:")


def _descriptors() -> list[str]:
    targets = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            targets.append(str(descriptor.readlink()))
        except FileNotFoundError:  # that of the listing itself
            continue
    others = OTHERS + (DRIVERS if Path("/dev/nvidiactl").exists() else ())
    return [target for target in targets if not target.startswith(others)]


def _files() -> list[str]:
    here = [path.name for path in Path.cwd().iterdir() if not path.name.startswith((".", "_"))]
    scratch = f".velocpy-scratch-*-{os.getpid()}-*"
    return here + [path.name for path in Path(tempfile.gettempdir()).glob(scratch)]
