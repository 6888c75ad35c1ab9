"""Ctrl-C, destructors and signal handlers between any two bytecodes; two threads, and a fork, in one plan.

VELOCPY_LONG=1 makes it 100,000 interruptions in each way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import RunPython

import velocpy

PROGRAM = Path(__file__).with_name("interrupted.py")
LONG = os.environ.get("VELOCPY_LONG") == "1"
#: The check of a commit has a durable store interrupted in one mode, by turns: each call waits for the disk, so that
#: takes minutes.
MODES = ["raise", "handle", "collect", "signal"]
DURABLE = MODES if LONG or "VELOCPY_TURN" not in os.environ else [MODES[int(os.environ["VELOCPY_TURN"]) % len(MODES)]]
#: Bytecodes at which a call is interrupted; half as many in the check of a commit, which has them from a random one on.
COUNT = 100_000 if LONG else 2_000 if "VELOCPY_TURN" not in os.environ else 1_000


@pytest.mark.timeout(7200 if LONG else 300)
@pytest.mark.parametrize(
    ("mode", "tiers"),
    [
        (mode, tiers)
        for mode in MODES
        for tiers in ("memory", "disk", "durable")
        if tiers != "durable" or mode in DURABLE
    ],
)
def test_interrupted_at_every_bytecode(mode: str, tiers: str, tmp_path: Path, record_property) -> None:
    """The store works afterwards, and no checkpoint and no hint is lost without a word.

    All bytecodes are gone through with VELOCPY_LONG=1; else every seventh, from a random one on.
    """
    seed = int.from_bytes(os.urandom(4), "little")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), mode, tiers, str(COUNT), str(seed)],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-5000:]}"
    outcome = json.loads(done.stdout)
    record_property("interruptions", outcome["interruptions"])
    assert outcome["interruptions"] >= COUNT
    assert not outcome["wrong"], f"seed {seed}: {outcome['wrong']}"


PRELUDE = """
import faulthandler, itertools, os, queue, signal, sys, threading, time
import numpy as np
import velocpy

faulthandler.dump_traceback_later(50, exit=True)
store = velocpy.open(host="8MiB", tuning=velocpy.Tuning(lookahead=4))
history = store.history("h")
for i in range(300):
    history.checkpoint(i, u=np.full(10, i % 251, np.uint8))

def looped(**options):
    return [key for key, lease in history.restore_iter(**options) if lease["u"][0] == key % 251]
"""


def ok(run_python: RunPython, code: str) -> str:
    done = run_python(PRELUDE + code, timeout=100)
    assert done.returncode == 0, done.stderr[-5000:] + done.stdout
    return str(done.stdout)


def test_threads_that_loop_over_one_plan_never_end_early(run_python: RunPython) -> None:
    """While one of them is in the slow generator, the others find nothing to do, and wait for it."""
    ok(
        run_python,
        """
for round in range(5):
    def slowly():
        for i in range(60):
            time.sleep(0.002)
            yield i
    history.hint(slowly())
    seen, ends = [], []
    def loop():
        for key, _ in history.restore_iter():
            seen.append(key)
        ends.append(len(seen))
    threads = [threading.Thread(target=loop) for _ in range(4)]
    [t.start() for t in threads]; [t.join() for t in threads]
    assert sorted(seen) == list(range(60)), seen
    assert min(ends) >= 60 - 3, ends       # each of the others may still be at work on its last one
""",
    )


def test_a_wait_for_another_thread_s_generator_is_interruptible(run_python: RunPython) -> None:
    ok(
        run_python,
        """
entered, go_on = threading.Event(), threading.Event()
def stuck():
    yield 0
    entered.set()
    go_on.wait()
    yield 1
hinting = threading.Thread(target=lambda: history.hint(stuck()))
hinting.start()
entered.wait()
history.restore(5)                      # goes on with what the core knows
history.checkpoint(5, u=np.zeros(3))
def raises(error, call):
    try:
        call()
    except error:
        return
    raise AssertionError(error)
raises(velocpy.errors.WaitTimeout, lambda: looped(timeout=0.2))
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
raises(KeyboardInterrupt, looped)
go_on.set()
hinting.join()
assert looped() == [0, 1]
""",
    )


def test_a_generator_that_is_interrupted_does_not_end_the_plan_in_silence(run_python: RunPython) -> None:
    ok(
        run_python,
        """
def keys():
    yield from range(3)
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): time.sleep(0.001)
    yield 3
try:
    history.hint(keys())
except KeyboardInterrupt:
    pass
else:
    raise AssertionError
history.hint([7])
seen = []
try:
    for key, _ in history.restore_iter():
        seen.append(key)
except velocpy.errors.PlanUnfinished as error:
    assert error.history == "h" and "KeyboardInterrupt" in str(error), error
else:
    raise AssertionError
