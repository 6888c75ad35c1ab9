"""A miniature of HACC-IO: particles of all ranks in K files, beside ADIOS2 and MPI-IO, restarts, and steps meanwhile.

Gossman et al., sections 5.1 and 5.5: a synthetic checkpoint of each rank, and the particles of HACC; the flush from the
local disk to shared storage alone is timed. Here one disk is both, and the machine is one node.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.data.particles import LOADED, PARTICLE, SPREAD, TIMES
from benchmarks.disk.ranked import launcher, said_by_ranks
from velocpy.bench.report import Report
from velocpy.bench.timing import median

RANK = Path(__file__).with_name("hacc_rank.py")

#: Restarts are of checkpoints of a rank as large as those of a flush, and so many times as large.
LARGER = 4

#: Ranks of a node, where one machine plays several.
OF_NODE = 2

#: Of the rate of a peer that writes as many files.
LEAST_SYNTHETIC, LEAST_OF_PARTICLES = 1.6, 1.2
#: Of the rate of plain reads.
LEAST_OF_READS = 0.9
#: Of the time of steps while each rank copies its own bytes.
MOST_BESIDE = 1.03
#: Where rounds of these steps alone differ by more, other work has the processors. A median would hold or miss the bar
#: by chance then, so the worst round counts.
MOST_SPREAD = 1.5

#: Ends of the names of what peers have been given; the form with the better median is the peer.
FORMS = ("", " with O_DIRECT", " where all write")

#: What ranks say of an ADIOS2 that is not there.
NOT_INSTALLED = "not installed"

Found = dict[str, Any]


class Kind(NamedTuple):
    """What the ranks checkpoint, and the bar of its flushes."""

    name: str
    variables: bool
    uneven: bool
    least: float


KINDS = (
    Kind("synthetic", False, False, LEAST_SYNTHETIC),
    Kind("synthetic, uneven", False, True, LEAST_SYNTHETIC),
    Kind("HACC, uneven", True, True, LEAST_OF_PARTICLES),
)


def run(
    folder: Path,
    ranks: int = 8,
    size: int = 32 << 20,
    count: int = 2,
    rounds: int = 5,
    particles: int = 500_000,
    steps: int = 2000,
    kinds: tuple[Kind, ...] = KINDS,
) -> Report:
    """So many checkpoints of each rank, of `size` bytes on average, and `steps` steps of so many particles beside."""
    few = max(ranks // 4, 1)
    files = sorted({ranks, few, 1}, reverse=True)
    settings: dict[str, Any] = {
        "ranks": ranks,
        "rounds": rounds,
        "files": files,
        "of_node": OF_NODE,
        "keep": few,
        "particles": particles,
        "steps": steps,
    }
    report = Report("hacc", {**settings, "size": size, "checkpoints": count, "bytes of a particle": PARTICLE})
    mpiexec = launcher()
    if mpiexec is None:
        report.remark("nothing was played: there is no mpiexec, or no mpi4py.")
        return report

    def by_ranks(number: int, what: str, kind: Kind, size: int = size, count: int = count) -> Found:
        data = {"variables": kind.variables, "uneven": kind.uneven, "size": size, "count": count}
        given = settings | {"folder": str(folder / "hacc"), "data": data}
        found: Found = json.loads(said_by_ranks(mpiexec, number, RANK, what, json.dumps(given)).splitlines()[-1])
        return found

    faults, adios2 = 0, ""
    for kind in kinds:
        _clear(folder)
        found = by_ranks(ranks, "flush", kind)
        faults += sum(found["faults"].values())
        adios2 = found["adios2"]
        _flushes(report, kind, files, found)
    for large, number in itertools.product((1, LARGER), (ranks, max(ranks // 2, 1), 2 * ranks)):
        if number == ranks:
            _clear(folder)
            faults += sum(by_ranks(ranks, "keep", kinds[-1], large * size, 1)["faults"].values())
        found = by_ranks(number, "restart", kinds[-1], large * size, 1)
        faults += sum(found["faults"].values())
        _restarts(report, f"restart of {ranks} ranks by {number}, {found['bytes'] >> 20} MiB", found)
    _clear(folder)
    # One rank for each processor: more of them wait for each other's turns, and that differs more than a flush costs.
    number = max(2, min(ranks, len(os.sched_getaffinity(0))))
    settings["rounds"] = 2 * rounds + 1
    found = by_ranks(number, "beside", kinds[-1], size * ranks // number)
    faults += sum(found["faults"].values())
    _beside(report, f"steps of {number} ranks", found)
    shutil.rmtree(folder / "hacc", ignore_errors=True)
    report.settings["ADIOS2"] = adios2
    if "with MPI" not in adios2:
        report.remark(
            "ADIOS2 was not played: the package adios2 is not installed."
            if adios2 == NOT_INSTALLED
            else "ADIOS2's build knows no MPI: it was played with a BP5 of each rank alone, and not into fewer files."
        )
    report.never("bytes that differ, of all ways", faults)
    report.notes += [
        "Seconds of the slowest rank until all bytes are on the medium. One set of processes has all ways of a kind in "
        "turns. The bytes of each are compared after a first round, which does not count.",
        f"Uneven: loads within {SPREAD:.0%}, and rank {LOADED} with {TIMES:g} times the others' average. MPI-IO gives "
        "each file as many neighbouring ranks, a push as equal a number of bytes as neighbours allow.",
        "All ways but those 'from memory' read the checkpoints from the local disk with O_DIRECT. 'from memory': the "
        "bytes lie in the memory of the ranks, so the disk has half of the work. No bar is about these.",
        "'archive': all ranks are on one node, and the lowest pushes; the checksums of all parts are compared. 'of "
        f"nodes': each {OF_NODE} ranks are a node that cannot read the stores of others.",
        "ADIOS2: BP5, each checkpoint a step, NumAggregators and NumSubFiles the number of files, all else by default. "
        "'with O_DIRECT': DirectIO with blocks of 4 KiB; 'where all write': AggregationType EveryoneWrites. Both go "
        "without least and largest values (StatsLevel 0). The ranks sync its files when it has closed them. The form "
        "with the best median is the peer.",
        "MPI-IO: collective calls of 16 MiB for each rank, then Sync. A file for each rank: each rank copies in pieces "
        "of 4 MiB with O_DIRECT into a file whose room was made before.",
        "Restart: until a run of another number of ranks has the arrays of a checkpoint; its size is that of all. The "
        f"archive, of {few} files, is opened in that time. Plain reads are of the same bytes in a file for each rank, "
        "into arrays by the page cache, or with O_DIRECT; the faster is the peer. The page cache has none before.",
        f"Steps: all ranks move {particles} particles and add up a number after each step, beside a flush that begins "
        f"with them; {2 * rounds + 1} rounds.",
    ]
    return report


def _clear(folder: Path) -> None:
    shutil.rmtree(folder / "hacc", ignore_errors=True)
    (folder / "hacc" / "shared").mkdir(parents=True)
    os.sync()


def _flushes(report: Report, kind: Kind, files: list[int], found: Found) -> None:
    took: dict[str, list[float]] = found["took"]
    own = "a file for each rank"
    for name, laps in took.items():
        report.rows.append(
            {
                "what": kind.name,
                "way": name,
                "GB/s": round(median([found["bytes"] / each / 1e9 for each in laps]), 3),
                "rate by a file for each rank": round(_ratio(took[own], laps), 3),
                "seconds": _rounded(laps),
            }
        )
    report.settings |= {f"bytes, {kind.name}": found["bytes"]}
    for each in files:
        ours = took[f"archive, {each} files"]
        for peer in ("ADIOS2", "MPI-IO"):
            forms = [took[way] for form in FORMS if (way := f"{peer}{form}, {each} files") in took]
            if forms:
                by = _ratio(min(forms, key=median), ours)
                report.bar(f"{kind.name}, {each} files, rate by that of {peer}", by, kind.least, at_least=True)


def _restarts(report: Report, name: str, found: Found) -> None:
    took: dict[str, list[float]] = found["took"]
    peer = min((laps for way, laps in took.items() if way.startswith("plain")), key=median)
    for way, laps in took.items():
        report.rows.append(
            {
                "what": name,
                "way": way,
                "GB/s": round(median([found["bytes"] / each / 1e9 for each in laps]), 3),
                "rate by plain reads": round(_ratio(peer, laps), 3),
                "seconds": _rounded(laps),
            }
        )
    report.bar(f"{name}, rate by that of plain reads", _ratio(peer, took["archive"]), LEAST_OF_READS, at_least=True)


def _beside(report: Report, name: str, found: Found) -> None:
    took, flushed = found["took"], found["flushed"]
    alone, ours, theirs = took["alone"], took["beside a push"], took["beside a copy by each rank"]
    for way, laps in took.items():
        report.rows.append(
            {
                "what": name,
                "way": way,
                "s": round(median(laps), 3),
                "flush s": round(median(flushed[way]), 3),
                "time by that alone": round(_ratio(laps, alone), 3),
                "seconds": _rounded(laps),
            }
        )
    by, spread = _ratio(ours, theirs), max(alone) / min(alone)
    if spread > MOST_SPREAD:
        by = max(one / other for one, other in zip(ours, theirs, strict=True))
        report.remark(
            f"Of {name} the worst round counts: alone, the slowest took {spread:.3g} times as long as the fastest one."
        )
    report.bar(f"{name} beside a push, time by that beside a copy by each rank", by, MOST_BESIDE, at_least=False)


def _ratio(of: list[float], by: list[float]) -> float:
    """The median of the rounds' ratios."""
    return median([one / other for one, other in zip(of, by, strict=True)])


def _rounded(laps: list[float]) -> list[float]:
    return [round(each, 4) for each in laps]
