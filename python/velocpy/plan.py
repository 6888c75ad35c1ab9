"""Plans: what will be restored, in which order, told lazily.

`Restore` and `Advance` are advice: late, missing or wrong they cost time, never correctness. `Last` and `Drop` also say
when a checkpoint ends.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Reversible, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from .errors import InvalidArgument, InvalidType

Key = int | str

RESTORE, LAST, DROP, ADVANCE = 0, 1, 2, 3


def plain_key(key: Any) -> Any:
    """The key as an int, when it is an integer of another type (NumPy's); anything else as it is."""
    if type(key) is int or isinstance(key, (str, bool)) or not isinstance(key, Integral):
        return key
    return int(key)


@dataclass(frozen=True, slots=True)
class Restore:
    """The checkpoint of ``key`` will be restored."""

    key: Key


@dataclass(frozen=True, slots=True)
class Last:
    """The checkpoint of ``key`` will be restored for the last time: that restore consumes it."""

    key: Key


@dataclass(frozen=True, slots=True)
class Drop:
    """The checkpoint of ``key`` is dropped when everything before this in the plan has been restored.

    With nothing before it that is at once or, at the latest, with the history's next restore.
    """

    key: Key


@dataclass(frozen=True, slots=True)
class Advance:
    """``steps`` restore intervals pass without a restore: the next ones are that much further away."""

    steps: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 0:
            raise InvalidArgument(f"Advance takes a number of restore intervals from 0 up, not {self.steps!r}.")


Op = Restore | Last | Drop | Advance


class Plan:
    """A lazy, extendable sequence of hints, used up by the history it is given to.

    ``ops`` is any iterable of keys and of `Restore`, `Last`, `Drop`, `Advance`; it is read only as far ahead as the
    store looks. An endless generator is fine.

    Examples
    --------
    >>> from velocpy import Advance, Drop, Last, Plan
    >>> plan = Plan([3, Last(2), Drop(3)]).extend([Advance(4), 1])
    >>> list(plan)
    [Restore(key=3), Last(key=2), Drop(key=3), Advance(steps=4), Restore(key=1)]
    """

    def __init__(self, ops: Iterable[Any] = (), *, last: bool = False) -> None:
        self._parts: deque[Iterator[Op]] = deque()
        self._on_extension: list[Callable[[], None]] = []
        self._given = 0
        self.extend(ops, last=last)

    @classmethod
    def forward(cls, keys: Iterable[Key], *, last: bool = False) -> Plan:
        """The keys in their order.

        >>> list(Plan.forward("ab"))
        [Restore(key='a'), Restore(key='b')]
        """
        return cls(keys, last=last)

    @classmethod
    def reverse(cls, keys: Iterable[Key], *, last: bool = False) -> Plan:
        """The keys backwards: the plan of an adjoint sweep. A range or a sequence is not copied.

        >>> list(Plan.reverse(range(3), last=True))
        [Last(key=2), Last(key=1), Last(key=0)]
        """
        return cls(_reversed(keys), last=last)

    @classmethod
    def grouped_reverse(cls, groups: Iterable[Iterable[Key]], *, last: bool = False) -> Plan:
        """The groups backwards, the keys of each group in their order: steps reversed, items inside a step forward.

        >>> list(Plan.grouped_reverse([["a0", "b0"], ["a1"]]))
        [Restore(key='a1'), Restore(key='a0'), Restore(key='b0')]
        """
        return cls((key for group in _reversed(groups) for key in _group(group)), last=last)

    @staticmethod
    def learn() -> LearnedPlan:
        """A plan that records one sweep's order and foretells it in the next; give it to `History.hint` before each."""
        return LearnedPlan()

    def extend(self, ops: Iterable[Any], *, last: bool = False) -> Plan:
        """Appends hints, also while the plan is in use; returns the plan."""
        self._parts.append(_ops(ops, last))
        for wake in self._on_extension:
            wake()
        self._on_extension.clear()
        return self

    def __iter__(self) -> Iterator[Op]:
        return self

    def __next__(self) -> Op:
        while self._parts:
            part = self._parts[0]
            try:
                op = next(part)
            except StopIteration:
                if self._parts and self._parts[0] is part:
                    self._parts.popleft()
            else:
                self._given += 1
                return op
        raise StopIteration

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._status()}>"

    def _repr_html_(self) -> str:
        from . import html

        return html.plan(self)

    def _status(self) -> str:
        """How far it was read; reading on would use it up."""
        return f"{self._given} hints read, {'more to come' if self._parts else 'used up'}"

    # --- what a Feed needs ---

    def _begin(self) -> None:
        """The plan is given to a history."""

    def _observe(self, key: Key) -> bool:
        """A restore took place; true when what was told before does not hold any more and telling begins anew."""
        return False

    def _ended(self, wake: Callable[[], None]) -> None:
        """The plan has nothing to tell at present; wake is called once when it was extended."""
        self._on_extension.append(wake)


