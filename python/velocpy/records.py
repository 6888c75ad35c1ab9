"""DEBUG records of the logger "velocpy": what stores do when all is well.

Records come where a store is opened, refreshed, resized, waited for and closed, and where a plan or a rule of retention
changes; none comes from `History.checkpoint`, a restore or a drop. Without DEBUG each place costs one look at the
level. A store sums up what moved since its last record, as eviction, flush and prefetch happen in the background. Texts
are made at once, so that a handler that writes later tells how it was.

Examples
--------
>>> import logging, sys, velocpy
>>> log = logging.getLogger("velocpy")
>>> handler = logging.StreamHandler(sys.stdout)
>>> log.addHandler(handler)
>>> log.setLevel(logging.DEBUG)
>>> with velocpy.open(host="16MiB") as store:
...     store.history("run").hint([2, 1])
opened <Store host 16.0 MiB: 0 histories> in ...: 0 checkpoints are there, in 0 histories
history 'run': hints from a list
<Store host 16.0 MiB: 1 histories>: nothing moved
closed <Store host 16.0 MiB: closed>
>>> log.setLevel(logging.NOTSET)
>>> log.removeHandler(handler)
"""

from __future__ import annotations

import json
import logging
from typing import Any, cast

from .errors import TIERS, VelocError
from .figures import Causes, Stats
from .interfaces import StoreState
from .plan import Plan
from .quantity import sized, timed

log = logging.getLogger("velocpy")

#: What callers wait for, by the names in `figures.Waits`.
WAITS = (
    ("capture", "for room"),
    ("restore", "for bytes"),
    ("durable", "for durability"),
    ("capture_on_device", "for room on devices"),
    ("restore_on_device", "for bytes on devices"),
)

#: Those that are divided by what was waited for.
CAUSED = ("capture", "capture_on_device", "restore_on_device")


def wanted() -> bool:
    """Whether DEBUG records go anywhere. It takes no lock, but for the first look after a change of levels."""
    return log.isEnabledFor(logging.DEBUG)


def opened(store: StoreState, how: str, seconds: float) -> None:
    """A store was opened, or refreshed."""
    histories = json.loads(store._core.stats())["histories"]
    count = sum(history["checkpoints"] for history in histories.values())
    there = f"{count} checkpoints are there, in {len(histories)} histories"
    log.debug("%s %s in %s: %s", how, repr(store), timed(seconds), there)


def moved(store: StoreState) -> None:
    """Sums up what moved since the last record of the store."""
    try:
        stats: Stats = json.loads(store._core.stats())
    except VelocError:  # the call that is being recorded raises its own error
        return
    now = _counters(stats)
    before, store._recorded = store._recorded, now
    words = _summary({name: number - before.get(name, 0) for name, number in now.items()})
    log.debug("%s: %s", repr(store), words or "nothing moved")


def planned(history: str, plan: Any) -> None:
    """Hints were given."""
    words = repr(plan) if isinstance(plan, Plan) else f"a {type(plan).__name__}"
    log.debug("history %r: hints from %s", history, words)


def _counters(stats: Stats) -> dict[str, int]:
    now = {
        "captures": stats["captures"],
        "captured": stats["bytes"]["captured"],
        "restores": stats["restores"]["count"],
        "hits": stats["restores"]["hits"],
    }
    for name, tier in stats["tiers"].items():
        now |= {
            f"{name} evicted": tier["evicted_bytes"],
            f"{name} written": tier["written_bytes"],
            f"{name} read": tier["read_bytes"],
        }
    for name in CAUSED:
        causes: Causes = stats["waits_by_cause_ns"][name]  # type: ignore[literal-required]
        now |= {f"{name} {cause}": nanoseconds for cause, nanoseconds in cast("dict[str, int]", causes).items()}
    return now | {name: stats["waits_ns"][name] for name, _ in WAITS}  # type: ignore[literal-required]


def _summary(new: dict[str, int]) -> str:
    words = []
    if new["captures"]:
        words.append(f"{new['captures']} captures of {sized(new['captured'])}")
    if new["restores"]:
        words.append(f"{new['restores']} restores, {new['hits']} of them found in the fastest tier")
    for tier in TIERS:
        for what in ("evicted", "written", "read"):
            nbytes = new.get(f"{tier} {what}", 0)
            if nbytes:
                words.append(f"{sized(nbytes)} {what} in {tier}")
    words += [f"waited {timed(new[name] / 1e9)} {reason}{_causes(new, name)}" for name, reason in WAITS if new[name]]
    return "; ".join(words)


def _causes(new: dict[str, int], name: str) -> str:
    """What a wait was for, in brackets."""
    parts = ((cause, new.get(f"{name} {cause}", 0)) for cause in ("flush", "load", "reader", "full", "other"))
    said = [f"{cause} {timed(nanoseconds / 1e9)}" for cause, nanoseconds in parts if nanoseconds]
    return f" ({', '.join(said)})" if said else ""
