"""What a store did between two moments: rates, and which share of the time was spent waiting, by reason."""

from __future__ import annotations

from typing import NamedTuple, cast

from velocpy.errors import TIERS
from velocpy.figures import TierStats
from velocpy.records import CAUSED, WAITS

from .sample import Sample


class TierChange(NamedTuple):
    """A tier now, and what moved there, in bytes per second; None before there are two samples."""

    name: str
    now: TierStats
    written: float | None
    read: float | None
    evicted: float | None


class Wait(NamedTuple):
    """Waits for one reason, of all threads or streams together."""

    #: The name in `velocpy.figures.Waits`.
    name: str
    #: In words: "for room".
    reason: str
    #: Seconds waited per second; more than 1 where several threads wait. None before there are two samples.
    share: float | None
    #: Seconds since the store was opened.
    seconds: float
    #: What was waited for most since then, where that is known: ``flush``, ``load``, ``reader``, ``full`` or ``other``.
    cause: str | None


class Change(NamedTuple):
    """What a live view shows of a store."""

    now: Sample
    #: Seconds between the samples; None: there is one alone.
    seconds: float | None
    tiers: tuple[TierChange, ...]
    #: Bytes per second that were captured and restored; None before there are two samples.
    captured: float | None
    restored: float | None
    #: Restores since the former sample, and those of them that found their checkpoint in the fastest tier.
    restores: int | None
    hits: int | None
    #: All reasons for which anything has ever waited.
    waits: tuple[Wait, ...]


def change(before: Sample | None, now: Sample) -> Change:
    """Compares two samples of a store. Without a former one, or when its counters began anew, there are no rates."""
    if before is not None and not _follows(before, now):
        before = None
    seconds = None if before is None else now.at - before.at

    def rate(former: float, later: float) -> float | None:
        return None if seconds is None else (later - former) / seconds

    tiers = []
    for name in TIERS:
        tier = now.stats["tiers"].get(name)
        if tier is None:
            continue
        old = tier if before is None else before.stats["tiers"].get(name, tier)
        tiers.append(
            TierChange(
                name,
                tier,
                rate(old["written_bytes"], tier["written_bytes"]),
                rate(old["read_bytes"], tier["read_bytes"]),
                rate(old["evicted_bytes"], tier["evicted_bytes"]),
            )
        )
    first = before or now
    moved, was = now.stats["bytes"], first.stats["bytes"]
    restores, were = now.stats["restores"], first.stats["restores"]
    return Change(
        now,
        seconds,
        tuple(tiers),
        rate(was["captured"], moved["captured"]),
        rate(was["restored"], moved["restored"]),
        None if before is None else restores["count"] - were["count"],
        None if before is None else restores["hits"] - were["hits"],
        tuple(_waits(first, now, seconds)),
    )


def _follows(before: Sample, now: Sample) -> bool:
    """Whether the counters of a sample go on from those of another one: `Store.refresh` lets them begin anew."""
    old, new = before.stats, now.stats
    return (
        now.at > before.at
        and new["captures"] >= old["captures"]
        and new["restores"]["count"] >= old["restores"]["count"]
        and new["bytes"]["restored"] >= old["bytes"]["restored"]
    )


def _waits(first: Sample, now: Sample, seconds: float | None) -> list[Wait]:
    waited = cast("dict[str, int]", now.stats["waits_ns"])
    before = cast("dict[str, int]", first.stats["waits_ns"])
    found = []
    for name, reason in WAITS:
        if waited[name]:
            share = None if seconds is None else (waited[name] - before[name]) / 1e9 / seconds
            found.append(Wait(name, reason, share, waited[name] / 1e9, _cause(now, name)))
    return found


def _cause(now: Sample, name: str) -> str | None:
    """What was waited for most."""
    if name not in CAUSED:
        return None
    causes = cast("dict[str, dict[str, int]]", now.stats["waits_by_cause_ns"])[name]
    return max(causes, key=causes.__getitem__) if any(causes.values()) else None
