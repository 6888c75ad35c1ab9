"""Who plays, by name."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from velocpy.choices import Policy
from velocpy.errors import TierUnavailable

from .card import Card, HostCard
from .engine import Engine
from .keep import Keep
from .managed import Managed
from .ours import Ours
from .ring import Ring
from .synchronous import Synchronous
from .workload import Workload

# The first run of these in a process is so much slower that it is listed beside the second.
LISTED_TWICE = ("unified memory",)


class LeftOut(Exception):
    """A contender that cannot play here, and why."""


def has_gpu() -> bool:
    """Whether torch is there and finds a GPU; without a driver's device file torch is not even imported."""
    if not Path("/dev/nvidiactl").exists():
        return False
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


@contextlib.contextmanager
def fitting(name: str) -> Iterator[None]:
    """Leaves a contender out whose memory does not fit on the card."""
    try:
        yield
    except RuntimeError as reason:
        # torch is there if it has raised this.
        if not isinstance(reason, getattr(sys.modules.get("torch"), "OutOfMemoryError", ())):
            raise
        raise LeftOut(f"{name}: does not fit: {str(reason).splitlines()[0]}") from reason


def card_for(largest: int, index: int = 0) -> Any:
    """The GPU of this number (of those there are), or host memory where there is none."""
    if not has_gpu():
        return HostCard(largest)
    import torch

    from .cuda import CudaCard

    return CudaCard(index % torch.cuda.device_count(), largest)


def engine_for(name: str, card: Any, workload: Workload, folder: Path) -> Engine:
    """Makes the contender of this name; `LeftOut` where it cannot play."""
    try:
        return _made(name, card, workload, folder)
    except (ImportError, MemoryError, TierUnavailable) as reason:
        raise LeftOut(f"{name}: {reason}") from reason


def _made(name: str, card: Card, workload: Workload, folder: Path) -> Engine:
    kind, _, variant = name.partition(" ")
    if kind == "keep":
        return Keep(card, workload)
    if kind == "synchronous":
        return Synchronous(card, workload, folder)
    if kind == "ring":
        return Ring(
            card,
            workload,
            folder,
            spill="eager" if variant == "eager" else "lazy",
            direct=variant != "page cache",
            name=name,
        )
    if name == "unified memory":
        return Managed(card, workload, folder)  # type: ignore[arg-type]  # both cards have managed memory
    if name == "adios2":
        from .adios import Adios

        return Adios(card, workload, folder)
    if kind == "velocpy":
        on_device = not isinstance(card, HostCard)
        into = card.device(workload.largest) if variant == "into" else None
        policies: dict[str, Policy] = {"lru": "lru", "fifo": "fifo"}
        policy = policies.get(variant, "score")
        checksum = variant != "unchecked"
        return Ours(workload, folder, on_device=on_device, policy=policy, into=into, name=name, checksum=checksum)
    raise ValueError(f"nobody is called {name!r}")
