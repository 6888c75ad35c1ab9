"""Device memory and its link to the host, beside plain copies by PyTorch."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import velocpy
from velocpy.budget import available_memory

from .report import Report
from .table import compared
from .timing import by_turns

SIZE = 64 << 20
#: Checkpoints of one pass, and how many of them fit into the device tier.
COUNT, HELD = 32, 8
PINNED_WITHIN = 60.0  # seconds


def available() -> bool:
    """Whether PyTorch is installed and finds a GPU; where the machine has no NVIDIA driver, it is not imported."""
    if not Path("/dev/nvidiactl").exists():
        return False
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def run(size: int = SIZE, rounds: int = 5, seconds: float = 20) -> Report:
    """Captures on the first device that PyTorch sees, and transfers to the host and back.

    The host needs 80 checkpoints of pinned memory, or `size` becomes smaller; the device needs 12.
    """
    torch: Any = importlib.import_module("torch")
    size = min(size, available_memory() // 4 // (2 * COUNT + 2 * HELD) >> 12 << 12)
    report = Report("link", {"checkpoint": f"{size >> 10} KiB", "device": torch.cuda.get_device_name()})
    source, other = (torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2))
    below = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    total = COUNT * size
    with _opened(size) as store:
        history = store.history("link")

        def copied(to: Any, of: Any) -> Callable[[], float]:
            return lambda: _seconds(torch, lambda: [to.copy_(of, non_blocking=True) for _ in range(COUNT)])

        def captured() -> float:
            history.clear()
            return _seconds(torch, lambda: [history.checkpoint(key, u=source) for key in range(HELD)])

        def flushed() -> None:
            _fill(history, source)
            history.wait("host")

        def drained() -> None:
            for key in range(COUNT):
                history.restore(key, last=True).release()

        def down() -> float:
            history.clear()
            return _seconds(torch, flushed)

        def up() -> float:
            history.clear()
            flushed()
            before = _read_bytes(store)
            history.hint(range(COUNT), last=True)
            took = _seconds(torch, drained)
            return took * total / (_read_bytes(store) - before)

        ways = {
            "copy on the device": copied(other, source),
            "copy down": copied(below, source),
            "copy up": copied(other, below),
            "velocpy captures": captured,
            "velocpy down": down,
            "velocpy up": up,
        }
        took = by_turns(ways, rounds, seconds=seconds)
        history.clear()
        different = _different(history, source, other)
    report.settings["rounds"] = len(took["velocpy up"])
    on_device = [lap / COUNT * HELD for lap in took["copy on the device"]]
    report.rows += [
        compared("capture on the device", HELD * size, {"device to device": on_device}, took["velocpy captures"]),
        compared("device to host", total, {"copy to pinned memory": took["copy down"]}, took["velocpy down"]),
        compared("host to device", total, {"copy from pinned memory": took["copy up"]}, took["velocpy up"]),
    ]
    report.never("checkpoints that came back different", different)
    return report


@contextmanager
def _opened(size: int) -> Iterator[velocpy.Store]:
    """A store whose host tier is pinned: the first copies of a process are another matter."""
    device, host = HELD * size + (1 << 20), 2 * (COUNT + HELD) * size + (1 << 20)
    with velocpy.open(device=device, host=host, tuning=velocpy.Tuning(flush="eager")) as store:
        deadline = time.monotonic() + PINNED_WITHIN
        while (tier := store.stats()["tiers"]["host"])["pinned_bytes"] < tier["capacity"]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{tier['pinned_bytes']} of {tier['capacity']} bytes of host memory were pinned")
            time.sleep(0.01)
        yield store


def _seconds(torch: Any, work: Callable[[], object]) -> float:
    """Seconds until the work, and everything that it queued on the device, is done."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def _fill(history: velocpy.History, source: Any, *, stamp: bool = False) -> None:
    """Captures a pass of checkpoints; stamped ones differ in every byte."""
    for key in range(COUNT):
        if stamp:
            source.fill_(key)
        history.checkpoint(key, u=source)


def _read_bytes(store: velocpy.Store) -> int:
    """Bytes that came up from the host tier."""
    return int(store.stats()["tiers"]["host"]["read_bytes"])


def _different(history: velocpy.History, source: Any, back: Any) -> int:
    """How many of a pass of checkpoints have other bytes than they were given."""
    _fill(history, source, stamp=True)
    history.wait("host")
    different = 0
    for key in range(COUNT):
        history.restore(key, into={"u": back})
        different += not bool((back == key).all())
    return different
