"""The results in thirty lines: what is claimed, beside whom or below which ceiling, and whether it holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from .timing import median


class Claim(NamedTuple):
    """A claim that bars with names of this form belong to."""

    bars: str
    words: str
    beside: str


CLAIMS = (
    Claim(
        r"capture: .*of the best memcpy",
        "captures into host memory, by rate",
        "the best memcpy of the run, by any threads",
    ),
    Claim(r"device: .*device time of a capture by", "captures on a device, by device time", "a plain copy"),
    Claim(
        r"device: host time of checkpoint|device: checkpoint\(\) in that loop",
        "checkpoint() of device memory, host µs",
        "fixed; in a loop, over copy()'s p99",
    ),
    Claim(r"device: 500 arrays: device", "checkpoint() of 500 arrays, by device time", "one copy of as many bytes"),
    Claim(r"device: 500 arrays: host", "checkpoint() of 500 arrays, host µs", "fixed"),
    Claim(r"device: lease in a loop", "lease of device memory in a loop that waits, by host time", "the ring's get"),
    Claim(r"device: lease of", "lease of device memory, host µs", "fixed"),
    Claim(r"device: transfers", "transfers between device and host, by rate", "pinned copies: the link's ceiling"),
    Claim(r"device: training", "training beside flushes, by time", "plain copies of the same bytes"),
    Claim(
        r"coldstart-bars: .*direct pinning", "cold start, blocked time of the other by ours", "pinning everything first"
    ),
    Claim(r"coldstart-bars: .*(open|first)", "cold start: open, first checkpoint, ms", "fixed"),
    Claim(r"commits: .*a second", "durable commits a second, by rate", "SQLite in WAL mode; raw writes with fdatasync"),
    Claim(
        r"durable: .*ceiling", "durable checkpoints, by rate", "raw writes with as many per sync: the disk's ceiling"
    ),
    Claim(r"disk: ", "scratch disk, sustained, by rate", "O_DIRECT beside it in the same run"),
    Claim(r"opening: .*(s among|s to open)", "opening and listing 10^6 checkpoints, s", "fixed"),
    Claim(
        r".*(did not come back|that differ|missing)",
        "bytes that differ, checkpoints that are missing: everybody's, counted",
        "0",
    ),
    Claim(r"decision: ", "eviction decision among 4096 fragments, µs", "fixed"),
    Claim(r"lease: ", "lease of host memory, µs", "fixed"),
    Claim(r"small: ", "checkpoint() of ten 1-KiB regions, µs", "fixed"),
    Claim(r"scale: .*by cost", "cost of a call among 10^6 checkpoints, by time", "the same among 1000"),
    Claim(r"scale: bytes", "memory of a record, bytes", "fixed"),
    Claim(r"shot-disk.*bound", "shots with a disk, by blocked time", "the lower bound: links at measured rates"),
    Claim(r"shot-disk.*ring", "shots with a disk, by blocked time", "a ring with O_DIRECT, the better of two"),
    Claim(r"shot-link.*ring", "shots over the link, by blocked time", "the ring"),
    Claim(r"shot-link.*bound", "shots over the link, blocked s", "1.15 × the lower bound + 1 % of the computation"),
    Claim(
        r"shot-paper.*Unified", "the paper's setting, blocked time of the other by ours", "Unified Memory with hints"
    ),
    Claim(
        r"storages: .*storage by",
        "adjoint storage, time of the other by ours",
        "checkpoint_schedules: NumPy, bytes, disk",
    ),
    Claim(r"sweep: .*cache", "sweep: restores that find their checkpoint in memory", "1: all"),
    Claim(r"sweep: .*(blocked|bound)", "sweep: blocked s, and the bound's own check", "the lower bound"),
    Claim(r"verification: ", "cost of verification, %", "the same without"),
)


def glance(results: Iterable[dict[str, Any]]) -> list[str]:
    """The table, what is missed first. Of a bar that was measured several times the median counts.

    Raises
    ------
    ValueError
        A bar belongs to no claim.
    """
    found: dict[Claim, dict[str, list[dict[str, Any]]]] = {}
    for result in results:
        for bar in result["bars"]:
            name = f"{result['benchmark']}: {bar['what']}"
            found.setdefault(_claim_of(name), {}).setdefault(name, []).append(bar)
    rows = sorted((_row(claim, bars) for claim, bars in found.items()), key=lambda row: (row[0], row[1]))
    head = ["| claim | beside, or below | least … most | bar | holds |", "| --- | --- | ---: | ---: | --- |"]
    return head + [text for _, _, text in rows]


def _claim_of(name: str) -> Claim:
    for claim in CLAIMS:
        if re.match(claim.bars, name):
            return claim
    raise ValueError(f"the bar {name!r} belongs to no claim of {__name__}")


def _row(claim: Claim, bars: dict[str, list[dict[str, Any]]]) -> tuple[bool, int, str]:
    """Whether all bars hold, the claim's place, and the line."""
    values = {name: median([bar["value"] for bar in runs]) for name, runs in bars.items()}
    held = sum(_holds(values[name], runs[0]) for name, runs in bars.items())
    bounds = sorted({_bound(runs[0]) for runs in bars.values()})
    shown = ", ".join(bounds[:3]) + (", …" if len(bounds) > 3 else "")
    least, most = min(values.values()), max(values.values())
    spread = f"{least:.3g}" if len(values) == 1 else f"{least:.3g} … {most:.3g}"
    verdict = "holds" if held == len(bars) == 1 else f"{held} of {len(bars)}" if held else "**misses**"
    if 0 < held < len(bars):
        verdict = f"**{verdict}**"
    return (
        held == len(bars),
        CLAIMS.index(claim),
        f"| {claim.words} | {claim.beside} | {spread} | {shown} | {verdict} |",
    )


def _holds(value: float, bar: dict[str, Any]) -> bool:
    return bool(value >= bar["bound"] if bar["at_least"] else value <= bar["bound"])


def _bound(bar: dict[str, Any]) -> str:
    return f"{'≥' if bar['at_least'] else '≤'} {bar['bound']:.3g}"
