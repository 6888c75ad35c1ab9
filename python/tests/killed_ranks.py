"""Processes that are ranks of a run, and are killed at any moment while they push.

As a program: ``killed_ranks.py FOLDER COUNT SEED [S3://BUCKET]``. It plays so many rounds in a folder. In each, four
processes capture steps and push them into an archive, in a directory or in the bucket; then one of them, or all of one
node, get SIGKILL at a random moment. It prints what it has counted, and what was wrong, as JSON. Processes of a round
are forked from this one, which never loads the core: so a round takes no time for imports.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import mmap
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import velocpy
from velocpy import _core, errors, ondisk
from velocpy.archive import Destination, part, push, shares, together

RANKS = 4
KEYS = 5
SIZES: dict[str, Any] = {"host": "16MiB", "disk": "64MiB"}
#: Seconds that a rank waits for others, and within which it has raised when another one was killed: it may wait twice,
#: on a machine that does other work.
TIMEOUT, LIMIT = 6.0, 30.0
#: Seconds in which all ranks have begun.
PATIENCE = 120.0
#: The kill comes so many seconds after all ranks have pushed once, at most.
LATEST = 0.6


class Round(NamedTuple):
    """What is played."""

    #: "push", or "background": stores that are opened with ``archive=``.
    way: str
    bucket: bool
    #: Of each rank.
    nodes: tuple[int, ...]
    leaders: int | None
    killed: tuple[int, ...]
    after: float
    #: The other processes go on until all of them have raised. Else each ends, and with it its connections.
    stay: bool

    @classmethod
    def drawn(cls, draw: random.Random, bucket: bool) -> Round:
        nodes = draw.choice([(0, 0, 0, 0), (0, 0, 1, 1), (0, 0, 1, 1), (0, 1, 2, 3)])
        who = draw.randrange(RANKS)
        whole = len(set(nodes)) == 2 and draw.random() < 0.25
        killed = tuple(rank for rank in range(RANKS) if rank == who or (whole and nodes[rank] == nodes[who]))
        return cls(
            draw.choice(["push", "push", "background"]), bucket and draw.random() < 0.4, nodes, draw.choice([None, 1]),
            killed, draw.random() * LATEST, draw.random() < 0.5,
        )  # fmt: skip


#: What each rank tells in memory that all processes share: whether it pushes now (above 0), what it does by the latest
#: plan, one more than the latest step that is in the archive, and whether it has raised.
TOLD = np.dtype([("pushing", "<i4"), ("role", "<i4"), ("steps", "<i8"), ("raised", "<i8")])
ROLES = ("waits", "sender", "leader", "representative")


def state_of(rank: int, step: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng([rank, step])
    return {"noise": rng.integers(0, 256, 40_000 + 7000 * rank, np.uint8), "step": np.array([step])}


def same(found: Any, rank: int, step: int) -> bool:
    expected = state_of(rank, step)
    return set(found) == set(expected) and all(np.array_equal(found[name], expected[name]) for name in expected)


def store_of(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank:05d}"


def role_of(plan: Any, rank: int) -> str:
    """What a rank does by a plan."""
    if any(each["leader"] == rank for each in plan["packs"] or ()):
        return "representative"
    if any(each["leader"] == rank for each in plan["files"] or ()):
        return "leader"
    if any(plan["parts"][copy["part"]]["reader"] == rank for copy in plan["copies"] or ()):
        return "sender"
    return "waits"


def work(folder: Path, place: Path | str, of: Round, rank: int, told: Any) -> None:
    """What a rank does until another one dies: its error is written to a file."""
    from torch import distributed

    mine = told[rank]
    background, begin = together.Run.push, shares.Share.begin

    def pushed(*arguments: Any, **options: Any) -> Any:
        mine["pushing"] += 1
        try:
            return background(*arguments, **options)
        finally:
            mine["pushing"] -= 1

    def begun(share: Any, text: bytes) -> None:
        mine["role"] = ROLES.index(role_of(json.loads(text), rank))
        begin(share, text)

    together.Run.push, shares.Share.begin = pushed, begun  # type: ignore[method-assign]
    os.environ["VELOCPY_NODE"] = str(of.nodes[rank])
    file = distributed.FileStore(str(folder / "meet"), RANKS)
    distributed.init_process_group("gloo", store=file, rank=rank, world_size=RANKS)
    ranks = distributed.group.WORLD
    # In a directory, one file, so that ranks of several nodes send messages to its leader.
    shape: dict[str, Any] = {} if of.bucket else {"files": 1, "leaders": of.leaders, "buffer": 4096}
    more: dict[str, Any] = {}
    if of.way == "background":
        to = Destination(place, **shape, every=0.01, timeout=TIMEOUT)
        more = {"archive": to, "ranks": ranks}
    raised: dict[str, Any] = {}
    try:
        with velocpy.open(store_of(folder, rank), **SIZES, **more) as store:
            for step in itertools.count():
                ticket = store.history("forward").checkpoint(step % KEYS, **state_of(rank, step))
                if more:
                    ticket.wait("archive", timeout=60)
                else:
                    mine["pushing"] += 1
                    push(store, place, ranks=ranks, timeout=TIMEOUT, **shape)
                    mine["pushing"] -= 1
                mine["steps"] = step + 1
    except errors.VelocError as error:
        raised = {"error": type(error).__name__, "rank": getattr(error, "rank", None), "text": str(error)}
    raised["at"] = time.monotonic()
    (folder / f"raised-{rank}").write_text(json.dumps(raised))
    mine["raised"] = 1
    others = [each for each in range(RANKS) if each not in of.killed]
    while of.stay and not all(told["raised"][others]) and time.monotonic() < raised["at"] + LIMIT:
        time.sleep(0.005)


def require_harmless(folder: Path, place: Path | str, steps: int) -> None:
    """Looks at the archive behind a kill, pushes what the stores have, and looks again.

    Raises
    ------
    AssertionError
        An older key is harmed, a key is there in part, or the next push does not complete the archive.
    """
    assert ondisk.check(place, read_data=True).sound
    with velocpy.open(place, host="16MiB", mode="r") as archive:
        keys = sorted(int(key) for key in archive.history("forward"))
        assert set(keys) >= {step % KEYS for step in range(steps)}, f"{keys} are there of {steps} steps"
        for key in keys:
            parts = [archive.history(part("forward", rank)).restore(key) for rank in range(RANKS)]
            step = int(parts[0]["step"][0])
            assert step % KEYS == key
            assert step <= steps, f"step {step} was never captured"
            assert step + KEYS >= steps, f"of {steps} steps, key {key} is there as of step {step}"
            assert all(same(state, rank, step) for rank, state in enumerate(parts)), f"key {key} has parts of two steps"
    done = push([store_of(folder, rank) for rank in range(RANKS)], place)
    assert not done.damaged
    if not isinstance(place, Path):
        ondisk.collect(place, age=0)
    assert ondisk.check(place, read_data=True).sound
    with velocpy.open(place, host="16MiB", mode="r") as archive:
        for rank in range(RANKS):
            with velocpy.open(store_of(folder, rank), host="16MiB", mode="r") as store:
                own, there = store.history("forward"), archive.history(part("forward", rank))
                for key in archive.history("forward"):
                    step = int(own.restore(key)["step"][0])
                    assert same(there.restore(key), rank, step), f"key {key} of rank {rank} is not as of step {step}"


def forked(call: Callable[[], None], log: Path) -> int:
    """Runs a call in a process of its own, and returns its number. The process ends by 1 if the call raises."""
    assert not _core.loaded(), "the core is loaded, and does not go on in a forked process"
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        call()
        code = 0
    except BaseException:
        log.write_text(traceback.format_exc())
    finally:
        os._exit(code)


def ended(process: int, within: float) -> int | None:
    """The status by which a process has ended, as `os.waitstatus_to_exitcode`; None: it was killed, as it hung."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def play(folder: Path, place: Path | str, of: Round, counts: Counter[str]) -> None:
    """One round.

    Raises
    ------
    AssertionError
        What `require_harmless` says, or a rank that was not killed has not raised what it should, or not in time.
    """
    folder.mkdir(parents=True)
    told = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), TOLD, RANKS)

    def start(rank: int) -> int:
        return forked(lambda: work(folder, place, of, rank, told), folder / f"log-{rank}")

    processes = [start(rank) for rank in range(RANKS)]
    left = dict(enumerate(processes))
    try:
        end = time.monotonic() + PATIENCE
        while (told["steps"] < 1).any():
            assert time.monotonic() < end, "not all ranks have begun"
            assert not any(os.waitpid(each, os.WNOHANG)[0] for each in processes), logs(folder)
            time.sleep(0.002)
        time.sleep(of.after)
        killed = time.monotonic()
        for rank in of.killed:
            os.kill(processes[rank], signal.SIGKILL)
        for rank in of.killed:
            assert ended(left.pop(rank), PATIENCE) == -signal.SIGKILL, f"rank {rank} has ended before: {logs(folder)}"
        within = "while it pushed" if any(told["pushing"][rank] for rank in of.killed) else "between two pushes"
        roles = sorted({("lowest, " if rank == 0 else "") + ROLES[told["role"][rank]] for rank in of.killed})
        for rank in sorted(left):
            status = ended(left.pop(rank), 2 * LIMIT)
            assert status == 0, f"rank {rank} {'hangs' if status is None else 'has failed'}: {logs(folder)}"
        require_raised(folder, of, killed, counts)
    finally:
        for process in left.values():
            with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it has ended before all had begun
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
    steps = int(told["steps"].max())
    checked = forked(lambda: require_harmless(folder, place, steps), folder / "log-check")
    assert ended(checked, PATIENCE) == 0, f"after {steps} steps: {logs(folder)}"
    counts["rounds"] += 1
    counts["processes"] += len(of.killed)
    where = "bucket" if of.bucket else "directory"
    nodes = len(set(of.nodes))
    counts[f"where: {where}, {of.way}"] += 1
    counts[f"nodes: {nodes}"] += 1
    counts[f"when: {within}"] += 1
    counts[
        f"who: {'all ranks of a node' if len(of.killed) > 1 else roles[0] if nodes > 1 else lone(of.killed[0])}"
    ] += 1


