"""Leases: restored arrays that show the store's own memory."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, NoReturn

from . import _core, arrays, devices, html, tree
from .description import HOST
from .errors import CorruptCheckpoint, InvalidType, LeaseReleased, LeaseWritten, VelocError, region_not_found


class Lease(Mapping[Any, Any]):
    """What `History.restore` returns: a mapping of region names to arrays that show restored bytes without a copy.

    The arrays stay exact through drop, rewrite and `Store.close`, and an array that outlives its lease keeps the bytes
    alive. While any of them lives, the checkpoint's memory stays in use: let go of it, or use ``with``.

    NumPy arrays are read-only unless the lease is ``writable`` (restored as last: it belongs to the caller). torch
    tensors and arrays on a device cannot be read-only: do not write into them unless the lease is writable; a store
    opened with ``debug=True`` detects writes.

    What came from a CUDA device is an array of torch or CuPy again, or else a `velocpy.devices.DeviceArray`, which
    torch, CuPy, Numba and JAX take.

    A lease that is restored as last consumes its checkpoint when it is used first: an item, ``with``, `release`, or
    whatever else of it. One that ends before that, as when Ctrl-C comes before the caller has it, gives the checkpoint
    back. Until then the key is gone for everybody.

    Regions of a sequence are named by their numbers: ``lease[0]``. Those of a tree are named by their paths:
    ``lease["model.layer.weight"]``; `tree` gives the nested dicts and lists with the arrays in place.

    Examples
    --------
    >>> import numpy, velocpy
    >>> with velocpy.open(host="16MiB") as store:
    ...     forward = store.history("forward")
    ...     _ = forward.checkpoint(0, {"u": numpy.arange(3)}, meta={"t": 0.5})
    ...     with forward.restore(0) as state:
    ...         print(state["u"], state.meta, state["u"].flags.writeable)
    [0 1 2] {'t': 0.5} False
    """

    __slots__ = ("__weakref__", "_arrays", "_history", "_key", "_mark", "_memory", "_meta")

    # The core makes leases: a frame of Python that has one in its hands could be interrupted.
    _memory: _core.LeaseMemory | None
    _history: str
    _key: int | str
    _arrays: dict[int, Any]
    _meta: Any  # the values of a tree and the meta; ...: not asked for yet
    _mark: Any  # in debug mode a checksum, ... before the first use

    @property
    def key(self) -> int | str:
        """Key of the checkpoint."""
        return self._key

    @property
    def meta(self) -> Any:
        """What was given as ``meta``, or None."""
        return self._annotation()[1]

    @property
    def tree(self) -> Any:
        """What was captured: nested dicts, lists and tuples with the arrays and the values in their places.

        The arrays are those of the lease, as ``lease[name]`` gives them. Each call makes containers of its own. A
        mapping of arrays is a dict, a sequence of arrays a list. Where the lease holds some regions of a tree only,
        ``...`` stands for the others: ``history.restore(key, ()).tree`` gives the values and moves no array.

        Raises
        ------
        CorruptCheckpoint
            What the store says of the structure cannot be so; the regions are there by their names.

        Examples
        --------
        >>> import numpy, velocpy
        >>> with velocpy.open(host="16MiB") as store:
        ...     run = store.history("run")
        ...     _ = run.checkpoint(0, {"model": {"w": numpy.ones(2)}, "betas": (0.9, 0.99), "step": 3})
        ...     with run.restore(0) as state:
        ...         print(list(state), state.tree)
        ['model.w'] {'model': {'w': array([1., 1.])}, 'betas': (0.9, 0.99), 'step': 3}
        """
        memory = self._held()
        structure = memory.structure()
        if structure is None:
            labels = memory.labels()
            return [self[label] for label in labels] if memory.sequence else {label: self[label] for label in labels}
        held = frozenset(memory.regions())
        values, _ = self._annotation()
        try:
            return tree.unflatten(structure, values, lambda region: self._array(region) if region in held else ...)
        except VelocError:
            raise
        except (LookupError, RecursionError, TypeError, ValueError) as error:
            raise self._unstructured(str(error)) from error

    @property
    def writable(self) -> bool:
        """Whether the bytes belong to the caller alone."""
        return self._held().writable

    @property
    def released(self) -> bool:
        """Whether `release` was called."""
        return self._memory is None

    def release(self) -> None:
        """Gives the lease back; a second call is nothing. Arrays taken from it stay valid and keep the memory in use.

        Raises
        ------
        LeaseWritten
            In debug mode, when a caller wrote into bytes that others share. Of a lease on a device the log tells it,
            when the last array of it has gone.
        """
        memory = self._memory
        if memory is not None:
            memory.take()
        self._memory = None
        self._arrays.clear()
        if memory is not None and self._mark not in (None, ...) and _checksum(memory) != self._mark:
            raise self._written()

    def used_on(self, stream: Any) -> None:
        """Lets ``stream`` read the arrays from now on; their room is not written before it has done so.

        Needed for streams of a CUDA device that are not current when the lease is taken: the bytes may still be on
        their way to the device then, and a stream that is current when the lease ends is waited for, but does not wait.
        It takes what the ``stream`` of `History.checkpoint` takes.
        """
        memory = self._held()
        for handle in devices.named(stream):
            memory.used_on(handle)

    def __getitem__(self, label: str | int) -> Any:
        memory = self._held()
        try:
            region = memory.find(label)
        except LookupError:
            raise region_not_found(self._history, self._key, label, memory.names()) from None
        return self._array(region)

    def __setitem__(self, label: str | int, array: Any) -> None:
        """Ends ``lease["u"] += v``, which has changed the array in place by then. Nothing else can be assigned."""
        if array is not self[label]:
            raise InvalidType(f"a lease's regions cannot be replaced; write into the array: lease[{label!r}][...] = …")
        if not self.writable:
            raise self._written()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._held().labels())

    def __len__(self) -> int:
        return len(self._held().labels())

    def __contains__(self, label: object) -> bool:
        return label in self._held().labels()

    # As a mapping it would compare arrays; two leases are the same when they are one.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __enter__(self) -> Lease:
        if self._memory is not None:
            self._memory.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.release()
        except LeaseWritten as written:
            if error is None:
                raise
            logging.getLogger("velocpy").error("%s", written)  # the exception under way matters more

    def __copy__(self) -> Lease:
        return self

    def __reduce__(self) -> NoReturn:
        raise InvalidType(
            "a Lease belongs to the process that has opened its store and cannot be pickled, nor copied. "
            "Send arrays: lease['u'].copy()."
        )

    def __repr__(self) -> str:
        name = f"{self._history!r}[{self._key!r}]"
        if self._memory is None:
            return f"<Lease {name}: released>"
        return f"<Lease {name}: {', '.join(map(str, self._memory.names()))}>"

    def _repr_html_(self) -> str:
        return html.lease(self)

    def _array(self, region: int) -> Any:
        array = self._arrays.get(region)
        if array is None:
            array = _shown(self._held(), region)
            self._arrays[region] = array
        return array

    def _annotation(self) -> tuple[list[Any], Any]:
        """The values of a tree, and the meta."""
        if self._meta is ...:
            memory = self._held()
            raw = memory.meta()
            read = None if raw is None else self._read(raw)
            if memory.structure() is None:
                self._meta = ([], read)
            elif isinstance(read, list) and len(read) == 2 and isinstance(read[0], list):
                self._meta = (read[0], read[1])
            else:
                raise self._unstructured("its values are missing")
        values, meta = self._meta
        return values, meta

    def _unstructured(self, why: str) -> CorruptCheckpoint:
        return CorruptCheckpoint(
            f"the tree of key {self._key!r}, history {self._history!r}, cannot be put together: {why}. Its regions "
            "and other checkpoints are not affected; write this one again.",
            history=self._history,
            key=self._key,
        )

    def _read(self, raw: bytes) -> Any:
        try:
            return json.loads(raw.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            raise CorruptCheckpoint(
                f"the meta of key {self._key!r}, history {self._history!r}, is no JSON that can be read: {error}. Its "
                "regions and other checkpoints are not affected; write this one again.",
                history=self._history,
                key=self._key,
            ) from error

    def _written(self) -> LeaseWritten:
        return LeaseWritten(
            f"a caller wrote into the lease of key {self._key!r}, history {self._history!r}: other restores "
            "of it get wrong bytes. Copy before writing, or restore with last=True.",
            history=self._history,
            key=self._key,
        )

    def _held(self) -> _core.LeaseMemory:
        if self._memory is None:
            raise LeaseReleased(
                f"the lease of key {self._key!r}, history {self._history!r}, was released; arrays taken before stay "
                "valid. Restore again.",
                history=self._history,
                key=self._key,
            )
        if self._mark is ...:
            self._mark = None if self._memory.writable else _checksum(self._memory)
        return self._memory


def _shown(memory: _core.LeaseMemory, region: int) -> Any:
    """The region in the library that it came from, and where that was."""
    home, place = memory.home(region), memory.place
    if home == HOST != place:
        return arrays.fetched(memory, region)
    if home != HOST == place:
        return devices.sent_home(memory, region)
    if place != HOST:
        shown = memory.at_home(region)
        return devices.array(memory, region) if shown is None else shown
    try:
        shown = memory.at_home(region)
        return arrays.tensor(memory, region) if shown is None else shown
    except VelocError:
        raise
    except (ArithmeticError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        text, _, shape, _ = memory.description(region)
        raise InvalidType(
            f"a region of dtype {text!r:.80} and shape {shape} cannot be shown by its library here: {error}. "
            "Other regions are not affected."
        ) from error


def _checksum(memory: _core.LeaseMemory) -> int:
    total = 0
    if memory.place != HOST:  # the core compares what lies on a device
        return total
    for label in memory.labels():
        total = zlib.crc32(memory.raw(memory.find(label)).data, total)
    return total
