"""Plans: what will be restored, in which order, told lazily.

`Restore` and `Advance` are advice: late, missing or wrong they cost time, never correctness. `Last` and `Drop` also say
when a checkpoint ends.

A plan here is a source of hints, which the shim reads. The order in which a history expects its restores is kept by the
core alone (gocore/policy/plan): which hints have been met, overtaken or withdrawn, and what is guessed without any.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Reversible, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from . import _core, html
from .errors import InvalidArgument, InvalidType
from .interfaces import Key


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
    """``steps`` restore intervals pass without a restore: the next ones are that much further away.

    It matters beside other histories: where room has to be made, what is needed later goes first. An interval is the
    time between two restores of this history, as it is measured. More than 2**24 intervals count as so many.
    """

    steps: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 0:
            raise InvalidArgument(f"Advance takes a number of restore intervals from 0 up, not {self.steps!r}.")


Op = Restore | Last | Drop | Advance

#: What a history reads hints from: an iterator, and whether its keys count as `Last`; or a plan.
Source = tuple[Iterator[Any] | None, bool, "Plan | None"]


class Plan:
    """A lazy, extendable sequence of hints, used up by the history it is given to.

    ``ops`` is any iterable of keys and of `Restore`, `Last`, `Drop`, `Advance`; it is read only as far ahead as the
    store looks. An endless generator is fine.

    Examples
    --------
    >>> from velocpy.plan import Advance, Drop, Last, Plan
    >>> plan = Plan([3, Last(2), Drop(3)]).extend([Advance(4), 1])
    >>> list(plan)
    [Restore(key=3), Last(key=2), Drop(key=3), Advance(steps=4), Restore(key=1)]
    """

    def __init__(self, ops: Iterable[Any] = (), *, last: bool = False) -> None:
        # _core.Reader reads these three as well: nothing that it has read is in a frame that an interruption discards.
        self._parts: deque[tuple[Iterator[Any], bool]] = deque()
        self._feeds: list[deque[Source]] = []
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
        return cls(itertools.chain.from_iterable(map(_group, _reversed(groups))), last=last)

    @staticmethod
    def learn() -> LearnedPlan:
        """A plan that records one sweep's order and foretells it in the next; give it to `History.hint` before each."""
        return LearnedPlan()

    def extend(self, ops: Iterable[Any], *, last: bool = False) -> Plan:
        """Appends hints, also while the plan is in use; returns the plan."""
        _core.extend_plan(self, _iterator(ops), bool(last))
        return self

    def __iter__(self) -> Iterator[Op]:
        return self

    def __next__(self) -> Op:
        while self._parts:
            part = self._parts[0]
            try:
                item = next(part[0])
            except StopIteration:
                if self._parts and self._parts[0] is part:
                    self._parts.popleft()
            else:
                self._given += 1
                return _op(item, part[1])
        raise StopIteration

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._status()}>"

    def _repr_html_(self) -> str:
        return html.plan(self)

    def _status(self) -> str:
        """How far it was read; reading on would use it up."""
        return f"{self._given} hints read, {'more to come' if self._parts else 'used up'}"

    # --- what a history needs ---

    def _begin(self) -> None:
        """The plan is given to a history."""

    def _observe(self, key: Key) -> bool:
        """A restore took place; true when what was told before does not hold any more and telling begins anew."""
        return False


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
        self._replay: Iterator[Key] = iter(())
        self._reached = 0

    @property
    def recorded(self) -> Sequence[Key]:
        """The order that is being replayed; empty in the first sweep."""
        return tuple(self._recorded)

    def _status(self) -> str:
        return f"{self._reached} of {len(self._recorded)} recorded restores done, {len(self._recording)} being recorded"

    def _begin(self) -> None:
        if self._recording:
            places: dict[Key, list[int]] = {}
            for place, key in enumerate(self._recording):
                places.setdefault(key, []).append(place)
            self._recorded, self._recording, self._places = self._recording, [], places
        self._replay_from(0)

    def _replay_from(self, place: int) -> None:
        replay = itertools.islice(self._recorded, place, None)
        others = [part for part in self._parts if part[0] is not self._replay]
        self._parts = deque([(replay, False), *others])
        self._replay, self._reached = replay, place

    def _observe(self, key: Key) -> bool:
        self._recording.append(key)
        recorded, reached = self._recorded, self._reached  # a signal handler may begin another sweep meanwhile
        if reached < len(recorded) and recorded[reached] == key:
            self._reached = reached + 1
            return False
        ahead = next((place for place in self._places.get(key, ()) if place > self._reached), None)
        if ahead is None:
            return False
        self._replay_from(ahead + 1)
        return True


def source_of(plan: Iterable[Any], last: bool) -> Source:
    """What a history reads a plan from."""
    if isinstance(plan, Plan):
        plan._begin()
        if type(plan).__next__ is Plan.__next__:
            return None, False, plan
    return _iterator(plan), bool(last), None


def _reversed(keys: Iterable[Any]) -> Iterator[Any]:
    if not isinstance(keys, Iterable):
        raise InvalidType(f"keys are an iterable, as in Plan.reverse(range(5)), not {type(keys).__name__}.")
    return reversed(keys if isinstance(keys, (Sequence, Reversible)) else list(keys))


def _group(group: Iterable[Key]) -> Iterable[Key]:
    if not isinstance(group, Iterable):
        raise InvalidType(f"a group is an iterable of keys, not {type(group).__name__}.")
    return group


def _iterator(source: Iterable[Any]) -> Iterator[Any]:
    try:
        return iter(source)
    except TypeError:
        raise InvalidType(f"a plan is an iterable of keys and hints, not {type(source).__name__}.") from None


def _op(item: Any, last: bool) -> Op:
    if isinstance(item, (Restore, Last, Drop, Advance)):
        return item
    key = plain_key(item)
    return Last(key) if last else Restore(key)
