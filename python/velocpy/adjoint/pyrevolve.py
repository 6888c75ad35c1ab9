"""A storage for the revolvers of the package pyrevolve, on a velocpy history."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from velocpy.choices import TierName
from velocpy.extra import MissingExtra
from velocpy.plan import Last, Op, Restore

try:
    from pyrevolve.schedulers import Action, CRevolve
    from pyrevolve.storage import Storage
except ImportError:
    raise MissingExtra("pyrevolve", "adjoint", "velocpy.adjoint.pyrevolve") from None


class VelocStorage(Storage):  # type: ignore[misc]
    """Keeps a revolver's checkpoints in a history: budgets, disk and prefetching are the store's.

    Serves both interfaces of pyrevolve: ``save``/``load`` by slot (``MemoryRevolver``, ``DiskRevolver``) and
    ``push``/``peek``/``pop`` (``MultiLevelRevolver``); one storage serves one of them. Nothing is allocated per slot: a
    checkpoint takes the room of its data. Arrays may be strided and of any dtype, shape and number, also per
    checkpoint; they are restored in place, subclasses of ndarray included.

    Parameters
    ----------
    history
        The storage's own: its keys are slots.
    size_ckp, n_ckp, dtype, profiler, name
        As for pyrevolve's own storages; only ``n_ckp`` limits anything here.
    wd, rd
        Cost of writing and reading a checkpoint in units of a forward step, for ``HRevolve``; see `weights`.
    tier
        Where checkpoints are meant to stay: "host", "disk", or None for what suits the store.

    Examples
    --------
    In a revolver it replaces the storage that the revolver made: ``revolver.storage_list[0] = storage``, and
    ``storage.follow(revolver.scheduler)`` tells it what comes. By hand:

    >>> import numpy, velocpy
    >>> with velocpy.open(host="1MiB") as store:
    ...     storage = VelocStorage(store.history("slots"), size_ckp=3, n_ckp=8, dtype=numpy.float32)
    ...     storage.save(5, [numpy.arange(3, dtype=numpy.float32)])
    ...     live = numpy.zeros(3, dtype=numpy.float32)
    ...     storage.load(5, [live])
    >>> live.tolist()
    [0.0, 1.0, 2.0]
    """

    def __init__(
        self,
        history: Any,
        size_ckp: int,
        n_ckp: int,
        dtype: Any,
        profiler: Any = None,
        wd: float = 0.0,
        rd: float = 0.0,
        name: str = "VelocStorage",
        tier: TierName | None = None,
    ) -> None:
        super().__init__(size_ckp, n_ckp, dtype, profiler, wd=wd, rd=rd, name=name)
        self._history = history
        self._tier = tier
        self._top = -1

    def follow(self, scheduler: Any, level: int = 0) -> None:
        """Hints what the revolver's ``scheduler`` will ask of this storage, which is number ``level`` in its list.

        Call it once, before ``apply_forward``. Without it every restore is still right, only later. In a store that is
        not durable the last restore of a slot before its next writing consumes the checkpoint, whose flush is saved. In
        a durable store it does not: each would be a drop for the catalog, which costs a sync, and the next writing
        replaces the checkpoint anyway.
        """
        self._history.hint(_slots(scheduler, level, self._history))

    def save(self, key: int, data_pointers: Sequence[Any]) -> None:
        """Keeps a copy of the arrays under a slot; what was there is replaced."""
        self._history.checkpoint(key, _regions(data_pointers), tier=self._tier)

    def load(self, key: int, locations: Sequence[Any]) -> None:
        """Copies a slot into the arrays; it stays."""
        self._history.restore(key, into=_regions(locations))

    def push(self, data_pointers: Sequence[Any]) -> None:
        """Keeps a copy on top of the stack.

        Raises
        ------
        ValueError
            When the stack holds ``n_ckp`` checkpoints.
        """
        if self.isFull():
            raise ValueError(f"{self.name}: the stack is full with {self.n_ckp} checkpoints")
        self.save(self._top + 1, data_pointers)
        self._top += 1

    def peek(self, locations: Sequence[Any]) -> None:
        """Copies the top into the arrays; nothing happens when the stack is empty, as in pyrevolve."""
        if not self.isEmpty():
            self.load(self._top, locations)

    def pop(self, locations: Sequence[Any]) -> None:
        """Copies the top into the arrays and forgets it."""
        if self.isEmpty():
            raise ValueError(f"{self.name}: the stack is empty")
        self._history.restore(self._top, into=_regions(locations), last=True)
        self._top -= 1

    def isFull(self) -> bool:  # noqa: N802  (pyrevolve's name)
        """Whether `push` would fail."""
        return bool(self._top >= self.n_ckp - 1)

    def isEmpty(self) -> bool:  # noqa: N802
        """Whether the stack is empty."""
        return self._top == -1


def _regions(arrays: Sequence[Any]) -> list[Any]:
    """Plain views of the same memory: subclasses redefine indexing and more."""
    return [np.asarray(array) for array in arrays]


def _slots(scheduler: Any, level: int, history: Any) -> Iterator[Op]:
    """What a scheduler will do to one storage, slot by slot, from now to the end."""
    if isinstance(scheduler, CRevolve):
        return _by_slot(scheduler.oplist, consume=not history.store.durable)
    # The oplist of an HRevolve lacks the CPDELs that it adds while it runs, so a copy of it is run.
    return _by_stack(_actions(copy.deepcopy(scheduler)), level)


def _actions(scheduler: Any) -> Iterator[Any]:
    while (action := scheduler.next()).type != Action.TERMINATE:
        yield action


def _by_slot(actions: Sequence[Any], consume: bool) -> Iterator[Op]:
    """Slots are overwritten, never deleted: the last restore of a version is the one before the next writing."""
    if not consume:
        yield from (Restore(action.ckp) for action in actions if action.type == Action.RESTORE)
        return
    final: list[bool] = []
    read_again: dict[int, bool] = {}
    for action in reversed(actions):
        if action.type == Action.TAKESHOT:
            read_again[action.ckp] = False
        elif action.type == Action.RESTORE:
            final.append(not read_again.get(action.ckp, False))
            read_again[action.ckp] = True
    for action in actions:
        if action.type == Action.RESTORE:
            yield Last(action.ckp) if final.pop() else Restore(action.ckp)


def _by_stack(actions: Iterator[Any], level: int) -> Iterator[Op]:
    top = -1
    for action in actions:
        if action.storageIndex() != level:
            continue
        if action.type == Action.TAKESHOT:
            top += 1
        elif action.type == Action.RESTORE:
            yield Restore(top)
        elif action.type == Action.CPDEL:
            yield Last(top)
            top -= 1
