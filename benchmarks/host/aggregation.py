"""Archives of up to 16,384 ranks, played on a virtual clock by the policy code of a push: simulated, not measured.

The simulation is Go's (``gocore/policy/aggregation/sim``); this runs it and keeps what it says. `docs/archive.md` tells
what it has, what it leaves out, and how it was checked against measured runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from velocpy.bench.report import Bar, Report

from . import gobench

#: Ranks whose bars are shown, and the MiB of each rank's checkpoint, give or take a fifth (Gossman et al., section 5).
SHOWN, MIB = 4096, 1024

#: Of the rate of a file for each rank, with as many files as nodes, and with a quarter; ahead of it; of MPI-IO.
LEAST, LEAST_OF_FEW, AHEAD = 0.9, 0.8, 1.0

PEER = "a file for each rank"
FILES = {"nodes": "a file for each node", "quarter": "a file for 4 nodes"}


def run(ranks: Sequence[int] = (16, 64, 256, 1024, 4096, 16384)) -> Report:
    """Runs Go's BenchmarkScale from a checkout, for so many ranks; it says the same each time."""
    choice = "|".join(map(str, ranks))
    command = gobench.command(["policy/aggregation/sim"], f"^BenchmarkScale$/^ranks=({choice})$", 1, "1x")
    report = Report("aggregation", {"simulated": "yes", "ranks": list(ranks), "ranks of a node": 8, "seed": 1})
    found = {
        name.removeprefix("Scale/"): {unit: values[0] for unit, values in units.items()}
        for name, units in gobench.measure(command).items()
    }
    for name, figures in found.items():
        report.rows.append(_row(name, figures, found))
    _bars(report, found, ranks)
    report.notes += [
        "Simulated, not measured: the policy code of a push on a virtual clock, on the machine of Gossman et al., "
        "section 5, as far as the paper describes it. 'by' is the rate of the whole push by that of a file for each "
        "rank of the same size, and 'copying by' its rate while bytes are copied, without plans and commits.",
        "Messages are those with bytes of checkpoints that one leader receives at most; 'catalogs' the messages with "
        "metadata that the lowest rank receives; 'plan MB' the text of the longest plan, which every rank has. Memory "
        "of a leader: its buffers for messages, and with those of the threads that copy. Leaders are as many as by "
        "default, unless they are told.",
    ]
    return report


def _peer_of(name: str, found: dict[str, dict[str, float]]) -> dict[str, float]:
    ranks, size, *_ = name.split("/")
    return found[f"{ranks}/{size}/file-per-rank"]


def _row(name: str, figures: dict[str, float], found: dict[str, dict[str, float]]) -> dict[str, Any]:
    ranks, size, way, *rest = name.split("/")
    chosen = dict(each.split("=") for each in rest)
    peer = _peer_of(name, found)
    words = {"file-per-rank": PEER, "collective": "MPI-IO", "archive": "archive"}[way]
    if rest:
        words += f", {FILES[chosen['files']]}"
    if "leaders" in chosen:
        words += {"0": "", "1": ", one leader"}.get(chosen["leaders"], f", {chosen['leaders']} leaders")
    return {
        "ranks": int(ranks.partition("=")[2]),
        "MiB": int(size.partition("=")[2]),
        "way": words,
        "files": int(figures["files"]),
        "s": round(figures["elapsed-ms"] / 1e3, 3),
        "GB/s": round(figures["bytes"] / figures["elapsed-ms"] / 1e6, 1),
        "by": round(peer["elapsed-ms"] / figures["elapsed-ms"], 3),
        "copying by": round(peer["elapsed-ms"] / figures["copying-ms"], 3),
        "messages": int(figures["leader-receives"]),
        "buffers MiB": round(figures["leader-buffers"] / 2**20, 1),
        "memory MiB": round(figures["leader-memory"] / 2**20, 1),
        "catalogs": int(figures["lowest-receives"]),
        "plan MB": round(figures["plan-text"] / 1e6, 1),
    }


def _bars(report: Report, found: dict[str, dict[str, float]], ranks: Sequence[int]) -> None:
    """What must be right of any number of ranks; and figures of many, which a quick run has not."""
    archives = {name: figures for name, figures in found.items() if "/archive/" in name}
    most = max(figures["leader-buffers"] / figures["most-buffers"] for figures in archives.values())
    report.bars.append(
        Bar(f"{min(ranks)} to {max(ranks)} ranks: a leader's buffers by buffers × size", most, 1, False, measured=False)
    )
    most = max(figures["leader-memory"] / figures["most-memory"] for figures in archives.values())
    what = f"{min(ranks)} to {max(ranks)} ranks: a leader's memory by all its buffers and those of its threads"
    report.bars.append(Bar(what, most, 1, False, measured=False))
    for name, figures in archives.items():
        if not name.startswith(f"ranks={SHOWN}/MiB={MIB}/") or not name.endswith("leaders=0"):
            continue
        peer, files = _peer_of(name, found), name.split("/")[3].partition("=")[2]
        least = LEAST if files == "nodes" else LEAST_OF_FEW
        by, copying = (peer["elapsed-ms"] / figures[unit] for unit in ("elapsed-ms", "copying-ms"))
        what = f"{SHOWN} simulated ranks, {FILES[files]}: copying, rate by that of {PEER}"
        report.bars.append(Bar(what, round(copying, 3), least, True, measured=False))
        what = f"{SHOWN} simulated ranks, {FILES[files]}: the whole push, rate by that of {PEER}"
        report.bars.append(Bar(what, round(by, 3), AHEAD, True, measured=False))
