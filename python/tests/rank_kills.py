"""Ranks that die wherever they are in a push, and processes of ranks that are killed at any moment: the whole proof.

    PYTHONPATH=. python python/tests/rank_kills.py --out benchmarks/results/rank-kills.txt

It plays the points of `dying_ranks` in several processes, and then rounds of `killed_ranks`, and writes a log with what
it has counted. It ends by 1 if anything was wrong. TMPDIR says where stores and archives lie.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import object_store
from dying_ranks import (
    RANKS,
    Base,
    Configuration,
    Fate,
    Point,
    fates_of,
    play,
    play_fate,
    roles_of,
    steps_of,
)

HERE = Path(__file__)
KILLED = HERE.with_name("killed_ranks.py")
TWO, FOUR = (0, 0, 1, 1), (0, 1, 2, 3)
CONFIGURATIONS = [
    Configuration((0, 0, 0, 0), 1, None),
    *(Configuration(nodes, files, leaders) for nodes in (TWO, FOUR) for files in (1, 2) for leaders in (1, None)),
]
BUCKETS = [Configuration(nodes, 1, None, bucket=True) for nodes in ((0, 0, 0, 0), TWO, FOUR)]
#: Those in which stores are opened with ``archive=``, too.
BACKGROUND = [CONFIGURATIONS[0], Configuration(TWO, 1, 1), Configuration(FOUR, 2, None), BUCKETS[1]]
#: Those in which messages meet a fate.
FATES = [Configuration(TWO, 1, 1), Configuration(FOUR, 2, 1)]


class Case(NamedTuple):
    """A point or a fate, where it is played, and how it is counted."""

    of: Configuration
    what: Point | Fate
    kind: str


def cases_of(base: Base, of: Configuration) -> Iterator[Case]:
    """All points of a configuration, and fates of its messages. A push in which no rank dies tells the steps."""
    board = steps_of(base, of)
    roles = roles_of(board)
    for rank in range(RANKS):
        for step in range(1, board.steps[rank] + 1):
            for notice in ("told", "silent"):
                yield Case(of, Point(rank, step, False, notice), roles[rank])
                if of.nodes.count(of.nodes[rank]) in (2, 3):
                    yield Case(of, Point(rank, step, True, notice), "all ranks of a node")
    if len(set(of.nodes)) > 1:
        first = next(step for step, what in enumerate(board.log[0]) if what.endswith("share_begin"))
        for step in range(first, board.steps[0] + 1):
            yield Case(of, Point(0, step, False, "outlived"), roles[0])
    if of in BACKGROUND:
        steps = steps_of(base, of, "background").steps
        for rank in range(RANKS):
            for step in range(1, steps[rank] + 1):
                for notice in ("told", "silent"):
                    yield Case(of, Point(rank, step, False, notice, "background"), roles[rank])
    if of in FATES:
        for fate in fates_of(board):
            yield Case(of, fate, "a call of all ranks" if fate.to < 0 else "a message from rank to rank")


def drawn(
    base: Base, configurations: list[Configuration], seed: str | None, points: int, fates: int
) -> tuple[list[Case], int, int]:
    """So many points and fates, drawn among all of them, and how many there are."""
    cases = [case for of in configurations for case in cases_of(base, of)]
    draw = random.Random(seed)
    draw.shuffle(cases)
    all_points = [case for case in cases if isinstance(case.what, Point)]
    all_fates = [case for case in cases if isinstance(case.what, Fate)]
    some = [*all_points[:points], *all_fates[:fates]]
    draw.shuffle(some)
    return some, len(all_points), len(all_fates)


def carry_out(base: Base, cases: list[Case], counts: Counter[str], until: float = float("inf")) -> list[str]:
    """Plays cases, and returns what was wrong."""
    wrong = []
    for of, what, kind in cases:
        if time.monotonic() > until:
            break
        try:
            if isinstance(what, Fate):
                counts.update(f"fates, outcome: {each}" for each in play_fate(base, of, what).elements())
                counts[f"fates: {kind}, {what.kind}"] += 1
                continue
            died, outcomes = play(base, of, what)
        except BaseException as error:
            wrong.append(f"{of}, {what}: {type(error).__name__}: {error}")
            continue
        if not died:  # the rank has made fewer steps than before
            counts["not reached"] += 1
            continue
        counts["points"] += 1
        counts[f"points, who: {kind}"] += 1
        counts[f"points, where: {of.name}{', in the background' if what.way == 'background' else ''}"] += 1
        counts[f"points, others: {what.notice}"] += 1
        counts[f"points, at: {died}"] += 1
        counts.update(f"points, outcome: {each}" for each in outcomes.elements())
    return wrong


def shard(folder: Path, number: int, shards: int, seed: str, count: int, minutes: float, objects: str) -> None:
    """Plays every ``shards``-th of the cases, in a process of its own, with archives in a bucket of a server too."""
    logging.getLogger("velocpy").setLevel(logging.CRITICAL)  # each death would be told
    prefix = f"shard-{number}"
    place = f"s3://{object_store.BUCKET}/{prefix}"
    base = Base(folder / prefix, lambda name: f"{place}/{name}", Path(objects) / object_store.BUCKET / prefix)
    cases, points, fates = drawn(base, [*CONFIGURATIONS, *BUCKETS], seed, count, count // 6)
    counts: Counter[str] = Counter()
    wrong = carry_out(base, cases[number::shards], counts, time.monotonic() + 60 * minutes)
    print(json.dumps({"counts": counts, "wrong": wrong, "points": points, "fates": fates}))


def beside(commands: list[list[Any]], **environment: str) -> list[dict[str, Any]]:
    """Runs programs beside each other, and returns what each prints."""
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", *map(str, command)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        )
        for command in commands
    ]
    said = [each.communicate()[0] for each in running]
    assert all(each.returncode == 0 for each in running), "a process has failed"
    return [json.loads(each.splitlines()[-1]) for each in said]


def together(parts: list[dict[str, Any]]) -> tuple[Counter[str], list[str]]:
    counts: Counter[str] = Counter()
    for each in parts:
        slowest = max(counts["slowest, ms"], each["counts"].get("slowest, ms", 0))
        counts.update(each["counts"])
        counts["slowest, ms"] = slowest
    return counts, [line for each in parts for line in each["wrong"]]


def table(counts: Counter[str]) -> Iterator[str]:
    """One line for each group of counts, its most frequent kinds first."""
    groups: dict[str, Counter[str]] = {}
    for name, count in counts.items():
        group, colon, kind = name.partition(": ")
        if colon:
            groups.setdefault(group, Counter())[kind] = count
    for group, kinds in sorted(groups.items()):
        yield f"{group}:"
        yield from (f"    {count:6} {kind}" for kind, count in kinds.most_common())


def commit() -> str:
    """The commit of this checkout; "dirty" behind it if something was changed since."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent, check=False)
    return done.stdout.strip() or "no checkout"


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.partition(": ")[2].strip() for line in lines if "model name" in line), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    place = "in memory" if Path(tempfile.gettempdir()).is_relative_to("/dev/shm") else "on a disk"
    return (
        f"{os.cpu_count()} x {cpu}, {memory:.1f} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}; stores and archives {place}"
    )