class LearnedPlan(Plan):
    """The order of the last sweep, replayed; made by `Plan.learn`.

    A sweep begins when the plan is given to `History.hint`. The first one is recorded only. In later ones a restore
    that deviates moves the plan on to where the recording has that key next; keys the recording does not have are
    passed over.
    """

    def __init__(self) -> None:
        super().__init__()
        self._recorded: list[Key] = []
        self._places: dict[Key, list[int]] = {}
        self._recording: list[Key] = []
        self._told = 0
        self._reached = 0

    @property
    def recorded(self) -> Sequence[Key]:
        """The order that is being replayed; empty in the first sweep."""
        return tuple(self._recorded)

    def __next__(self) -> Op:
        if self._told < len(self._recorded):
            self._told += 1
            return Restore(self._recorded[self._told - 1])
        return super().__next__()

    def _status(self) -> str:
        return f"{self._reached} of {len(self._recorded)} recorded restores done, {len(self._recording)} being recorded"

    def _begin(self) -> None:
        if self._recording:
            self._recorded, self._recording = self._recording, []
            self._places = {}
            for place, key in enumerate(self._recorded):
                self._places.setdefault(key, []).append(place)
        self._told = self._reached = 0

    def _observe(self, key: Key) -> bool:
        self._recording.append(key)
        if self._reached < len(self._recorded) and self._recorded[self._reached] == key:
            self._reached += 1
            return False
        ahead = next((place for place in self._places.get(key, ()) if place > self._reached), None)
        if ahead is None:
            return False
        self._told = self._reached = ahead + 1
        return True