def lone(rank: int) -> str:
    """What a rank does where all are on one node."""
    return "lowest, pushes for one node" if rank == 0 else "waits for the lowest of its node"


def require_raised(folder: Path, of: Round, killed: float, counts: Counter[str]) -> None:
    """Each rank that was not killed has raised in time, and names one that has ended before, if any."""
    said = {rank: json.loads((folder / f"raised-{rank}").read_text()) for rank in range(RANKS) if rank not in of.killed}
    for raised in said.values():
        gone = set(of.killed)
        if not of.stay:
            gone |= {rank for rank, each in said.items() if each["at"] < raised["at"]}
        assert raised["error"] in ("RankFailed", "WaitTimeout"), raised
        assert raised["rank"] is None or raised["rank"] in gone, raised
        assert raised["at"] - killed < LIMIT, raised
        counts[f"raised: {raised['error']}{'' if raised['rank'] is None else ', named'}"] += 1
        counts["slowest, ms"] = max(counts["slowest, ms"], round(1000 * (raised["at"] - killed)))


def logs(folder: Path) -> str:
    """What processes of a round have said."""
    return "\n".join(
        f"{each.name}: {each.read_text()[-3000:]}" for each in sorted([*folder.glob("log-*"), *folder.glob("raised-*")])
    )


def main(folder: Path, count: int, seed: int, bucket: str = "") -> None:
    draw = random.Random(seed)
    counts: Counter[str] = Counter()
    wrong = []
    # Imported here, and not by each process of a round.
    from torch import distributed

    assert distributed.is_available()
    for number in range(count):
        of = Round.drawn(draw, bool(bucket))
        place = f"{bucket}/{seed}-{number}" if of.bucket else folder / f"{seed}-{number}" / "archive"
        try:
            play(folder / f"{seed}-{number}", place, of, counts)
        except BaseException as error:
            wrong.append(f"seed {seed}, round {number}, {of}: {error}")
            print(wrong[-1], file=sys.stderr, flush=True)
        shutil.rmtree(folder / f"{seed}-{number}", ignore_errors=True)
    print(json.dumps({"counts": counts, "wrong": wrong}))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
