"""Snapshots of a training, and the way back to one of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from velocpy.budget import passed_by
from velocpy.checks import require_whole
from velocpy.choices import DeviceBudgets, Reduction, Size
from velocpy.closing import Closing
from velocpy.errors import CheckpointNotFound, InvalidArgument, InvalidType, TierFull, WaitTimeout
from velocpy.opening import open as open_store
from velocpy.plan import plain_key
from velocpy.store import History, Store
from velocpy.ticket import Ticket
from velocpy.tuning import Tuning

from .parts import Part, devices_of, parts_of
from .randomness import GlobalRandom
from .restoring import DURABLE, Restoring


class Checkpointer(Closing):
    """Saves the whole state of a training step by step, and brings back the one of an earlier step.

    A training that goes back to a step continues from there bit by bit as it did the first time: the state is that of
    every part, and of the random generators of the process (Python, NumPy, torch on the CPU and on CUDA devices).
    Gradients, ``requires_grad``, the modes ``train()`` and ``eval()``, and buffers with ``persistent=False`` are no
    part of a ``state_dict()``: they stay as they are. Call ``zero_grad()`` after going back if gradients are
    accumulated.

    `save` waits for one copy: within the memory of a device where there is a device tier, else to host memory. What
    follows happens in the background. The latest ``keep`` snapshots stay in device and host memory. Every
    ``durable_every``-th step also goes to the directory ``path``, where the next process finds it.

    Parameters
    ----------
    parts
        What the state consists of, by names that you choose (``model=``, ``optimizer=``, ``scheduler=``, ``sampler=``,
        ``scaler=``, …): objects with ``state_dict()`` and ``load_state_dict()``, and generators (``torch.Generator``,
        ``numpy.random.Generator``, ``numpy.random.RandomState``, ``random.Random``). A list or a dict is several parts,
        and None is none. They are restored in this order. A module, and an optimizer of torch, keeps its tensors, which
        get the saved elements: nothing that refers to them has to be told. A state consists of dense tensors and
        arrays, dicts with str and int as keys, lists, tuples, numbers, texts, None, and a few more types of Python
        (`velocpy.training.encoding`). Of a DTensor it has this process's part: each rank has its own `Checkpointer`.
    store
        A store that is open, and stays so; without one the next four arguments open one, which `close` closes.
    path, device, host, disk
        As for `velocpy.open`. Host memory has to hold ``keep`` snapshots and one more; with a disk tier those that do
        not fit go there. Without ``device``, tensors on the device where the parts have some now are captured into
        host memory. A state on two devices is refused: give each of them a `Checkpointer` of its own.
    history
        Name of the history in the store.
    keep
        So many snapshots, the ones saved last, can be gone back to.
    durable_every
        Steps that are multiples of this are written to the disk at once, and stay. None: those alone that are saved
        with ``durable=True``.
    keep_durable
        So many of the durable ones stay, the latest ones. None: all.
    reduce
        How snapshots become smaller on their way down, as for `Store.history`. With ``"tree"`` layers that are frozen
        take room once. None: as the history does.
    random
        Whether the random generators of the process are part of the state.

    Examples
    --------
    >>> import torch, velocpy
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    >>> def train(steps):
    ...     for _ in range(steps):
    ...         optimizer.zero_grad()
    ...         model(torch.rand(8, 2)).square().mean().backward()
    ...         optimizer.step()
    ...     return model.weight.tolist()
    >>> with velocpy.Checkpointer(model=model, optimizer=optimizer, host="16MiB") as checkpointer:
    ...     _ = train(2)
    ...     _ = checkpointer.save(2)
    ...     weights = train(3)
    ...     print(checkpointer.rollback(to=2), train(3) == weights)
    2 True
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        device: DeviceBudgets | None = None,
        host: Size | None = "auto",
        disk: Size | None = "auto",
        history: str = "training",
        keep: int = 3,
        durable_every: int | None = None,
        keep_durable: int | None = None,
        reduce: Reduction | None = None,
        random: bool = True,
        **parts: Any,
    ) -> None:
        self._keep = require_whole("keep", keep, 1)
        self._every = None if durable_every is None else require_whole("durable_every", durable_every, 1)
        self._keep_durable = None if keep_durable is None else require_whole("keep_durable", keep_durable, 1)
        self._parts = parts_of(parts)
        if not self._parts:
            raise InvalidArgument("a Checkpointer needs something to save: give model=, optimizer= and so on.")
        if not isinstance(random, bool):
            raise InvalidType(
                f"random= is True or False, not of type {type(random).__name__}; give a generator of your own another "
                "name: generator=."
            )
        if random:
            self._parts["random"] = Part("random", GlobalRandom())
        self._owns = store is None
        if store is None:
            if device is None:
                device = passed_by(devices_of(self._parts.values()))
            store = open_store(path, device=device, host=host, disk=disk, verify="first", tuning=Tuning(flush="lazy"))
        elif path is not None:
            raise InvalidArgument("give a store or a path, not both.")
        self._store = store
        try:
            if durable_every is not None and not store.durable:
                raise InvalidArgument("durable_every= needs a store that outlives the process: give path=.")
            self._history = store.history(history, reduce=reduce)
            #: Whether a snapshot stays until it is rolled back, by its step.
            self._durable: dict[int, bool] = {}
        except BaseException:
            if self._owns:
                store.close()
            raise

    @property
    def store(self) -> Store:
        """The store that has the snapshots."""
        return self._store

    @property
    def history(self) -> History:
        """The history that has the snapshots; its keys are their steps."""
        return self._history

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that can be gone back to, ascending."""
        return tuple(sorted(key for key in self._history if isinstance(key, int)))

    def latest(self) -> int | None:
        """The step that was saved last, or None."""
        steps = self._saved()
        return steps[-1] if steps else None

    def save(self, step: int, *, meta: Any = None, durable: bool | None = None) -> Ticket:
        """Takes a snapshot. When it returns, the training may go on; a snapshot of the same step is replaced.

        Tensors on a device are read in the order of the current stream: what it is told to do afterwards may overwrite
        them.

        Parameters
        ----------
        step
            Number of the step, from 0 up.
        meta
            Something small that JSON can say, as for `History.checkpoint`: a loss, say.
        durable
            Whether it goes to the disk at once, and stays; None: if the step is a multiple of ``durable_every``.

        Returns
        -------
        Ticket
            ``ticket.wait("disk")`` waits until it is durable.

        Raises
        ------
        InvalidArgument, InvalidType
            Names the entry of the state that a checkpoint cannot hold.
        TierFull
            The snapshot does not fit, even after the oldest snapshots that are not durable have been dropped. The one
            that was saved last is intact.
        TierIOError, DurabilityLost
            The disk failed. The snapshot is in memory.

        After InvalidArgument and InvalidType, the snapshots are what they were.

        Examples
        --------
        >>> import torch, velocpy
        >>> model = torch.nn.Linear(2, 1)
        >>> with velocpy.Checkpointer(model=model, host="16MiB", keep=2) as checkpointer:
        ...     for step in range(5):
        ...         _ = checkpointer.save(step, meta={"loss": 1 / (step + 1)})
        ...     print(checkpointer.steps, checkpointer.history.meta(4))
        (3, 4) {'loss': 0.2}
        """
        step = _step_of(step)
        if durable is None:
            durable = self._every is not None and step % self._every == 0
        elif durable and not self._store.durable:
            raise InvalidArgument("durable=True needs a store that outlives the process: give path=.")
        state = {name: part.state() for name, part in self._parts.items()}
        ticket = self._capture(step, {**state, DURABLE: durable}, meta)
        self._durable[step] = bool(durable)
        self._drop_old()
        if durable:
            with suppress(WaitTimeout):
                ticket.wait("disk", timeout=0)  # a wait makes the store start the flush, and it goes on afterwards
        return ticket

    def restore(self, step: int | None = None, *, parts: Iterable[str] | None = None) -> int:
        """Puts the training back to the state of a step, and returns the step. All snapshots stay.

        Parameters
        ----------
        step
            None: the latest one.
        parts
            Names of those that are put back, ``"random"`` among them; None: all. A checkpoint may have more.

        Raises
        ------
        CheckpointNotFound
            There is no snapshot of this step; the text has those that there are.
        StateMismatch
            The snapshot is that of another training; the text names the first entry that differs.
        CorruptCheckpoint, TierIOError
            The snapshot cannot be read. In each case the training is in the state in which it was, unless
            ``error.restored`` names parts.

        A KeyboardInterrupt may come when a part of the state has been put back: restore again before training goes on.
        """
        if step is None:
            step = self.latest()
            if step is None:
                raise CheckpointNotFound(
                    f"history {self._history.name!r} has no snapshot to go back to; save() takes one.",
                    history=self._history.name,
                )
        step = _step_of(step)
        Restoring(self._history, step, self._chosen(parts)).run()
        return step

    def rollback(self, to: int | None = None) -> int:
        """Puts the training back to the state of a step, and drops the snapshots of later ones. Returns the step.

        As `restore` otherwise. What was durable of later steps is dropped, too: a process that starts anew then does
        not go on from a state that was given up.
        """
        step = self.restore(to)
        for later in self.steps:
            if later > step:
                self._drop(later)
        return step

    def resume(self) -> int | None:
        """Puts a training that has just begun back to the latest snapshot; returns its step, or None if there is none.

        Examples
        --------
        >>> import tempfile, torch, velocpy
        >>> with tempfile.TemporaryDirectory() as path:
        ...     for run in range(2):
        ...         model = torch.nn.Linear(2, 1)
        ...         with velocpy.Checkpointer(path=path, model=model, host="16MiB", durable_every=10) as checkpointer:
        ...             last = checkpointer.resume()
        ...             begin = 0 if last is None else last + 1
        ...             for step in range(begin, begin + 15):
        ...                 _ = checkpointer.save(step)
        ...         print(begin, checkpointer.store.closed)
        0 True
        15 True
        """
        return None if self.latest() is None else self.restore()

    def close(self) -> None:
        """Waits until the durable snapshots and the latest one are on the disk, if there is one, and closes the store.

        A store that was given is left as it is.
        """
        if not self._owns or self._store.closed:
            return
        try:
            if self._store.durable:
                latest = self.latest()
                for step in self._saved():
                    if step != latest and not self._is_durable(step):
                        self._drop(step)
        finally:
            self._store.close()

    def __repr__(self) -> str:
        return f"<Checkpointer of {', '.join(self._parts)} in {self._history!r}>"

    def holders(self) -> tuple[Any, ...]:
        """The objects whose states are saved, in the order of the parts."""
        return tuple(part.holder for part in self._parts.values())

    def _saved(self) -> list[int]:
        """The steps in the order in which they were saved."""
        return [key for key in self._history if isinstance(key, int)]

    def _drop(self, step: int) -> None:
        self._history.drop(step)
        self._durable.pop(step, None)

    def _is_durable(self, step: int) -> bool:
        """Whether a snapshot stays until it is rolled back. Other Checkpointers may have saved it."""
        if not self._store.durable:
            return False
        if step not in self._durable:
            self._durable[step] = self._was_durable(step)
        return self._durable[step]

    def _was_durable(self, step: int) -> bool:
        """Whether a snapshot of an earlier process was to stay; so are checkpoints that other code has written."""
        with self._history.restore(step, ()) as lease:
            state = lease.tree
        return not isinstance(state, dict) or bool(state.get(DURABLE, True))

    def _capture(self, step: int, state: Mapping[str, Any], meta: Any) -> Ticket:
        """Captures the state; where memory alone is full, in place of the oldest snapshots that are not durable."""
        while True:
            try:
                return self._history.checkpoint(step, state, meta=meta)
            except TierFull:
                old = [key for key in self._saved()[:-1] if not self._is_durable(key)]
                if not old:
                    raise
                self._drop(old[0])

    def _drop_old(self) -> None:
        steps = self._saved()
        durable = [step for step in steps if self._is_durable(step)]
        if self._keep_durable is not None:
            durable = durable[-self._keep_durable :]
        stay = {*steps[-self._keep :], *durable}
        for step in steps:
            if step not in stay:
                self._drop(step)

    def _chosen(self, names: Iterable[str] | None) -> dict[str, Part]:
        if names is None:
            return self._parts
        if isinstance(names, str):
            names = (names,)
        chosen = {}
        for name in names:
            if name not in self._parts:
                raise InvalidArgument(f"there is no part {name!r}; the parts are {', '.join(self._parts)}.")
            chosen[name] = self._parts[name]
        return chosen


def _step_of(step: Any) -> int:
    key = plain_key(step)
    if not isinstance(key, int):
        raise InvalidType(f"a step is a whole number, not {step!r:.80}.")
    if key < 0:
        raise InvalidArgument(f"a step is a number from 0 up, not {key}.")
    return key