class Feed:
    """What one history has been told and has yet to be told; keeps the core's queue filled from lazy sources.

    Sources belong to the caller: they are read outside of every lock, may call the store, and may raise, which ends
    them and surfaces in the call that read on.
    """

    #: How often a restore may be overtaken before it is no more expected; the core's plan has the same patience.
    PATIENCE = 8

    def __init__(self, lookahead: int) -> None:
        self._lookahead = lookahead
        self._lock = threading.Lock()
        self._sources: deque[Iterator[Op]] = deque()
        self._watchers: list[Plan] = []
        self._expected: deque[tuple[Key, bool]] = deque()
        self._overtaken = 0
        self._iterating = 0
        self._reading = False
        self._left = 0
        #: Whether restores have to be reported at all. False until the first hint: the usual case costs one look.
        self.active = False

    @property
    def hungry(self) -> bool:
        """Whether there is something to read, and room for an eighth of what the core may know.

        Filled up that often, the core always knows enough to prefetch evenly.
        """
        return (
            bool(self._sources)
            and self._left <= self._lookahead - max(self._lookahead // 8, 1)
            and len(self._expected) < 2 * self._lookahead
            and not self._reading
        )

    def add(self, source: Iterable[Any], last: bool) -> None:
        """Queues a source behind the others."""
        self.active = True
        if isinstance(source, Plan):
            source._begin()
            if source not in self._watchers:
                self._watchers.append(source)
            self._sources.append(source)
        else:
            self._sources.append(_ops(source, last))

    def top_up(self, tell: Callable[[list[tuple[int, Any]]], int]) -> None:
        """Reads sources and tells the core, until it knows enough. tell returns the restores queued."""
        with self._lock:
            if not self.hungry:
                return
            self._reading = True
        try:
            self._fill(tell)
        except BaseException:
            self._sources.clear()
            raise
        finally:
            self._reading = False

    def _fill(self, tell: Callable[[list[tuple[int, Any]]], int]) -> None:
        room = self._lookahead - self._left
        batch: list[Op] = []
        try:
            while len(batch) < room and (op := self._next()) is not None:
                batch.append(op)
        finally:
            if batch:
                self._left = tell([_item(op) for op in batch])
                with self._lock:
                    self._expected.extend(
                        (op.key, isinstance(op, Last)) for op in batch if isinstance(op, (Restore, Last))
                    )

    def _next(self) -> Op | None:
        while self._sources:
            source = self._sources[0]
            try:
                return next(source)
            except StopIteration:
                if self._sources and self._sources[0] is source:
                    self._sources.popleft()
                if isinstance(source, Plan):
                    source._ended(lambda source=source: self._sources.append(source))  # type: ignore[misc]
        return None

    def restored(self, key: Key, left: int, iterated: bool = False) -> bool:
        """Notes a restore and how many the core still expects; true when the core has to be told anew."""
        self._left = left
        if not iterated:
            with self._lock:
                self._met(key)
        anew = [plan for plan in self._watchers if plan._observe(key)]
        if not anew:
            return False
        with self._lock:
            self._expected.clear()
            self._left = 0
        for plan in anew:
            if plan not in self._sources:
                self._sources.append(plan)
        return True

    def _met(self, key: Key) -> None:
        """Takes the restore out of what is expected; who is overtaken too often is not expected any more."""
        if self._iterating:
            return  # the loop restores every key it was told, whatever else is restored beside it
        if self._expected and self._expected[0][0] == key:
            self._expected.popleft()
            self._overtaken = 0
            return
        for place, (expected, _) in enumerate(self._expected):
            if expected == key:
                del self._expected[place]
                self._overtaken += 1
                break
        if self._overtaken > self.PATIENCE and self._expected:
            self._expected.popleft()
            self._overtaken = 0

    def noted(self, left: int) -> None:
        """Notes how many restores the core still expects."""
        self._left = left

    def take(self) -> tuple[Key, bool] | None:
        """The next restore expected, for a loop over the plan."""
        with self._lock:
            return self._expected.popleft() if self._expected else None

    def put_back(self, step: tuple[Key, bool]) -> None:
        """The step taken did not happen."""
        with self._lock:
            self._expected.appendleft(step)

    def iterate(self, change: int) -> None:
        """Counts the loops over the plan."""
        with self._lock:
            self._iterating += change

    def clear(self) -> None:
        """Forgets everything that was told."""
        with self._lock:
            self._sources.clear()
            self._watchers.clear()
            self._expected.clear()
            self._overtaken = self._left = 0

    def __len__(self) -> int:
        return len(self._expected)


def _reversed(keys: Iterable[Any]) -> Iterator[Any]:
    if not isinstance(keys, Iterable):
        raise InvalidType(f"keys are an iterable, as in Plan.reverse(range(5)), not {type(keys).__name__}.")
    return reversed(keys if isinstance(keys, (Sequence, Reversible)) else list(keys))


def _group(group: Iterable[Key]) -> Iterable[Key]:
    if not isinstance(group, Iterable):
        raise InvalidType(f"a group is an iterable of keys, not {type(group).__name__}.")
    return group


def _ops(source: Iterable[Any], last: bool) -> Iterator[Op]:
    try:
        iterator = iter(source)
    except TypeError:
        raise InvalidType(f"a plan is an iterable of keys and hints, not {type(source).__name__}.") from None
    return (
        item
        if isinstance(item, (Restore, Last, Drop, Advance))
        else Last(plain_key(item))
        if last
        else Restore(plain_key(item))
        for item in iterator
    )


def _item(op: Op) -> tuple[int, Any]:
    if isinstance(op, Restore):
        return RESTORE, op.key
    if isinstance(op, Last):
        return LAST, op.key
    if isinstance(op, Drop):
        return DROP, op.key
    return ADVANCE, op.steps
