"""Ranks that die in a push, and messages that do not come as they were sent: some of the points of `rank_kills`.

Each commit plays other ones, as VELOCPY_TURN tells. ``make rank-kills`` plays thousands.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import object_store
import pytest
from dying_ranks import Base, Configuration, Point, play, steps_of
from rank_kills import BUCKETS, CONFIGURATIONS, FATES, TWO, carry_out, drawn

from velocpy.archive.shares import Share

TURN = os.environ.get("VELOCPY_TURN")
ONE_LEADER = Configuration(TWO, 1, 1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object_store.Server]:
    with object_store.serving(tmp_path_factory.mktemp("objects")) as running:
        yield running


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, server: object_store.Server) -> Iterator[Base]:
    place = f"s3://{object_store.BUCKET}/points"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in object_store.environment(server.url).items():
            patch.setenv(name, value)
        yield Base(
            tmp_path_factory.mktemp("base"),
            lambda name: f"{place}/{name}",
            server.folder / object_store.BUCKET / "points",
        )


def test_a_rank_that_dies_harms_no_key(base: Base) -> None:
    draw = random.Random(TURN)
    of = [draw.choice(CONFIGURATIONS), draw.choice(FATES), draw.choice(BUCKETS)]
    cases, _, _ = drawn(base, of, TURN, 14, 6)
    counts: Counter[str] = Counter()
    wrong = carry_out(base, cases, counts)
    assert not wrong, "\n".join(wrong)
    assert counts["points"] > 5


@pytest.mark.parametrize(("notice", "outcome"), [("told", "RankFailed, named"), ("silent", "WaitTimeout, named")])
def test_the_rank_that_dies_is_named(notice: str, outcome: str, base: Base) -> None:
    """The leader waits for a message of a rank that has died, and then in vain for all ranks."""
    sends = [step for step, what in enumerate(steps_of(base, ONE_LEADER).log[1], 1) if what == "before send"]
    died, outcomes = play(base, ONE_LEADER, Point(1, sends[len(sends) // 2], False, notice))
    assert died
    assert outcomes[outcome] >= 1, outcomes


def test_a_leader_that_does_not_write_is_found(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks behind each point see what is wrong."""
    ask = Share.ask

    def forgetful(self: Share, op: str, *rest: Any, **more: Any) -> Any:
        return ({}, b"") if op == "share_write" else ask(self, op, *rest, **more)

    monkeypatch.setattr(Share, "ask", forgetful)
    with pytest.raises(AssertionError):
        play(base, ONE_LEADER, Point(3, steps_of(base, ONE_LEADER).steps[3]))


def test_processes_that_are_killed_harm_no_key(server: object_store.Server, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program, seed = Path(__file__).with_name("killed_ranks.py"), random.Random(TURN).randrange(1 << 31)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", program, tmp_path, "1", str(seed), f"s3://{object_store.BUCKET}"],
        env={**os.environ, "OMP_NUM_THREADS": "1", **object_store.environment(server.url)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert not said["wrong"], "\n".join(said["wrong"])
    assert said["counts"]["rounds"] == 1