def played(given: argparse.Namespace, seed: str, folder: Path) -> Iterator[tuple[list[dict[str, Any]], float]]:
    """What the processes say that play points, and those that play rounds; and how many seconds each took."""
    with object_store.serving(folder / "objects") as server:
        shared = [given.jobs, seed, given.points, given.minutes, server.folder]
        numbers = [random.Random(f"{seed} {number}").randrange(1 << 31) for number in range(given.jobs)]
        rounds = [-(-given.kills // given.jobs), f"s3://{object_store.BUCKET}"]
        for commands in (
            [[HERE, "--shard", folder, number, *shared] for number in range(given.jobs)],
            [[KILLED, folder / "kills", rounds[0], number, rounds[1]] for number in numbers],
        ):
            began = time.monotonic()
            yield beside(commands, **object_store.environment(server.url)), time.monotonic() - began


HEAD = """\
Ranks that die while they push into an archive: threads over a double of the transport, which die at a step of the push,
and processes that get SIGKILL at a random moment (python/tests/rank_kills.py). After each, the older keys of the
archive were compared bit for bit; each new key was there as a whole or not at all; the other ranks had raised within
their timeout, or succeeded; and the next push completed the archive. A fate is what happens to one message.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="where the log is written; without it, it is printed")
    parser.add_argument("--points", type=int, default=3000, help="points at which a rank dies; a sixth as many fates")
    parser.add_argument("--kills", type=int, default=220, help="rounds of processes, with a kill each")
    parser.add_argument("--minutes", type=float, default=60, help="after which no point is begun any more")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes beside each other")
    parser.add_argument("--seed", default="", help="what is drawn; without it, the commit")
    given = parser.parse_args()
    at = commit()
    folder = Path(tempfile.mkdtemp(prefix="velocpy-kills-"))
    try:
        (points, injected), (kills, killed) = played(given, given.seed or at, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    (of_points, wrong), (of_kills, more) = together(points), together(kills)
    fates = sum(count for name, count in of_points.items() if name.startswith("fates: "))
    arguments = " ".join(f"--{name} {value}" for name, value in vars(given).items() if value and name != "out")
    lines = [
        HEAD,
        f"commit {at} ({time.strftime('%Y-%m-%d', time.gmtime())}), {machine()}, beside other work",
        f"$ PYTHONPATH=. python python/tests/rank_kills.py {arguments} --out benchmarks/results/rank-kills.txt",
        "",
        f"{of_points['points']} of {points[0]['points']} points, drawn at random, and {fates} of {points[0]['fates']} "
        f"fates, in {injected:.0f} s",
        *table(of_points),
        "",
        f"{of_kills['rounds']} rounds of four processes, {of_kills['processes']} of which got SIGKILL, in {killed:.0f} "
        f"s; the slowest of the others raised after {of_kills['slowest, ms'] / 1000:.1f} s",
        *table(of_kills),
        "",
        f"{len(wrong) + len(more)} were wrong:" if wrong or more else "None was wrong.",
        *wrong,
        *more,
    ]
    text = "\n".join(lines) + "\n"
    if given.out:
        given.out.write_text(text)
    print(text)
    sys.exit(bool(wrong or more))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--shard"]:
        where, number, shards, seed, count, minutes, objects = sys.argv[2:]
        shard(Path(where), int(number), int(shards), seed, int(count), float(minutes), objects)
    else:
        main()