assert seen == [0, 1, 2], seen
assert looped() == [7]                  # said once; what was hinted behind it stands
assert looped() == []
""",
    )


def test_a_loop_inside_of_the_plan_s_own_generator_is_told(run_python: RunPython) -> None:
    ok(
        run_python,
        """
inside = []
def keys():
    yield 0
    try:
        for key, _ in history.restore_iter():
            inside.append(key)
    except velocpy.errors.PlanUnfinished:
        inside.append("unfinished")
    history.hint([9])
    yield 1
history.hint(keys())
assert looped() == [0, 1, 9]
assert inside == ["unfinished"], inside
""",
    )


def test_a_plan_withdrawn_while_it_is_read_stays_withdrawn(run_python: RunPython) -> None:
    ok(
        run_python,
        """
def keys():
    yield 1
    history.hint_clear()
    yield 2
    yield 3
history.hint(keys())
history.hint([4])
assert looped() == [4], history
""",
    )


def test_an_endless_plan_without_restores_can_be_interrupted(run_python: RunPython) -> None:
    ok(
        run_python,
        """
history.hint(itertools.repeat(velocpy.plan.Advance(1)))
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    looped()
except KeyboardInterrupt:
    pass
else:
    raise AssertionError
history.hint_clear()
history.hint([3])
assert looped() == [3]
""",
    )


def test_fork_while_another_thread_reads_the_plan(run_python: RunPython) -> None:
    """The child, which has no threads, is told that it cannot use the store; it does not wait for them."""
    ok(
        run_python,
        """
stop = False
def read():
    while not stop:
        history.hint(iter(range(50)))
        looped()
        history.hint_clear()
def slow():
    for i in itertools.count():
        time.sleep(0.001)
        yield i % 100
threads = [threading.Thread(target=read) for _ in range(2)]
[t.start() for t in threads]
history.hint(itertools.islice(slow(), 2000))
loop = history.restore_iter()
for round in range(60):
    time.sleep(0.003)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        history.hint_clear()
        history.clear()
        for call in (lambda: history.hint([1]), lambda: next(loop), lambda: list(history.restore_iter()),
                     lambda: history.restore(1), lambda: history.checkpoint(0, u=np.zeros(3))):
            try:
                call()
            except velocpy.errors.ForkedProcessError:
                continue
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, round
stop = True
[t.join() for t in threads]
""",
    )


@pytest.fixture
def history():
    with velocpy.open(host="4MiB", disk="32MiB", tuning=velocpy.Tuning(lookahead=8)) as store:
        history = store.history("h")
        for i in range(6):
            history.checkpoint(i, u=np.full(100_000, i, np.uint8), meta=i)
        yield history


def test_a_lease_for_the_last_time_that_nobody_used_gives_the_checkpoint_back(history: velocpy.History) -> None:
    lease = history.restore(3, last=True)
    assert 3 not in history
    assert (len(history), list(history)) == (5, [0, 1, 2, 4, 5])
    with pytest.raises(velocpy.errors.CheckpointNotFound):
        history.restore(3)
    del lease
    assert (len(history), 3 in history) == (6, True)
    assert (history.restore(3)["u"] == 3).all()


@pytest.mark.parametrize(
    "use",
    [
        lambda lease: lease["u"],
        lambda lease: lease.meta,
        lambda lease: lease.writable,
        lambda lease: lease.release(),
        lambda lease: lease.__enter__(),
        lambda lease: list(lease),
        lambda lease: len(lease),
        lambda lease: "u" in lease,
        lambda lease: lease.used_on(0),
    ],
)
def test_a_lease_that_was_used_has_consumed(history: velocpy.History, use) -> None:
    lease = history.restore(3, last=True)
    use(lease)
    del lease
    assert 3 not in history
    assert len(history) == 5
    assert history.store.stats()["consumed"] == 1


def test_what_is_written_meanwhile_counts(history: velocpy.History) -> None:
    lease = history.restore(3, last=True)
    history.checkpoint(3, u=np.full(10, 33, np.uint8))
    del lease
    assert (history.restore(3)["u"] == 33).all()
    lease = history.restore(3, last=True)
    history.drop(3)
    del lease
    assert 3 not in history


def test_a_loop_for_the_last_time_consumes_what_it_went_past(history: velocpy.History) -> None:
    history.hint(range(6))
    for key, lease in history.restore_iter(last=True):
        assert lease.key == key
        if key == 3:
            break
    del lease
    assert list(history) == [3, 4, 5]  # nobody used 3
    assert [key for key, lease in history.restore_iter(last=True) if lease["u"][0] == key] == [3, 4, 5]
    assert len(history) == 0


def test_another_for_statement_over_a_loop_gets_again_what_nobody_had(history: velocpy.History) -> None:
    """As after an interruption between the loop and its first variable, with the loop in a variable of its own."""
    history.hint(range(6))
    loop = history.restore_iter(last=True)
    assert next(loop)[0] == 0
    assert [key for key, lease in loop if lease["u"][0] == key] == list(range(6))
    assert len(history) == 0
