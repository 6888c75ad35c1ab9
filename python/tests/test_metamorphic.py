"""The same operations over many options: every restore gives the bytes that a dictionary has, and all stores agree."""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from metamorphic import Difference, Operation, operations, option_sets, play, program, reduce

#: Another one for each run; VELOCPY_SEED gives one back.
SEED = int(os.environ.get("VELOCPY_SEED", random.SystemRandom().getrandbits(31)))
COUNT = 2000
SETS = 30
AT_ONCE = 3
#: Seconds that are spent on making a failing list shorter.
EFFORT = 100

Outcome = tuple[str, "Counter[str]", "str | None"]


def outcome(options: dict[str, Any], chosen: list[Operation]) -> Outcome:
    """What `play` gives, or what it raises."""
    try:
        return *play(options, chosen), None
    except Difference as error:
        return "", Counter(), str(error)


def alone(options: dict[str, Any], chosen: list[Operation]) -> str | None:
    """How it fails in a process of its own: one that has failed may be good for nothing any more."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(outcome, options, chosen).result()[2]


def shown(options: dict[str, Any], chosen: list[Operation], error: str, effort: float = EFFORT) -> str:
    """The failure as a short program."""
    deadline = time.monotonic() + effort

    def fails(fewer: list[Operation]) -> bool:
        return time.monotonic() < deadline and alone(options, fewer) is not None

    shortest = reduce(chosen, fails)
    return f"VELOCPY_SEED={SEED}\n{error}\nthe {len(shortest)} operations that it takes:\n{program(options, shortest)}"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_stores_of_all_options_agree() -> None:
    print(f"VELOCPY_SEED={SEED}")
    chosen, sets = operations(SEED, COUNT), option_sets(SEED)
    assert len(sets) >= SETS
    assert len(chosen) >= COUNT
    with ProcessPoolExecutor(AT_ONCE, multiprocessing.get_context("spawn")) as pool:
        outcomes = list(pool.map(outcome, sets, [chosen] * len(sets)))
    agreed: dict[tuple[bool, int], set[str]] = {}
    total = Counter[str]()
    for options, (digest, counts, error) in zip(sets, outcomes, strict=True):
        assert error is None, shown(options, chosen, str(error))
        total += counts
        if not options.get("tiny"):
            # A restore out of turn takes its key out of the plan as far as that was read ahead.
            agreed.setdefault((counts["look"] > 0, options.get("lookahead", 1024)), set()).add(digest)
    print(dict(total))
    assert {lasting for lasting, _ in agreed} == {False, True}
    for alike, digests in agreed.items():
        assert len(digests) == 1, f"stores that are alike (durable, lookahead: {alike}) do not agree; seed {SEED}"
    for what, least in {"put": 20_000, "restore": 8000, "followed": 500, "reopen": 500, "look": 150}.items():
        assert total[what] >= least, total


@pytest.mark.timeout(600)
def test_a_difference_is_found_and_made_short() -> None:
    options = option_sets(0)[0]
    put: Operation = ("put", "a", 3, (5, (("u1", (40,)), ("f8", (2, 2)))), None, True, False)
    chosen = operations(0, 20)
    chosen = [*chosen, put, *operations(1, 2), ("lie", "a", 3), ("restore", "a", 3, "lease", False), *operations(2, 9)]
    text = shown(options, chosen, str(alone(options, chosen)), effort=math.inf)
    assert "the 3 operations" in text, text
    found: dict[str, Any] = {}
    exec(text[text.index("play(") :], {"play": lambda *given: found.update(given=given)})
    assert found["given"][0] == options
    assert [operation[0] for operation in found["given"][1]] == ["put", "lie", "restore"]


def test_lists_are_reduced_to_what_matters() -> None:
    needed = {3, 57, 58, 199}
    left = reduce([(number,) for number in range(200)], lambda some: needed <= {number for (number,) in some})
    assert {number for (number,) in left} == needed
