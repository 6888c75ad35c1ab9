"""Calls of the public surface, interrupted at every bytecode; a program, so that one that hangs or dies is one result.

    python interrupted.py MODE TIERS COUNT SEED

MODE says what happens at the n-th bytecode of velocpy and of the code that calls it, for n = 1, 2, … until the call
comes to its end (every STEP-th, from a random one on, where COUNT is below EVERY): "raise" a KeyboardInterrupt; or
"collect", the cycle collector, which runs a destructor, or "handle", a handler of a signal, both of which call the
history. "signal" raises from a signal handler at a random time instead. TIERS says what the store has: "memory",
"disk", which ends with the process, or "durable", in "store" where the program runs. All cases are gone through, again
and again until COUNT interruptions have taken place. It prints {"interruptions": n, "wrong": [...]}.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import gc
import json
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import velocpy
from velocpy import ondisk
from velocpy.plan import Advance, Drop, Last, Plan, Restore

HERE = __file__
PACKAGE = str(Path(velocpy.__file__).parent)
HANG = 60
EVERY, STEP = 100_000, 7
KEYS = 5
STORE, OTHER, COPY = Path("store"), Path("other"), Path("copy")
TIERS: dict[str, dict[str, Any]] = {
    "memory": {"host": "2MiB"},
    "disk": {"host": "64KiB", "disk": "4MiB"},
    "durable": {"path": STORE, "host": "64KiB", "disk": "16MiB"},
}


@dataclasses.dataclass
class State:
    """What a case works on, and what it got."""

    store: velocpy.Store
    history: velocpy.History
    seen: list[Any] = dataclasses.field(default_factory=list)
    key: Any = None
    lease: Any = None
    ticket: Any = None
    plan: Any = None
    into: Any = None
    called_back: bool = False


@dataclasses.dataclass
class Case:
    """prepare makes a state ready; call is interrupted; check tells what is wrong, if anything.

    later tells it too, when nothing refers to the call any more. durable: it needs a store that outlives the process.
    """

    call: Callable[[State], Any]
    prepare: Callable[[State], Any] = lambda state: None
    check: Callable[[State, bool], str | None] = lambda state, completed: None
    later: Callable[[State, bool], str | None] = lambda state, completed: None
    durable: bool = False


CASES: dict[str, Case] = {}


def case(**steps: Any) -> Callable[[Callable[[State], Any]], Callable[[State], Any]]:
    def enter(call: Callable[[State], Any]) -> Callable[[State], Any]:
        CASES[call.__name__.removeprefix("call_")] = Case(call, **steps)
        return call

    return enter


# --- what must hold afterwards ---


def either_way(state: State, completed: bool) -> str | None:
    """A restore for the last time: the checkpoint is there, or its lease is."""
    if state.called_back:
        return None
    there, lent = 0 in state.history, state.lease is not None
    if there == lent:
        return f"the checkpoint is {'there' if there else 'gone'}, the lease {'too' if lent else 'as well'}"
    if lent and state.lease["u"][0] != 0:
        return "the lease shows something else"
    return None


def all_seen(state: State, completed: bool) -> str | None:
    """A loop that was interrupted is gone on with by others, and says when the plan cannot be read on."""
    if state.called_back:
        return None
    try:
        rest = [key for key, _ in state.history.restore_iter()]
    except velocpy.errors.PlanUnfinished:
        return None
    wanted = list(range(KEYS))
    came = [*state.seen, *rest]
    lost = [key for key in wanted if key not in came and key != state.key]
    return f"{lost} never came: {state.seen}, then {rest}" if lost else None


def none_lost(state: State, completed: bool) -> str | None:
    """A loop for the last time: each checkpoint came to the caller or is still there, and comes again."""
    if state.called_back:
        return None
    had = set(state.seen)
    if state.lease is not None:
        had.add(state.lease.key)
    state.lease = None
    left = set(state.history)
    rest = {key for key, lease in state.history.restore_iter(last=True) if lease["u"][0] == key}
    if set(range(KEYS)) - had - left:
        return f"lost: had {had}, left {left}"
    if left - had - rest:
        return f"never came again: had {had}, left {left}, then {rest}"
    return None


# --- the calls ---


@case(check=lambda s, done: None if s.called_back or not done or 9 in s.history else "it is not there")
def call_checkpoint(s: State) -> None:
    s.history.checkpoint(9, {"u": ZEROS}, meta={"a": 1})


@case(check=lambda s, done: None if s.called_back or s.history.restore(0)["u"].size else "it is gone")
def call_checkpoint_again(s: State) -> None:
    s.ticket = s.history.checkpoint(0, u=ZEROS, v=ZEROS, copy=False)


def first_ones(state: State, completed: bool) -> str | None:
    """Of checkpoints captured in one call, those that are there are the first ones."""
    there = [key in state.history for key in range(10, 15)]
    wrong = there != sorted(there, reverse=True) or (completed and not all(there))
    return f"of five these are there: {there}" if wrong and not state.called_back else None


@case(prepare=lambda s: s.history.retain(), check=first_ones)  # the rule of another case would drop some
def call_checkpoint_many(s: State) -> None:
    s.history.checkpoint_many((key, {"u": ZEROS}) for key in range(10, 15))


@case()
def call_checkpoint_of_any_key(s: State) -> None:
    s.ticket = s.history.checkpoint(None, [ZEROS])


@case()
def call_restore(s: State) -> None:
    s.lease = s.history.restore(1, ["u"])
    s.lease["u"].sum()


@case(check=either_way)
def call_restore_last(s: State) -> None:
    s.lease = s.history.restore(0, last=True)


@case(prepare=lambda s: s.history.hint([Last(0)]), check=either_way)
def call_restore_hinted_last(s: State) -> None:
    s.lease = s.history.restore(0)


@case(prepare=lambda s: s.history.hint(Plan.learn()), check=either_way)
def call_restore_last_watched(s: State) -> None:
    s.lease = s.history.restore(0, last=True)


@case(check=lambda s, done: None if s.called_back or 0 in s.history or (s.into == 0).all() else "lost")
def call_restore_into_last(s: State) -> None:
    s.history.restore(0, into={"u": s.into}, last=True)


@case(check=lambda s, done: None if (s.into[::2] == 77).all() else "written beside the destination")
def call_restore_part(s: State) -> None:
    s.history.restore(1, into={"u": s.into[1::2]}, parts={"u": np.s_[:25]})


@case()
def call_restore_used(s: State) -> None:
    with s.history.restore(0, last=True) as lease:
        for label in lease:
            assert label in lease
            assert len(lease[label])
        repr(lease), lease.meta, lease.writable, len(lease), lease.key
    lease.release()


def generated(s: State) -> Iterator[int]:
    s.plan = "begun"
    for key in range(KEYS):
        len(s.history)
        yield key


@case(prepare=lambda s: s.history.hint(range(KEYS)), check=all_seen)
def call_loop_in_c(s: State) -> None:
    looped = iter(s.history.restore_iter())
    untraced(lambda: [s.seen.append(key) for key, _ in looped])


@case(check=lambda s, done: all_seen(s, done) if s.plan else None)  # the hint has not happened before
def call_hint_generated(s: State) -> None:
    s.history.hint(generated(s))
    untraced(lambda: [s.seen.append(key) for key, _ in s.history.restore_iter()])


@case(prepare=lambda s: s.history.hint(Plan(range(1)).extend([1, 2]).extend(iter(range(3, KEYS)))), check=none_lost)
def call_loop_last(s: State) -> None:
    for _, s.lease in s.history.restore_iter(last=True):  # noqa: B020
        s.lease["u"].sum()
        s.seen.append(s.lease.key)


@case(prepare=lambda s: s.history.hint(range(KEYS)))
def call_loop_into(s: State) -> None:
    for key, into in s.history.restore_iter(into={"u": s.into}):
        assert s.called_back or (into["u"] == key).all()


@case()
def call_hints(s: State) -> None:
    s.history.hint(3)
    s.history.hint([Restore(1), Advance(2), Drop(4), np.int64(2)])
    s.history.hint(Plan.grouped_reverse([[0, 1], [2]], last=True))
    s.history.hint(Plan.reverse(range(3)).extend("ab"))
    s.history.prefetch()
    s.history.hint_clear()


@case()
def call_learned(s: State) -> None:
    plan = Plan.learn()
    for order in ([0, 1, 2, 3], [0, 2, 3], [2, 3]):
        s.history.hint(plan)
        for key in order:
            s.history.restore(key)
    repr(plan), plan.recorded


@case()
def call_plan_by_hand(s: State) -> None:
    plan = Plan([1, Last(2)]).extend(range(2), last=True)
    assert len([*plan, *Plan.grouped_reverse([[1], [2]])]) == 6
    repr(plan)


@case()
def call_questions(s: State) -> None:
    h = s.history
    h.size(1), h.ready(1), h.tiers(1), h.meta(1), 1 in h, len(h), list(h), repr(h), h.name, h.store


@case()
def call_tickets(s: State) -> None:
    ticket = s.history.checkpoint("t", u=ZEROS)
    ticket.wait()
    ticket.captured, ticket.dropped, ticket.durable("host"), repr(ticket)
    s.history.wait()


@case(check=lambda s, done: None if s.called_back or 0 not in s.history or not done else "it is still there")
def call_drop(s: State) -> None:
    s.history.drop(0)
    s.history.drop(0)


@case()
def call_clear(s: State) -> None:
    s.history.hint(range(3))
    s.history.clear()


@case()
def call_retain(s: State) -> None:
    s.history.retain(last=2, every=2, named=True, keys=[1], best=2, by=("val", "loss"))
    s.history.retain()


@case()
def call_store(s: State) -> None:
    with velocpy.open(host="1MiB") as store:
        store.history("new").checkpoint(0, u=ZEROS)
        store.stats(), store.timeline(), store.costs(), store.histories, repr(store), store.wait()


@case()
def call_resize(s: State) -> None:
    with contextlib.suppress(velocpy.errors.TierUnavailable):  # there is no device
        s.store.resize(device="1MiB")
    if "disk" in s.store.stats()["tiers"]:
        s.store.resize(host="64KiB", disk="1GiB")
    else:
        s.store.resize(host="2MiB")  # what it has: of less the host would keep more than that
    s.store.trim()


# --- and those of a store that outlives the process ---


@case(
    durable=True,
    check=lambda s, done: None if s.called_back or not done or "disk" in s.history.tiers(9) else "it is not on disk",
)
def call_durable(s: State) -> None:
    s.ticket = s.history.checkpoint(9, u=ZEROS)
    s.ticket.wait("disk"), s.ticket.durable("disk")
    s.store.wait("disk"), s.history.wait("disk"), s.store.durable


@case(durable=True)
def call_reader(s: State) -> None:
    with velocpy.open(STORE, mode="r", host="1MiB") as reader:
        for name in [history.name for history in reader.histories]:
            for key in list(reader.history(name)):
                with contextlib.suppress(*ALLOWED):  # the writer may drop it meanwhile
                    assert set(reader.history(name).restore(key).get("u", ZEROS)) <= {key, 0}


def held(directory: str) -> int:
    """How often this process has a directory open whose name begins so."""
    names = []
    for fd in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # another thread has closed it
            names.append(fd.readlink().name)
    return sum(name.startswith(directory) for name in names)


def closed(s: State, completed: bool) -> str | None:
    """Nothing that looks into the store is left open; its writer may open the directory for a moment."""
    gc.collect()
    for _ in range(500):
        if held(STORE.name) <= s.seen[0]:
            return None
        time.sleep(0.01)
    return "the store is still being looked into"


@case(durable=True, prepare=lambda s: s.seen.append(min(held(STORE.name) for _ in range(3))), later=closed)
def call_inspected(s: State) -> None:
    ondisk.contents(STORE)
    assert ondisk.check(STORE).damaged == 0
    with contextlib.suppress(*ALLOWED):  # nothing of it may be on disk yet
        list(ondisk.checkpoints(STORE, "h")), ondisk.describe(STORE, "h", 0)


def copied(s: State, completed: bool) -> str | None:
    """A copy that came to its end is whole; one that did not is closed, and no obstacle to the next."""
    gc.collect()
    if held(f".{COPY.name}-"):
        return "an unfinished copy is still open"
    if completed and (damage := ondisk.check(COPY).damaged):
        return f"{damage} are damaged in the copy"
    shutil.rmtree(COPY, ignore_errors=True)
    s.store.backup(COPY)
    if s.called_back:
        return None
    with velocpy.open(COPY, mode="r", host="1MiB") as copy:
        wrong = [key for key in s.history if shown(copy.history("h"), key) != shown(s.history, key)]
    return f"{wrong} are other bytes in the copy" if wrong else None


def shown(history: velocpy.History, key: Any) -> bytes:
    return bytes(history.restore(key)["u"].tobytes())


@case(durable=True, prepare=lambda s: shutil.rmtree(COPY, ignore_errors=True), later=copied)
def call_backup(s: State) -> None:
    s.store.backup(COPY)


def free(s: State, completed: bool) -> str | None:
    """Whatever became of the call, the store can be opened; what was acknowledged is there.

    A store that was interrupted while it closed goes on with that by itself, which may take a moment.
    """
    gc.collect()
    for _ in range(500):
        with contextlib.suppress(velocpy.errors.StoreLocked):
            opened = velocpy.open(OTHER, host="1MiB", disk="1MiB")
            break
        time.sleep(0.01)
    else:
        return "it stays locked"
    with opened as store:
        if completed and list(store.history("new")) != [0]:
            return f"it has {list(store.history('new'))}"
    return None


@case(durable=True, prepare=lambda s: shutil.rmtree(OTHER, ignore_errors=True), later=free)
def call_another(s: State) -> None:
    with velocpy.open(OTHER, host="1MiB", disk="1MiB") as store:
        store.history("new").checkpoint(0, u=ZEROS)
    ondisk.repair(OTHER)
    ondisk.collect(OTHER)


ZEROS = np.zeros(50, np.uint8)


def untraced(call: Callable[[], Any]) -> Any:
    """What the caller does with what it was given is not interrupted: it would lose it by itself."""
    return call()


UNTOUCHED = {untraced.__code__}


# --- the interruptions ---


class Garbage:
    """A cycle whose destructor calls a history."""

    def __init__(self, body: Callable[[], None]) -> None:
        self.body, self.cycle = body, self

    def __del__(self) -> None:
        self.body()


def use(history: velocpy.History, rng: random.Random) -> None:
    """What a handler or a destructor may do."""
    calls: list[Callable[[], Any]] = [
        history.hint_clear,
        lambda: history.hint([1, 2]),
        lambda: history.restore(1)["u"].sum(),
        lambda: history.checkpoint(1, u=ZEROS),
        lambda: history.drop(2),
        lambda: [key for key, _ in history.restore_iter()],
        lambda: history.store.history("other " + str(rng.randrange(10))).checkpoint(0, u=ZEROS),
        lambda: history.store.stats(),
        history.clear,
    ]
    for call in rng.sample(calls, 2):
        with contextlib.suppress(*ALLOWED):
            call()


#: What calls may raise when another call came between.
ALLOWED = (velocpy.errors.CheckpointNotFound, velocpy.errors.CheckpointDropped, velocpy.errors.PlanUnfinished)


class Tracer:
    """Acts once, at the n-th bytecode."""

    def __init__(self, n: int, act: Callable[[], None]) -> None:
        self.left, self.act = n, act

    def __call__(self, frame: Any, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code in UNTOUCHED or not (
            code.co_filename.startswith(PACKAGE)
            or (code.co_filename == HERE and (code.co_name.startswith("call_") or code.co_name == "generated"))
        ):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                self.act()
        return self

    @property
    def acted(self) -> bool:
        return self.left <= 0


class Failures:
    """What destructors could not raise."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        sys.unraisablehook = lambda unraisable: self.texts.append(repr(unraisable.exc_value))


