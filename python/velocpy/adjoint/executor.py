"""Runs a model under a schedule, its checkpoints in a history."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import checkpoint_schedules as cs

from velocpy.errors import InvalidType
from velocpy.plan import Op

from .model import Array, Model, TakesState
from .schedule import TIERS, Contents, ScheduleError, hints, require_schedule
from .work import Work


@dataclass
class Tally:
    """What a run did."""

    steps: int = 0  #: length of the forward computation
    forward_steps: int = 0  #: steps computed, repetitions included
    adjoint_steps: int = 0
    saved: int = 0
    restored: int = 0
    dropped: int = 0


def drive(
    schedule: Any,
    model: Model,
    history: Any,
    *,
    steps: int | None = None,
    until: Callable[[int], bool] | None = None,
    adjoints: int = 1,
) -> Tally:
    """Runs ``model`` forward and backward as a schedule of the package checkpoint_schedules says.

    Restart data and adjoint dependencies that the schedule puts into memory or on disk become checkpoints of
    ``history``, with the level as their tier; what will be read next is hinted as soon as it is known. The adjoint is,
    to the last bit, that of a run with everything in memory, whatever the schedule and the budgets.

    Parameters
    ----------
    schedule
        A fresh schedule of any kind.
    model
        Stands at the start of step 0.
    history
        Keys of it that look like ``"ram/restart/12"`` are the schedule's; what is left of them at the end is dropped.
    steps
        Length of the forward computation; needed by online schedules unless ``until`` is given.
    until
        For online schedules: asked after each step of the first sweep with the number of steps done; true ends it.
    adjoints
        How many adjoint sweeps to run, for schedules that allow several.

    Raises
    ------
    ScheduleError
        When the schedule does not fit the model, or ends before the sweeps asked for are done.

    Examples
    --------
    The derivative of the last ``x`` by the first, for ``x`` repeatedly replaced by its sine:

    >>> import numpy, velocpy
    >>> from checkpoint_schedules import HRevolve
    >>> class Sines:
    ...     def __init__(self):
    ...         self.x = numpy.array([1.0])
    ...     def state(self):
    ...         return {"x": self.x}
    ...     def step(self, n, keep):
    ...         kept = {"x": self.x.copy()} if keep else None
    ...         self.x[:] = numpy.sin(self.x)
    ...         return kept
    ...     def begin_adjoint(self, steps):
    ...         self.slope = 1.0
    ...     def adjoint_step(self, n, kept):
    ...         self.slope *= float(numpy.cos(kept["x"][0]))
    >>> model = Sines()
    >>> with velocpy.open(host="1MiB", disk="16MiB") as store:
    ...     tally = drive(HRevolve(100, 4, 4), model, store.history("sines"))
    >>> tally.steps, tally.forward_steps > 100, f"{model.slope:.12f}"
    (100, True, '0.003698619786')
    """
    for what, given, needed in (("model", model, "step"), ("history", history, "checkpoint")):
        if not hasattr(given, needed):
            raise InvalidType(f"drive() was given {given!r:.60} as its {what}, which has no {needed}().")
    run = Run(schedule, model, history, steps, until)
    try:
        run.through(adjoints)
    finally:
        run.close()
    return run.tally


class Run:
    """One run: where the forward stands, and what the working memory and the history hold.

    `forward` and then `reverse` are its two phases; `hint` comes before either. Call `close` at the end, whatever
    happened before.

    Parameters
    ----------
    schedule, model, history, steps, until
        As for `drive`.
    tiers
        The tier of a history for each level of the schedule.
    prefix
        What the keys begin with.
    """

    def __init__(
        self,
        schedule: Any,
        model: Model,
        history: Any,
        steps: int | None,
        until: Callable[[int], bool] | None = None,
        *,
        tiers: Mapping[Any, Any] = TIERS,
        prefix: str = "",
    ) -> None:
        require_schedule(schedule)
        name = type(schedule).__name__
        if hasattr(schedule, "iter"):
            raise ScheduleError(f"{name} has started already: each run needs a fresh schedule")
        if schedule.max_n is None and steps is None and until is None:
            raise ScheduleError(f"{name} is online: say how long the forward computation is, by steps= or until=")
        if schedule.max_n is not None and steps not in (None, schedule.max_n):
            raise ScheduleError(f"{name} was made for {schedule.max_n} steps, not for {steps}")
        self._schedule = schedule
        self._actions: Iterator[Any] = iter(schedule)
        self._tiers = tiers
        self._model = model
        self._history = history
        self._ends = until or (lambda done: done == steps)
        self._at: int | None = 0
        self._sweeping = False
        self._contents = Contents(prefix)
        self._closed = threading.Event()
        self._work = Work()
        self.tally = Tally()

    def through(self, adjoints: int) -> None:
        """Both phases, with so many adjoint sweeps. Without any nothing runs."""
        if not adjoints:
            return
        known = self._schedule.max_n is not None
        if known:
            self.hint(adjoints)
        self.forward()
        if not known:
            self.hint(adjoints)
        self.reverse(adjoints)

    def forward(self) -> None:
        """Runs the schedule up to the end of the forward computation."""
        for action in self._actions:
            if isinstance(action, cs.EndForward):
                self.tally.steps = self._schedule.max_n
                return
            self._execute(action)

    def reverse(self, adjoints: int = 1) -> None:
        """Runs so many adjoint sweeps."""
        while adjoints and (action := next(self._actions, None)) is not None:
            if isinstance(action, cs.EndReverse):
                self._sweeping = False
                adjoints -= 1
            elif isinstance(action, cs.Reverse):
                self._reverse(action, clear=action.clear_adj_deps and not self._reads_again(adjoints))
            else:
                self._execute(action)
        if adjoints and not isinstance(self._schedule, cs.NoneCheckpointSchedule):
            raise ScheduleError(f"{type(self._schedule).__name__} ended with adjoint sweeps left to do: {adjoints}")

    def close(self) -> None:
        """Forgets what no sweep needs any more."""
        self._closed.set()
        self._work.close()
        for key in self._contents:
            self._history.drop(key)
            self.tally.dropped += 1

    def hint(self, adjoints: int) -> None:
        """Hints the restores from here to the end; the history looks ahead in the schedule as far as it likes."""
        self._actions, ahead = itertools.tee(self._actions)
        self._history.hint(_until(self._closed, hints(ahead, adjoints, self._contents)))

    def _execute(self, action: Any) -> None:
        if isinstance(action, cs.Forward):
            self._forward(action)
        elif isinstance(action, cs.Copy | cs.Move):
            self._bring(action)

    def _forward(self, action: Any) -> None:
        if self._at != action.n0:
            raise ScheduleError(f"{action!r}: the forward stands at the start of step {self._at}")
        kinds = self._contents.write(action)
        if "restart" in kinds:
            self._save(action, "restart", self._model.state())
        for n in action:
            self._work.secure()
            kept = self._model.step(n, bool(action.write_adj_deps))
            self.tally.forward_steps += 1
            self._at = n + 1
            if action.write_adj_deps:
                self._keep(action, n, kept, outside="adjoint" in kinds)
            if self._schedule.max_n is None and self._ends(n + 1):
                self._schedule.finalize(n + 1)
                break

    def _keep(self, action: Any, n: int, kept: Mapping[str, Array] | None, outside: bool) -> None:
        if kept is None:
            raise ScheduleError(f"the model gave nothing for the adjoint of step {n}, although asked to keep it")
        if not outside:
            self._work.borrow(n, kept)
        elif n != action.n0:
            raise ScheduleError(f"{action!r}: adjoint data of several steps under one key")
        else:
            self._save(action, "adjoint", kept)

    def _save(self, action: Any, kind: str, arrays: Mapping[str, Array]) -> None:
        key = self._contents.key(action.storage, kind, action.n0)
        self._history.checkpoint(key, arrays, tier=self._tiers[action.storage])
        self.tally.saved += 1

    def _reads_again(self, adjoints: int) -> bool:
        """SingleMemory asks to clear what its next adjoint sweep reads."""
        return adjoints > 1 and isinstance(self._schedule, cs.SingleMemoryStorageSchedule)

    def _reverse(self, action: Any, clear: bool) -> None:
        if not self._sweeping:
            self._model.begin_adjoint(self._schedule.max_n)
            self._sweeping = True
        for n in action:
            self._model.adjoint_step(n, self._work.of(n))
            self.tally.adjoint_steps += 1
            if clear:
                self._work.clear(n)

    def _bring(self, action: Any) -> None:
        """Executes a Copy or a Move."""
        last = isinstance(action, cs.Move)
        for kind in self._contents.read(action):
            key = self._contents.key(action.from_storage, kind, action.n)
            if action.to_storage is cs.StorageType.NONE:
                self._history.drop(key)
                self.tally.dropped += 1
                continue
            self.tally.restored += 1
            if action.to_storage in TIERS:
                with self._history.restore(key, last=last) as arrays:
                    copied = self._contents.key(action.to_storage, kind, action.n)
                    self._history.checkpoint(copied, arrays, tier=self._tiers[action.to_storage])
            elif kind == "restart":
                self._go_on(key, action.n, last)
            else:
                self._work.lease(action.n, self._history.restore(key, last=last))

    def _go_on(self, key: str, n: int, last: bool) -> None:
        """Puts the model back to the start of step ``n``."""
        self._work.secure()
        if isinstance(self._model, TakesState):
            with self._history.restore(key, last=last) as arrays:
                self._model.set_state(arrays)
        else:
            self._history.restore(key, into=self._model.state(), last=last)
        self._at = n


def _until(closed: threading.Event, ops: Iterator[Op]) -> Iterator[Op]:
    """The hints of a run; none after it has been closed, as a run that failed restores nothing more."""
    for op in ops:
        if closed.is_set():
            return
        yield op
