"""Reading the schedules of the package checkpoint_schedules: levels, keys, and what they will do to a history."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from velocpy.errors import InvalidType, VelocError
from velocpy.extra import MissingExtra
from velocpy.plan import Advance, Drop, Last, Op, Restore

try:
    import checkpoint_schedules as cs
except ImportError:
    raise MissingExtra("checkpoint_schedules", "adjoint", "velocpy.adjoint") from None

#: The tier of a history in which each level of a schedule lives first.
TIERS = {cs.StorageType.RAM: "host", cs.StorageType.DISK: "disk"}


class ScheduleError(VelocError):
    """A schedule asks for something that cannot be done: data it never stored, or a step it does not stand at."""


def key_of(level: Any, kind: str, step: int) -> str:
    """The key under which a schedule's data lie: a step may lie in two levels, and with two kinds of data, at once.

    Examples
    --------
    >>> key_of(cs.StorageType.RAM, "restart", 12)
    'ram/restart/12'
    """
    return f"{level.name.lower()}/{kind}/{step}"


class Contents:
    """Which kinds of data lie where, as a schedule's actions say.

    All keys begin with ``prefix``: runs with different prefixes share a history.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._kinds: dict[tuple[Any, int], tuple[str, ...]] = {}

    def key(self, level: Any, kind: str, step: int) -> str:
        """The key of such data in the history."""
        return self._prefix + key_of(level, kind, step)

    def write(self, action: Any) -> tuple[str, ...]:
        """The kinds that a Forward stores outside of the working memory."""
        kinds = ("restart",) * bool(action.write_ics) + ("adjoint",) * bool(action.write_adj_deps)
        if action.storage not in TIERS or not kinds:
            return ()
        self._kinds[action.storage, action.n0] = kinds
        return kinds

    def read(self, action: Any) -> tuple[str, ...]:
        """The kinds that a Copy or a Move brings; after a Move they are gone."""
        place = (action.from_storage, action.n)
        try:
            kinds = self._kinds.pop(place) if isinstance(action, cs.Move) else self._kinds[place]
        except KeyError:
            raise ScheduleError(f"{action!r}: nothing is stored there") from None
        if action.to_storage in TIERS:
            self._kinds[action.to_storage, action.n] = kinds
        return kinds

    def copy(self) -> Contents:
        """The same contents, to go on from independently."""
        other = Contents(self._prefix)
        other._kinds = dict(self._kinds)
        return other

    def __iter__(self) -> Iterator[str]:
        """The keys of all that is stored now."""
        for (level, step), kinds in self._kinds.items():
            yield from (self.key(level, kind, step) for kind in kinds)


def hints(actions: Iterable[Any], adjoints: int = 1, contents: Contents | None = None) -> Iterator[Op]:
    """What ``actions`` will ask of a history, up to the end of so many adjoint sweeps. Lazy.

    ``contents`` is what the schedule stored before the first of them; it is left alone.
    """
    contents, pace = contents.copy() if contents else Contents(), _Pace()
    for action in actions:
        if isinstance(action, cs.Forward):
            contents.write(action)
            pace.steps += len(action)
        elif isinstance(action, cs.Reverse):
            pace.steps += len(action)
        elif isinstance(action, cs.Copy | cs.Move):
            yield from pace.pause()
            kinds = contents.read(action)
            yield from _reads(action, [contents.key(action.from_storage, kind, action.n) for kind in kinds])
        elif isinstance(action, cs.EndForward):
            pace = _Pace()
        elif isinstance(action, cs.EndReverse):
            adjoints -= 1
            if adjoints == 0:
                break


class _Pace:
    """How many steps usually lie between two restores, so that a long stretch without any can be announced."""

    def __init__(self) -> None:
        self.steps = 0
        self._before = 0
        self._restores = 0

    def pause(self) -> Iterator[Op]:
        """The usual intervals that passed since the last restore, beyond the first."""
        if self._before:
            extra = self.steps * self._restores // self._before - 1
            if extra > 0:
                yield Advance(extra)
        self._before += self.steps
        self._restores += 1
        self.steps = 0


def _reads(action: Any, keys: Iterable[str]) -> Iterator[Op]:
    for key in keys:
        if action.to_storage is cs.StorageType.NONE:
            yield Drop(key)
        else:
            yield Last(key) if isinstance(action, cs.Move) else Restore(key)


def require_schedule(schedule: Any) -> None:
    """Refuses what is no schedule of checkpoint_schedules."""
    if not isinstance(schedule, cs.CheckpointSchedule):
        raise InvalidType(f"a schedule of checkpoint_schedules is wanted, not {type(schedule).__name__}.")


def drained(schedule: Any, steps: int | None = None) -> Iterator[Any]:
    """The actions of a schedule that has not started, from a copy: the schedule itself stays at its start.

    An online schedule needs ``steps``, the length of the forward computation.

    Raises
    ------
    ScheduleError
        When the schedule has started already, or its length is not known.
    """
    require_schedule(schedule)
    if hasattr(schedule, "iter"):
        raise ScheduleError(f"{type(schedule).__name__} has started: only a fresh schedule shows its plan")
    if schedule.max_n is None and steps is None:
        raise ScheduleError(f"{type(schedule).__name__} is online: say how many steps the forward computation has")
    return _drain(copy.deepcopy(schedule), steps)


def _drain(schedule: Any, steps: int | None) -> Iterator[Any]:
    for action in schedule:
        yield action
        if isinstance(action, cs.Forward) and schedule.max_n is None and action.n1 >= (steps or 0):
            schedule.finalize(steps)