def works(store: velocpy.Store, history: velocpy.History) -> None:
    """The store does what it always does."""
    history.hint_clear()
    history.clear()
    history.checkpoint(0, u=ZEROS)
    history.checkpoint(1, u=ZEROS)
    history.hint([0, Last(1)])
    assert [key for key, _ in history.restore_iter()] == [0, 1]
    assert list(history) == [0], list(history)
    history.drop(0)
    assert len(history) == 0


def reopened(store: velocpy.Store, history: velocpy.History) -> list[str]:
    """Closes the store; what it had in the end is there when it is opened again, and nothing else."""
    for key in range(KEYS):
        history.checkpoint(key, u=np.full(50, key, np.uint8))
    store.close()
    if damage := ondisk.check(STORE).damaged:
        return [f"{damage} checkpoints are damaged"]
    with velocpy.open(STORE, host="1MiB", disk="16MiB") as store:
        if list(store.history("h")) != list(range(KEYS)):
            return [f"{list(store.history('h'))} are there after all"]
        return [f"{key} is another" for key in range(KEYS) if (store.history("h").restore(key)["u"] != key).any()]


def run(mode: str, tiers: str, count: int, seed: int) -> dict[str, Any]:
    gc.freeze()  # what was imported is no garbage: the collector, which runs thousands of times, need not look at it
    rng = random.Random(seed)
    failures = Failures()
    wrong: list[str] = []
    interruptions = 0
    store = velocpy.open(**TIERS[tiers], tuning=velocpy.Tuning(lookahead=4))
    history = store.history("h")
    armed = False

    def strike(number: int, frame: Any) -> None:
        nonlocal armed, interruptions
        if armed:
            armed = False
            interruptions += 1
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, strike)

    def once(name: str, n: int) -> bool:
        """Interrupts a case at its n-th bytecode; false when it had fewer."""
        nonlocal armed, interruptions
        faulthandler.dump_traceback_later(HANG, exit=True)
        this = CASES[name]
        state = State(store, history, into=np.full(50, 77, np.uint8))
        for key in range(KEYS):
            history.checkpoint(key, u=np.full(50, key, np.uint8), meta=key)
        this.prepare(state)

        def act() -> None:
            nonlocal interruptions
            interruptions += 1
            if mode == "raise":
                raise KeyboardInterrupt
            state.called_back = True
            if mode == "handle":
                use(history, rng)
            else:
                Garbage(lambda: use(history, rng))
                gc.collect()

        tracer = Tracer(n, act)
        completed = False
        kept: BaseException | None = None  # with its traceback, as in a notebook
        try:
            try:
                if mode == "signal":
                    armed = True
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 3e-4))
                else:
                    sys.settrace(tracer)
                this.call(state)
                completed = True
            finally:
                armed = False
                sys.settrace(None)
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt as error:
            kept = error
        except ALLOWED:
            if not state.called_back:
                raise
        if text := this.check(state, completed):
            wrong.append(f"{name}, {mode} at {n}: {text}")
        del kept
        if text := this.later(state, completed):
            wrong.append(f"{name}, {mode} at {n}: {text}")
        state.lease = None
        works(store, history)
        return tracer.acted

    names = [name for name in CASES if tiers == "durable" or not CASES[name].durable]
    step = 1 if count >= EVERY else STEP
    while interruptions < count and not wrong:
        for name in names:
            if mode == "signal":
                for _ in range(40):
                    once(name, 0)
                continue
            n = 1 + rng.randrange(step)
            while once(name, n):
                n += step
    faulthandler.cancel_dump_traceback_later()
    if tiers == "durable":
        wrong += reopened(store, history)
    store.close()
    wrong += [text for text in failures.texts if "KeyboardInterrupt" not in text]
    return {"interruptions": interruptions, "wrong": wrong[:10]}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
