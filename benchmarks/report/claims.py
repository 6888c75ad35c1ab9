"""The claims, their peers and ceilings: whether they hold, and why those that are missed are missed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from velocpy.bench.timing import median

from .reasons import REASONS

#: Of fewer rounds a median says little: such a figure is marked.
ROUNDS = 3


class Claim(NamedTuple):
    """A claim that bars with names of this form belong to; without a peer and a ceiling its bar is a fixed number."""

    bars: str
    words: str
    #: What others do for the same purpose.
    peer: str = "–"
    #: What the hardware does at its best, or what no policy can beat.
    ceiling: str = "–"


class Run(NamedTuple):
    """One measurement of a bar: the bar, whose value is the median of so many rounds."""

    bar: dict[str, Any]
    rounds: int


CLAIMS = (
    Claim(
        r"compare: (?!.*(lacks|faults))",
        "a core's medians by those of the core before, less the noise",
        peer="the core before",
    ),
    Claim(
        r"capture: |device: transfers",
        "captures into host memory, and transfers between device and host, by rate",
        ceiling="the best memcpy of the run, by any threads; pinned copies over the link",
    ),
    Claim(
        r"device: .*device time of a capture by|device: 500 arrays: device",
        "captures on a device, of one and of 500 arrays, by device time",
        ceiling="a plain copy of as many bytes",
    ),
    Claim(
        r"device: (host time of checkpoint|checkpoint\(\) in that loop|500 arrays: host|lease of)",
        "checkpoint() of device memory, of one and of 500 arrays, and a lease of it, host µs",
        peer="copy(), whose p99 is taken off in a loop",
    ),
    Claim(
        r"device: lease in a loop", "lease of device memory in a loop that waits, by host time", peer="the ring's get"
    ),
    Claim(r"device: training", "training beside flushes, by time", peer="plain copies of the same bytes"),
    Claim(
        r"coldstart-bars: .*direct pinning",
        "cold start, blocked time of the other by ours",
        peer="pinning everything first",
    ),
    Claim(r"coldstart-.*beyond keep", "cold start, seconds blocked beyond keeping all on the device", peer="keep"),
    Claim(
        r"coldstart-.*touched and pinned",
        "host memory made ready, GB/s",
        ceiling="touching alone, registering alone",
    ),
    Claim(r"coldstart-.*bound of the touch", "cold start on fresh memory, by blocked time", ceiling="the touch rate's"),
    Claim(r"coldstart-.*(open|first)", "cold start: open, first checkpoint, ms"),
    Claim(
        r"commits: .*a second|durable: .*ceiling|disk: |archive: .*rate",
        "durable commits and checkpoints, a scratch disk, and archives of ranks, by rate",
        peer="of commits: SQLite in WAL mode; of archives: a file for each rank, MPI-IO",
        ceiling="raw writes with as many per fdatasync; O_DIRECT beside it",
    ),
    Claim(
        r"hacc: (.*rate by that of|steps)|bucket: .*rate by that of",
        "ranks into K files, also particles of HACC-IO's kind, and restarts by as many, half and twice as many ranks, "
        "by rate; steps beside a push, by time; ranks into a bucket, restores and pulls from it, by rate",
        peer="ADIOS2's BP5 and MPI-IO's collective writes, into K files; of restarts plain reads; of steps a copy by "
        "each rank beside them; of buckets minio-go alone with the best part size",
    ),
    Claim(
        r"aggregation: ",
        "simulated: archives of 4096 ranks, by rate; a leader's memory, by that of its buffers and threads",
        peer="of rates: a file for each rank",
    ),
    Claim(
        r"reduced: (?!bytes that differ)",
        "durable streams of reduced histories, by time and bytes",
        peer="the same streams as they are",
    ),
    Claim(
        r"encoded: .*blocked time by",
        "histories that a device encodes, blocked time of the other by ours",
        peer="the same as they are",
    ),
    Claim(
        r"(encoded|stored): (?!bytes that differ)",
        "histories that a device encodes, to the host and to a disk, and the application beside, by time",
        peer="the same as they are",
    ),
    Claim(
        r"scheduled: application",
        "what leaves a device: planned, and as it is queued, by the application's time",
        peer="the best of five fixed schedules",
    ),
    Claim(r"opening: .*(s among|s to open)", "opening and listing 10^6 checkpoints, s"),
    Claim(r".*(did not come back|that differ|missing|lacks|faults)", "bytes that differ, what is missing: everybody's"),
    Claim(r"codec: ", "the codec's kernels on a device, GB/s of plain bytes"),
    Claim(
        r"dedup: (?!.*that differ)",
        "de-duplication on a device, with the copy to the host: 4 GiB, GB/s and by time; 2 MiB, µs",
        peer="by time: Full, a copy of all bytes",
    ),
    Claim(
        r"twins: ",
        "one core of the host: decoding, GB/s; de-duplication, by rate; a schedule of 1000 checkpoints, ms",
        peer="of de-duplication: XXH3 alone",
    ),
    Claim(
        r"vectors: ",
        "graphlet degree vectors from a device, by ratio and rate",
        peer="the method List of the run; nvCOMP's Zstd",
    ),
    Claim(
        r"decision: |lease: |small: |scale: bytes",
        "eviction decision among 4096 fragments, lease of host memory, checkpoint() of ten regions of 1 KiB, µs; "
        "memory of a record, bytes",
    ),
    Claim(r"scale: .*by cost", "cost of a call among 10^6 checkpoints, by time", peer="the same among 1000"),
    Claim(
        r"shot-(disk|paper).*bound",
        "shots with a disk, and the paper's setting, by blocked time",
        ceiling="the lower bound: links at measured rates",
    ),
    Claim(
        r"shot-(disk|link).*ring",
        "shots with a disk, and over the link, by blocked time",
        peer="a ring; with a disk the better of two with O_DIRECT",
    ),
    Claim(
        r"shot-link.*bound|sweep: ",
        "shots over the link, and a sweep: blocked s, the bound's own check, and restores that find all in memory",
        ceiling="the lower bound; of shots 1.15 × it + 1 % of the computation",
    ),
    Claim(
        r"offload: (?!.*(overhead of save_on_cpu|by OffloadActivations|that differ))",
        "training steps with offload: time where the link has time or all fits, memory, host µs of a tensor",
        peer="the same without offload",
    ),
    Claim(
        r"offload: .*(overhead of save_on_cpu|by OffloadActivations)",
        "training steps with offload beside other ways to offload, by time",
        peer="save_on_cpu; OffloadActivations",
    ),
    Claim(
        r"shot-paper.*Unified",
        "the paper's setting, blocked time of the other by ours",
        peer="Unified Memory with hints",
    ),
    Claim(
        r"snapshots: (?!bytes that differ)",
        "snapshots of 16 GiB: ms blocked beyond the ceiling, the stager's time by ours, a step beside by one alone",
        peer="DefaultStager with all options",
        ceiling="a copy on the device, or over the link",
    ),
    Claim(
        r"staging: blocked time, ",
        "states staged for async_save, blocked time of the other by ours",
        peer="DefaultStager with all options",
    ),
    Claim(
        r"staging: (?!bytes that differ)",
        "states staged for async_save, ms blocked beyond the copy, and pinned bytes by those of the state",
        ceiling="one copy of as many bytes into pinned memory",
    ),
    Claim(
        r"sharded: (?!tensors that differ)",
        "checkpoints of sharded states, 1 and 2 ranks: blocked time, and bytes read by those asked for",
        peer="of the time: async_save with pinned staging",
    ),
    Claim(
        r"storages: .*storage by",
        "adjoint storage, time of the other by ours",
        peer="pyrevolve: NumPy, bytes, disk",
    ),
    Claim(r"verification: ", "cost of verification, %", peer="the same without"),
)


class Judged(NamedTuple):
    """A claim, and how many of its bars hold."""

    claim: Claim
    held: int
    bars: int
    #: The least and the most of the figures, and the bounds, as text.
    figures: str
    bounds: str

    @property
    def holds(self) -> bool:
        """Whether all bars hold."""
        return self.held == self.bars

    def line(self) -> str:
        """The claim as a line of the table."""
        verdict = "holds" if self.bars == 1 else f"{self.held} of {self.bars}"
        if not self.holds:
            verdict = f"**{verdict}**" if self.held else "**misses**"
        cells = (self.claim.words, self.claim.peer, self.claim.ceiling, self.figures, self.bounds, verdict)
        return f"| {' | '.join(cells)} |"


def judge(results: Iterable[dict[str, Any]]) -> list[Judged]:
    """The claims, those that are missed first. Of several runs of a bar the median counts, of faults the most.

    Raises
    ------
    ValueError
        A bar belongs to no claim.
    """
    found: dict[Claim, dict[str, list[Run]]] = {}
    for result in results:
        rounds = int(result.get("settings", {}).get("rounds", 1))
        for bar in result["bars"]:
            name = f"{result['benchmark']}: {bar['what']}"
            found.setdefault(_claim_of(name), {}).setdefault(name, []).append(Run(bar, rounds))
    judged = [_judged(claim, bars) for claim, bars in found.items()]
    return sorted(judged, key=lambda each: (each.holds, CLAIMS.index(each.claim)))


def table(judged: Iterable[Judged]) -> list[str]:
    """The table of all claims."""
    head = ["| claim | peer | ceiling | ratio or figure | bar | holds |", "| --- | --- | --- | ---: | ---: | --- |"]
    return head + [each.line() for each in judged]


def missed(judged: Iterable[Judged]) -> list[str]:
    """The claims that are missed, as a list with the reasons."""
    lines = []
    for each in judged:
        if not each.holds:
            claim, reason = each.claim, REASONS.get(each.claim.bars, "Not explained yet.")
            beside = next((f", beside {text}" for text in (claim.peer, claim.ceiling) if text != "–"), "")
            lines.append(f"* **{claim.words}**{beside}: {each.figures}, bar {each.bounds}. {reason}")
    return lines


def _claim_of(name: str) -> Claim:
    for claim in CLAIMS:
        if re.match(claim.bars, name):
            return claim
    raise ValueError(f"the bar {name!r} belongs to no claim of {__name__}")


def _judged(claim: Claim, bars: dict[str, list[Run]]) -> Judged:
    values = {name: _value(runs) for name, runs in bars.items()}
    held = sum(_holds(values[name], runs[0].bar) for name, runs in bars.items())
    bounds = sorted({_bound(runs[0].bar) for runs in bars.values()})
    shown = ", ".join(bounds[:3]) + (", …" if len(bounds) > 3 else "")
    least, most = _short(min(values.values())), _short(max(values.values()))
    spread = least if least == most else f"{least} … {most}"
    return Judged(claim, held, len(bars), spread + _few(bars), shown)


def _value(runs: list[Run]) -> float:
    """The median of the runs; of faults that are counted, which none may have, the most."""
    values = [run.bar["value"] for run in runs]
    return max(values) if _counts_faults(runs[0].bar) else median(values)


def _counts_faults(bar: dict[str, Any]) -> bool:
    return bar["bound"] == 0 and not bar["at_least"]


def _few(bars: dict[str, list[Run]]) -> str:
    """The mark of figures of which one or more were measured in too few rounds, all runs together."""
    measured = (runs for runs in bars.values() if runs[0].bar.get("measured", True))  # what is simulated never differs
    figures = (runs for runs in measured if not _counts_faults(runs[0].bar))
    least = min((sum(run.rounds for run in runs) for runs in figures), default=ROUNDS)
    return "" if least >= ROUNDS else f" ({least} round{'s' if least > 1 else ''})"


def _holds(value: float, bar: dict[str, Any]) -> bool:
    return bool(value >= bar["bound"] if bar["at_least"] else value <= bar["bound"])


def _bound(bar: dict[str, Any]) -> str:
    return f"{'≥' if bar['at_least'] else '≤'} {_short(bar['bound'])}"


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
