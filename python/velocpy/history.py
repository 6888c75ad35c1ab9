"""Histories: named sequences of checkpoints, each with its own restore order."""

from __future__ import annotations

import json
import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from numbers import Integral
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

import numpy as np

from . import _core, arguments, arrays, callers, html, records, tree
from .choices import BestOrder, TierName
from .errors import TIERS, InvalidArgument, InvalidType, VelocError, WaitTimeout, not_found
from .interfaces import HistoryOwner, Key, Parts, RestoreLoop
from .lease import Lease
from .plan import Advance, Drop, Last, LearnedPlan, Plan, Restore, Source, plain_key, source_of
from .quantity import exact
from .restores import Restores
from .ticket import NO_TIER, Ticket, tier_number
from .times import from_nanoseconds

if TYPE_CHECKING:
    from typing_extensions import Self

    from .comparison import Comparison, HistoryComparison

T = TypeVar("T")

#: Most bytes of one checkpoint's meta, as JSON: it lies in memory for as long as its checkpoint lives in any tier.
META_LIMIT = 64 << 10

#: How deep lists and objects of it may be nested; see docs/format.md.
META_DEPTH = 1000


#: Checkpoints that are asked for the error of a wait for all of them, and seconds for each.
_LATE, _MOMENT = 100, 0.01


class Checkpoints:
    """The calls of a history. `velocpy.History` is this class with its store's type, which this module cannot name."""

    __slots__ = ("__weakref__", "_calls", "_core", "_name", "_sources", "_store", "_watchers")

    def __init__(self, store: HistoryOwner, name: str) -> None:
        if not isinstance(name, str):
            raise InvalidType(f"the name of a history is a str, not {type(name).__name__}.")
        self._core = _core_of(store, name)
        self._store = store
        self._name = name
        #: What is still to be read of the plan; the core reads it. It lies here for the cycle collector.
        self._sources: deque[Source] = deque()
        #: Plans that want to know of restores.
        self._watchers: list[Plan] = []
        #: Where the application has called, with ``debug``.
        self._calls = callers.Calls() if store._debug else None

    def _renew(self) -> None:
        """The store was refreshed. Loops that have begun end with the sources, and the view, that they began with."""
        core = _core_of(self._store, self._name)
        self._sources, self._watchers = deque(), []
        self._core = core

    @property
    def name(self) -> str:
        """Name of the history."""
        return self._name

    @overload
    def _begun(self, key: Key) -> Key: ...
    @overload
    def _begun(self, key: Key | None) -> Key | None: ...
    def _begun(self, key: Key | None) -> Key | None:
        """The key as the core takes it; tells the core more of the plan first, where it runs low."""
        if type(key) is not int:
            key = plain_key(key)
        if self._sources:
            self._core.read_hints(self._sources)
        return key

    # --- checkpoints in ---

    def checkpoint(
        self,
        key: Key | None = None,
        regions: Mapping[Any, Any] | Sequence[Any] | None = None,
        /,
        *,
        copy: bool = True,
        meta: Any = None,
        tier: TierName | None = None,
        timeout: float | None = None,
        stream: Any = None,
        **named: Any,
    ) -> Ticket:
        """Captures arrays under a key and returns a ticket; writing a key again replaces its checkpoint.

        When it returns, the arrays may be overwritten (unless ``copy=False``) and the checkpoint can be restored.
        Without room in the fastest tier it waits for it, interruptible by Ctrl-C, after which nothing has changed
        (unless it went straight to disk and its bytes were there already: then it has happened).
        A new version of a key finds room beside the old one, or else takes the old one's room: only then does an
        interruption leave neither.

        Parameters
        ----------
        key
            None: the store chooses an integer that is not used; ``Ticket.key`` tells it.
        regions
            Arrays by name, or a sequence of arrays, which are then regions 0, 1, …; or give them as keywords. A mapping
            takes any names; keywords that are, or resemble, an argument of this call are refused. NumPy, CuPy and torch
            arrays, anything with the buffer protocol, DLPack or ``__cuda_array_interface__``, and tuples (address,
            bytes) or, on a CUDA device, (address, bytes, device). They come back as the library they came from, buffers
            as NumPy arrays.
            A mapping or sequence that also holds None, bool, int, float, str, dicts, lists or tuples is captured as a
            tree, like the ``state_dict()`` of a model: each array is a region, named by its path ("model.layer.weight",
            "optim.state.0.exp_avg"), and `Lease.tree` gives all of it back as it was. Keys in a tree are str or int. A
            tuple of two or three ints is a tuple there, and no memory. NumPy's numbers come back as those of Python,
            where these are the same.
        copy
            False: the arrays stay untouched by the caller until ``Ticket.captured``; the store reads them where they
            are, in the background, and keeps them alive meanwhile. It takes no room in the fastest tier: what lies on a
            device goes straight to the host tier.
        meta
            Something small that JSON can say, given back by `Lease.meta` and `meta` as JSON does: tuples as lists, the
            keys of a dict as texts. NumPy's numbers and truth values are those of JSON, as keys too.
        tier
            The tier whose promise is wanted first: ``"disk"`` writes down at once and frees the faster tiers early.
        timeout
            Seconds to wait for room. A checkpoint straight to disk whose bytes are there by then, and are being made
            durable, is captured: the call returns, and the ticket tells when they are.
        stream
            The CUDA stream in whose order arrays on a device are read: a handle, a ``torch.cuda.Stream``, a
            ``cupy.cuda.Stream``, anything with ``__cuda_stream__``, or several. None: the stream that is current in the
            library of the arrays. Streams that arrays name themselves (the ``stream`` of ``__cuda_array_interface__``)
            are added to it: the arrays are read behind all of them. The call does not wait for the device; what is
            queued on any of these streams afterwards may overwrite the arrays (unless ``copy=False``).

        Raises
        ------
        InvalidArgument, TierUnavailable, TierFull, TierIOError, WaitTimeout, StoreClosed
            In each case the previous checkpoint of the key is what it was.

        Examples
        --------
        >>> import numpy, velocpy
        >>> with velocpy.open(host="16MiB") as store:
        ...     run = store.history("run")
        ...     optim = {"state": {0: numpy.zeros(2)}, "lr": 0.1}
        ...     _ = run.checkpoint(3, model={"w": numpy.ones(2)}, optim=optim, step=3)
        ...     state = run.restore(3)
        ...     print(list(state), state.tree["step"], state.tree["optim"]["lr"])
        ['model.w', 'optim.state.0'] 3 0.1
        """
        if regions is None:
            if not named:
                raise InvalidArgument("checkpoint() was given no regions: name them, as in checkpoint(key, u=u).")
            arguments.require_regions(*named)
            source: dict[str, Any] | tuple[Any, ...] = named
        else:
            source = _regions_of(regions, named)
        try:
            if copy is not True and copy is not False:
                copy = _flag("copy", copy)
            key = self._begun(key)
            raw = None if meta is None else _meta_bytes(meta)
            level = NO_TIER if tier is None else tier_number(tier)
            try:
                captured = self._core.checkpoint(key, source, copy, raw, level, timeout, stream)
            except InvalidArgument:  # most regions are plain, and a look at each of them would take longer
                if not _is_tree(regions, source):
                    raise
                captured = None
            if captured is None:
                flat = _flat(regions, source)
                raw = _beside(flat, raw)
                captured = self._core.checkpoint(key, flat.regions, copy, raw, level, timeout, stream, flat.structure)
            identity, chosen = captured
        except InvalidType as error:
            given = {"copy": copy, "meta": meta, "tier": tier, "timeout": timeout, "stream": stream}
            more = arguments.hint(given, named)
            if more:
                raise InvalidType(f"{error} {more}") from None
            raise
        made, place = chosen if key is None else key, callers.place()
        if self._calls is not None:
            self._calls.captured(made, place, identity)
        return self._ticket(made, identity, place)

    def _ticket(self, key: Key, identity: int, place: callers.Place | None) -> Ticket:
        archiving = self._store._archiving
        return Ticket(self, key, identity, place) if archiving is None else archiving.ticket(self, key, identity, place)

    def checkpoint_many(
        self,
        checkpoints: Mapping[Any, Any] | Iterable[tuple[Any, ...]],
        /,
        *,
        copy: bool = True,
        tier: TierName | None = None,
        timeout: float | None = None,
        stream: Any = None,
    ) -> list[Ticket]:
        """Captures several checkpoints, as that many calls of `checkpoint` do one after the other, and costs less.

        Made for many small ones; large ones gain nothing. They are captured in the order given; a key that comes twice
        ends with the later one. The call waits for room like `checkpoint`, and Ctrl-C interrupts it.

        Parameters
        ----------
        checkpoints
            Keys with their regions, as `checkpoint` takes them: a mapping, or an iterable of tuples (key, regions) or
            (key, regions, meta). The key may be None in a tuple. The iterable is read to its end first.
        copy, tier, stream
            As for `checkpoint`, for all of them.
        timeout
            Seconds to wait for room, in all.

        Returns
        -------
        list of Ticket
            One for each, in their order.

        Raises
        ------
        InvalidArgument, InvalidType
            One of them cannot be a checkpoint: nothing has changed, none was captured. Two faults of tensors on a GPU
            are found later, when it is the turn of their checkpoint (regions on two devices, and a stream that records
            a graph): what was captured until then stands, as below.
        TierUnavailable, TierFull, TierIOError, WaitTimeout, StoreClosed
            Capturing one of them failed, or would have waited too long. Those before it stand, ``error.captured`` of
            them; `wait` waits for them. That one and those behind it were not captured, and the previous checkpoints of
            their keys are what they were. So it is after Ctrl-C.

        Examples
        --------
        >>> import numpy, velocpy
        >>> with velocpy.open(host="16MiB") as store:
        ...     run = store.history("run")
        ...     tickets = run.checkpoint_many({i: {"u": numpy.full(4, i)} for i in range(1000)})
        ...     print(len(tickets), tickets[7].key, run.restore(7)["u"])
        1000 7 [7 7 7 7]
        """
        copy = _flag("copy", copy)
        level = NO_TIER if tier is None else tier_number(tier)
        pairs = _pairs_of(checkpoints)
        items = [_item(*pair) for pair in pairs]
        if items:
            self._begun(items[0][0])
        captured: list[tuple[int, Any]] = []
        try:
            try:
                self._core.checkpoint_many(items, copy, level, timeout, stream, captured)
            except InvalidArgument:  # as in `checkpoint`; nothing was captured
                nested = [_is_tree(pair[1], item[1]) for pair, item in zip(pairs, items, strict=True)]
                if captured or not any(nested):
                    raise
                items = [
                    _tree_item(pair[1], item) if is_tree else item
                    for pair, item, is_tree in zip(pairs, items, nested, strict=True)
                ]
                self._core.checkpoint_many(items, copy, level, timeout, stream, captured)
        except VelocError as error:
            error.captured = len(captured)
            raise
        place = callers.place()
        tickets = [
            self._ticket(chosen if item[0] is None else item[0], identity, place)
            for item, (identity, chosen) in zip(items, captured, strict=True)
        ]
        if self._calls is not None:
            for ticket in tickets:
                self._calls.captured(ticket.key, place, ticket._id)
        return tickets

    def drop(self, key: Key, missing_ok: bool = True) -> None:
        """Forgets a checkpoint; leases of it stay exact.

        From any thread, destructors included, and also when the key, the store or this side of a fork is gone already,
        unless ``missing_ok`` is false.
        """
        if not self._core.drop(key) and not missing_ok:
            self._require(key)

    def clear(self) -> None:
        """Drops every checkpoint and the plan; nothing where the store or this side of a fork is gone already."""
        self._watchers.clear()
        self._core.clear(self._sources)

    def retain(
        self,
        last: int | None = None,
        *,
        every: int | None = None,
        named: bool = False,
        keys: Iterable[Key] = (),
        best: int | None = None,
        by: str | Sequence[str] | None = None,
        order: BestOrder = "min",
    ) -> None:
        """Says which checkpoints stay when newer ones come; others are dropped. Without arguments all stay.

        What one argument keeps stays, whatever the others say.

        The rule replaces the one before and applies to the checkpoints that are there. A durable store writes the rule
        down for the next process that opens it. There a checkpoint counts as a newer one when it is durable, so that a
        crash never leaves fewer than the rule says. Checkpoints become durable in any order; the order of writing tells
        which are the last.

        Parameters
        ----------
        last
            So many that were written last.
        every
            Those whose key is a multiple of this.
        named
            Those whose key is a str.
        keys
            These.
        best
            So many that are best by a number of their meta. Of equal ones those stay that were written first. A
            checkpoint that takes the place of another of its key has the meta that it came with. One without that
            number, or whose number is not finite, is never among the best: give ``last`` too, for where to go on.
            What has been dropped does not come back when one of the best is dropped later.
        by
            The name of that number in the meta, which is a dict; or several names, each in the dict of the one before:
            ``("val", "loss")``. Numbers are compared as floats.
        order
            "min": the smallest are the best; "max": the largest.

        Raises
        ------
        InvalidArgument
            Nothing has changed. Also where ``best`` comes without ``by``, or the other way round.

        Examples
        --------
        >>> import numpy, velocpy
        >>> with velocpy.open(host="16MiB") as store:
        ...     run = store.history("run")
        ...     run.retain(last=2, every=100)
        ...     for i in range(0, 250, 10):
        ...         _ = run.checkpoint(i, u=numpy.zeros(2))
        ...     list(run)
        [0, 100, 200, 230, 240]

        The two with the smallest loss on the validation set, and the latest one:

        >>> with velocpy.open(host="16MiB") as store:
        ...     run = store.history("run")
        ...     run.retain(last=1, best=2, by=("val", "loss"))
        ...     for epoch, loss in enumerate([0.9, 0.5, 0.7, 0.6, 0.8]):
        ...         _ = run.checkpoint(epoch, w=numpy.zeros(2), meta={"val": {"loss": loss}})
        ...     list(run)
        [1, 3, 4]
        """
        for name, number in (("last", last), ("every", every), ("best", best)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, Integral) or number < 1):
                raise InvalidArgument(f"{name} is {number!r}; give a whole number from 1 up, or None.")
        names = _names_by(best, by, order)
        chosen = [plain_key(key) for key in keys]
        self._core.retain(
            int(last or 0),
            int(every or 0),
            bool(named),
            chosen,
            int(best or 0),
            names,
            best is not None and order == "max",
        )
        if records.wanted():
            rule = f"last={last}, every={every}, named={bool(named)}, {len(chosen)} keys"
            if best is not None:
                rule += f", best={best} by {'.'.join(names)!r}, order={order}"
            records.log.debug("history %r: retention is %s; %d checkpoints stay", self._name, rule, len(self))

    # --- checkpoints out ---

    @overload
    def restore(
        self,
        key: Key,
        regions: str | int | Iterable[str | int] | None = None,
        *,
        into: None = None,
        parts: None = None,
        last: bool = False,
        timeout: float | None = None,
        stream: Any = None,
    ) -> Lease: ...
    @overload
    def restore(
        self,
        key: Key,
        regions: str | int | Iterable[str | int] | None = None,
        *,
        into: T,
        parts: Parts | None = None,
        last: bool = False,
        timeout: float | None = None,
        stream: Any = None,
    ) -> T: ...
    def restore(
        self,
        key: Key,
        regions: str | int | Iterable[str | int] | None = None,
        *,
        into: Any = None,
        parts: Parts | None = None,
        last: bool = False,
        timeout: float | None = None,
        stream: Any = None,
    ) -> Any:
        """Brings a checkpoint back: as a lease without a copy, or into arrays that exist, also parts of regions.

        Parameters
        ----------
        regions
            Only these: one name or several (numbers where a sequence was written).
        into
            Arrays to fill: a mapping by name (which also says which regions are wanted), or a sequence for all regions
            or for ``regions``, or one array for one region. Any strides; shape and dtype must be those of the region.
            Returned. For autograd a torch tensor was changed in place: a graph that needs its old values raises.
            Or a tree, as `checkpoint` takes it, or a part of one: each array is filled with the region of its path. Its
            values are neither read nor written: ``restore(key, ()).tree`` has those of the checkpoint.
        parts
            What of the regions goes into the arrays of ``into``, as NumPy's basic indexing says it: an int or a slice,
            also backwards, for each axis, and an ellipsis: ``numpy.s_[10:20, ::2]``. A mapping from the names of
            regions to such indices; other regions are restored whole. Or the indices alone, where there is one array.
            An array has the shape of the region under its indices (an int takes its axis away), and the dtype of the
            region. Raw memory takes the bytes in the order in which they lie in the checkpoint.
            From disk only those leaves of the checksum (256 KiB) are read, and verified, that the parts touch. Where
            the hashes of leaves are not known, the whole region is, once; docs/engine.md says when. With
            ``verify="off"``, or without checksums, the blocks of the disk that the parts touch are read.
        last
            The checkpoint is consumed: the lease belongs to the caller, and the key is gone. A lease that is
            dropped before its first use, as when Ctrl-C comes first, gives the checkpoint back; see `Lease`.
        timeout
            Seconds to wait.
        stream
            The CUDA stream in whose order arrays on a device are written, or a lease there is read; as for
            `checkpoint`. Streams that the arrays of ``into`` name are added here, too.

        Raises
        ------
        CheckpointNotFound, CheckpointDropped, CorruptCheckpoint, TierIOError, WaitTimeout, StoreClosed
            The checkpoint, if there is one, stays restorable. Arrays of ``into`` may have been written in part, and by
            bytes that are wrong.
        BelatedCorruption
            Of an earlier restore to a device; see there. This one was not begun.
        InvalidArgument
            Before any byte was written. Also where an array has another shape or dtype than its region, or than the
            part of it (the text has the name and both shapes), where an int of ``parts`` is out of range, and where
            ``parts`` names a region that ``into`` has no array for.
        InvalidType
            Likewise, where an index is something else.

        Examples
        --------
        Rows 2 and 3 of a matrix, every other column backwards, and a whole vector:

        >>> import numpy, velocpy
        >>> with velocpy.open(host="16MiB") as store:
        ...     run = store.history("run")
        ...     _ = run.checkpoint(7, u=numpy.arange(20).reshape(5, 4), v=numpy.ones(3))
        ...     shard = {"u": numpy.zeros((2, 2), int), "v": numpy.zeros(3)}
        ...     run.restore(7, into=shard, parts={"u": numpy.s_[2:4, ::-2]})["u"].tolist()
        [[11, 9], [15, 13]]

        One row, into one array:

        >>> with velocpy.open(host="16MiB") as store:
        ...     run = store.history("run")
        ...     _ = run.checkpoint(7, u=numpy.arange(20).reshape(5, 4))
        ...     run.restore(7, "u", into=numpy.zeros(4, int), parts=3).tolist()
        [12, 13, 14, 15]
        """
        if last is not True and last is not False:
            last = _flag("last", last)
        key = self._begun(key)
        wanted = _labels_of(regions)
        chosen = _parts_of(parts, into)
        observe = self._observed if self._watchers else None
        try:
            if into is None:  # no name for the lease: an interruption would keep it in the traceback
                return self._core.restore(key, wanted, last, False, timeout, stream, observe)
            try:
                self._core.restore_into(
                    key, wanted, _destinations_of(into), chosen, last, timeout, stream, _written, observe
                )
                return into
            except InvalidArgument:  # as in `checkpoint`; nothing was begun
                if not _is_nested(into):
                    raise
            nested = tree.destinations(into)
            self._core.restore_into(key, wanted, nested, chosen, last, timeout, stream, _written, observe)
            return into
        except VelocError as error:  # BelatedCorruption is about an earlier restore
            self._name_call(error)
            raise
        finally:
            if self._calls is not None:
                self._calls.restored(key, callers.place())

    def _name_failed(self, error: VelocError, tier: int) -> bool:
        """Finds the checkpoint that an error of a wait for all of them is about, if calls are remembered."""
        if self._calls is None or tier < 0 or error.key is not None or isinstance(error, WaitTimeout):
            return False
        late = [each for each in self._calls.captures() if not self._store._core.ticket(each[1].ticket)[1] >> tier & 1]
        for key, capture in late[:_LATE]:
            try:
                self._core.wait_ticket(capture.ticket, key, tier, _MOMENT)
            except VelocError as own:
                if type(own) is type(error):
                    error.history, error.key = self._name, key
                    callers.name_call(error, capture.place, f"checkpoint() of key {key!r} in history {self._name!r}")
                    return True
        return False

    def _name_call(self, error: VelocError) -> None:
        """Lets an error that comes later tell the call that it is about, where that is known."""
        calls = self._calls if error.history == self._name else None
        if calls is not None:
            calls.name(error)

    @overload
    def restore_iter(
        self, last: bool = False, timeout: float | None = None, into: None = None, *, parts: None = None
    ) -> RestoreLoop[Lease]: ...
    @overload
    def restore_iter(
        self, last: bool = False, timeout: float | None = None, *, into: T, parts: Parts | None = None
    ) -> RestoreLoop[T]: ...
    def restore_iter(
        self, last: bool = False, timeout: float | None = None, into: Any = None, *, parts: Parts | None = None
    ) -> RestoreLoop[Any]:
        """Yields (key, lease) for each restore of the plan, in its order, until the plan is used up.

        A lease is given back when the loop moves on and nothing refers to it or to one of its arrays any more. With
        ``into`` the second item is ``into``, and ``parts`` says what of the regions goes there, as for `restore`. With
        ``last`` every restore consumes its checkpoint, when the loop moves on at the latest; those hinted as `Last` do
        anyway. ``timeout`` holds for each restore. What a restore raises, `CheckpointNotFound` for a key that is not
        there among it, ends the loop, and the next one begins with the same key; `hint_clear` gives it up. So does the
        next one when Ctrl-C comes before the loop has its item.

        Tasks of asyncio write ``async for``: the restores run in a thread of that loop, on the CUDA streams that are
        current in the task's thread, and the event loop goes on. The iterables of the plan are read in that thread. A
        step that is cancelled has not happened. It ends when its thread does no more: a wait for room ends soon, while
        a copy or a transfer under way comes to its end first.

        Raises
        ------
        PlanUnfinished
            Instead of the loop's end when Ctrl-C ended the iterable that the plan is read from.

        Examples
        --------
        >>> import asyncio, numpy, velocpy
        >>> async def sweep(history):
        ...     async for i, state in history.restore_iter(last=True):
        ...         print(i, state["u"])
        >>> with velocpy.open(host="16MiB") as store:
        ...     forward = store.history("forward")
        ...     for i in range(2):
        ...         _ = forward.checkpoint(i, u=numpy.full(2, i))
        ...     forward.hint([1, 0])
        ...     asyncio.run(sweep(forward))
        1 [1 1]
        0 [0 0]
        """
        self._store._require_open()
        arguments = {
            "history": self._core,
            "sources": self._sources,
            "last": _flag("last", last),
            "timeout": timeout,
            "into": None if into is None else tree.destinations(into) if _is_nested(into) else _destinations_of(into),
            "parts": _parts_of(parts, into),
            "given": into,
            "streams": self._store._streams if self._store._places else None,
            "written": _written,
            "observe": self._observed,
            "watchers": self._watchers,
        }
        return Restores(self, arguments)

    def _observed(self, key: Key) -> None:
        """Tells learning plans of a restore; what they told before may not hold any more."""
        anew = [plan for plan in tuple(self._watchers) if plan._observe(key)]  # a handler may change the list
        if not anew:
            return
        for plan in anew:
            if not any(source[2] is plan for source in tuple(self._sources)):
                self._sources.append((None, False, plan))
        self._core.hint_anew()

    # --- comparisons ---

    def compare(
        self,
        key: Key,
        other: Checkpoints,
        other_key: Key | None = None,
        *,
        limit: int = 10,
        rtol: float | None = None,
        atol: float | None = None,
        timeout: float | None = None,
    ) -> Comparison:
        """Compares a checkpoint with one of another history, or of this one, and says in what they differ.

        Bit by bit, unless a tolerance is given. Only leaves of 256 KiB are read whose hashes differ, in whatever tier
        they lie, a few MiB at a time; the bytes of two equal checkpoints are not read. Where the hashes are not known,
        as in a store without checksums, whole regions are. Nothing in the stores changes, and plans do not advance.

        What was written and is damaged since is not found unless it is read: `velocpy.ondisk.check` finds it.

        Parameters
        ----------
        key
            Of the checkpoint here.
        other
            The history of the other checkpoint: of this store or of another one, which may be open to read
            (``mode="r"``), or this history.
        other_key
            Its key; None: ``key``.
        limit
            How many ranges of elements are listed for each region, and how many values of trees.
        rtol, atol
            Numbers are the same that differ by no more than ``atol + rtol * abs(that of other)``, as `numpy.isclose`
            has it, and so are two NaN. With either of them given, the other one is 0. For what is no number each bit
            counts.
        timeout
            Seconds to wait for each transfer.

        Returns
        -------
        velocpy.comparison.Comparison
            True when they are equal; ``regions`` has what differs.

        Raises
        ------
        CheckpointNotFound, CheckpointDropped, CorruptCheckpoint, TierIOError, WaitTimeout, StoreClosed
            The text says on which side. Nothing has changed.
        InvalidArgument, InvalidType
            Likewise.

        Examples
        --------
        >>> import numpy, velocpy
        >>> with velocpy.open(host="16MiB") as store:
        ...     run = store.history("run")
        ...     u = numpy.zeros((100, 100))
        ...     _ = run.checkpoint(1, u=u, v=u)
        ...     u[20, 30:40] = 1e-9
        ...     _ = run.checkpoint(2, u=u, v=u * 0)
        ...     found = run.compare(1, run, 2)
        ...     print(found.equal, found.regions[0].index, found.regions[0].count)
        ...     print(bool(run.compare(1, run, 2, atol=1e-6)))
        False (slice(20, 21, None), slice(30, 40, None)) 10
        True
        """
        from . import comparing

        options = comparing.options_of(limit, rtol, atol, timeout)
        theirs = plain_key(key if other_key is None else other_key)
        return comparing.compare(self, plain_key(key), _compared(other), theirs, options)

    def compare_all(
        self,
        other: Checkpoints,
        *,
        limit: int = 10,
        rtol: float | None = None,
        atol: float | None = None,
        timeout: float | None = None,
    ) -> HistoryComparison:
        """Compares all checkpoints of keys that this history and another one have, in the order of writing here.

        Parameters, reads and errors are those of `compare`.

        Returns
        -------
        velocpy.comparison.HistoryComparison
            True when both have the same keys and equal checkpoints. It has those that differ, and keys that only one
            of the two has.

        Examples
        --------
        >>> import numpy, velocpy
        >>> with velocpy.open(host="16MiB") as store:
        ...     one, other = store.history("one"), store.history("other")
        ...     for step in range(5):
        ...         _ = one.checkpoint(step, u=numpy.full(3, step))
        ...         _ = other.checkpoint(step + 1, u=numpy.full(3, step + step // 4))
        ...     found = one.compare_all(other)
        ...     print(found.compared, [each.keys[0] for each in found.differing], found.only_in_one)
        4 [1, 2, 3, 4] ((0,), (5,))
        """
        return self._compare_all(other, limit, rtol, atol, timeout, stop=False)

    def first_difference(
        self,
        other: Checkpoints,
        *,
        limit: int = 10,
        rtol: float | None = None,
        atol: float | None = None,
        timeout: float | None = None,
    ) -> HistoryComparison:
        """As `compare_all`, up to the first checkpoint that differs: the ``first`` of what it returns.

        Examples
        --------
        >>> import numpy, velocpy
        >>> with velocpy.open(host="16MiB") as store:
        ...     one, other = store.history("one"), store.history("other")
        ...     for step in range(5):
        ...         _ = one.checkpoint(step, u=numpy.full(3, step))
        ...         _ = other.checkpoint(step, u=numpy.full(3, step + step // 3))
        ...     found = one.first_difference(other)
        ...     print(found.compared, found.first.keys, found.complete)
        4 (3, 3) False
        """
        return self._compare_all(other, limit, rtol, atol, timeout, stop=True)

    def _compare_all(
        self,
        other: Checkpoints,
        limit: int,
        rtol: float | None,
        atol: float | None,
        timeout: float | None,
        *,
        stop: bool,
    ) -> HistoryComparison:
        from . import comparing

        options = comparing.options_of(limit, rtol, atol, timeout)
        return comparing.compare_all(self, _compared(other), options, stop=stop)

    # --- plans ---

    def hint(self, plan: Key | Restore | Last | Drop | Advance | Iterable[Any], *, last: bool = False) -> None:
        """Tells what will be restored next, behind what was told before.

        ``plan`` is a key, a hint, a `Plan`, or any iterable of keys and hints, read lazily from inside later calls: its
        code runs in the caller's thread, may use the store, and what it raises surfaces once, in the call that read on;
        that call and the plan's rest are then not carried out; the hints read before stand. Hints may be wrong: that
        costs time only. A schedule of the package checkpoint_schedules stands for `velocpy.adjoint.plan_of` of it, and
        stays fresh.

        Parameters
        ----------
        last
            Keys alone count as `Last`.
        """
        if _is_schedule(plan):
            from .adjoint import plan_of

            plan = plan_of(plan)
        alone = isinstance(plan, (str, Integral, Restore, Last, Drop, Advance))
        source = source_of((plan,) if alone else plan, last)  # type: ignore[arg-type]
        if isinstance(plan, LearnedPlan) and plan not in self._watchers:
            self._watchers.append(plan)
        if records.wanted():
            records.planned(self._name, plan)
        self._sources.append(source)
        self._core.read_hints(self._sources)

    def hint_clear(self) -> None:
        """Withdraws everything that was hinted; nothing where the store or this side of a fork is gone already."""
        self._watchers.clear()
        self._core.hint_clear(self._sources)
        if records.wanted():
            records.log.debug("history %r: the plan is withdrawn", self._name)

    def prefetch(self) -> None:
        """Starts to bring back what the plan wants first, before the first restore asks for it."""
        self._core.prefetch()

    def wait(self, tier: TierName | None = None, timeout: float | None = None) -> None:
        """Waits until every checkpoint is captured, or durable in ``tier``, and what restores gave has been verified.

        What is dropped meanwhile, or replaced by another thread, is not waited for.

        Raises
        ------
        BelatedCorruption
            Of an earlier restore to a device.
        """
        number = tier_number(tier)
        try:
            archiving = self._store._archiving
            if tier == "archive" and archiving is not None:
                archiving.wait(timeout, self.name)
            else:
                self._core.wait(number, timeout)
        except VelocError as error:
            self._name_call(error)
            self._name_failed(error, number)
            raise

    # --- what is there ---

    def size(self, key: Key) -> int:
        """Bytes of the checkpoint's regions."""
        return self._require(key)[0]

    def ready(self, key: Key) -> bool:
        """Whether a restore would find it in the fastest tier now."""
        return self._require(key)[4]

    def tiers(self, key: Key) -> tuple[TierName, ...]:
        """Names of the tiers that have a complete copy, the fastest first."""
        held = self._require(key)[3]
        return tuple(name for number, name in enumerate(TIERS) if held >> number & 1)

    def meta(self, key: Key, *, timeout: float | None = None) -> Any:
        """What was given as ``meta``, or None. Moves no array.

        Parameters
        ----------
        key
            Of the checkpoint.
        timeout
            Seconds to wait for a checkpoint with ``copy=False`` that is still to be captured.

        Raises
        ------
        CheckpointNotFound, WaitTimeout, StoreClosed
        """
        if self._require(key)[2] == 0:
            return None
        return self._core.restore(key, (), False, True, timeout).meta

    def captured(self, key: Key) -> datetime | None:
        """When `checkpoint` was called for it, in UTC, by the clock of the system; None where a store says no times.

        Durable stores keep it with the checkpoint. Those that versions of velocpy wrote which kept no times say none.

        Raises
        ------
        CheckpointNotFound, StoreClosed

        Examples
        --------
        >>> import numpy, velocpy
        >>> from datetime import datetime, timezone
        >>> with velocpy.open(host="16MiB") as store:
        ...     run = store.history("run")
        ...     before = datetime.now(timezone.utc)
        ...     _ = run.checkpoint(0, u=numpy.zeros(2))
        ...     print((run.captured(0) - before).days)
        0
        """
        return from_nanoseconds(self._require(key)[6])

    def __contains__(self, key: object) -> bool:
        if isinstance(key, bool) or not isinstance(key, (str, Integral)):
            return False
        return self._core.lookup(key) is not None  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self._core.size()

    def __bool__(self) -> bool:
        return True  # an empty history is one all the same

    def __iter__(self) -> Iterator[Key]:
        """Keys in the order of their latest writing, as they are at this moment."""
        return iter(self._core.keys())

    def latest(self) -> Key | None:
        """Key of the checkpoint that was written last, or None in an empty history. Costs a pass over the keys.

        Examples
        --------
        >>> import numpy, tempfile, velocpy
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     for attempt in range(2):
        ...         with velocpy.open(directory, host="16MiB", disk="1GiB") as store:
        ...             run = store.history("run")
        ...             latest = run.latest()
        ...             begin = 0 if latest is None else latest + 1
        ...             for step in range(begin, begin + 3):
        ...                 _ = run.checkpoint(step, u=numpy.zeros(2))
        ...             print(begin, run.latest())
        0 2
        3 5
        """
        keys = self._core.keys()
        return keys[-1] if keys else None

    def _require(self, key: Key) -> tuple[int, int, int, int, bool, int, int]:
        found = self._core.lookup(key)
        if found is None:
            raise not_found(self._name, plain_key(key), *self._core.known())
        return found

    def __copy__(self) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise self._store._stays("History", f".history({self._name!r})")

    def __repr__(self) -> str:
        return f"<History {self._name!r}: {self._status()}>"

    def _status(self) -> str:
        """The state in a few words; of a closed store, or after a fork, that instead."""
        try:
            return f"{len(self)} checkpoints"
        except VelocError as error:
            return "store closed" if self._store.closed else type(error).__name__

    def _repr_html_(self) -> str:
        return html.history(self)


def _core_of(store: HistoryOwner, name: str) -> _core.History:
    return store._core.history(name, Lease, store._debug, store._lookahead, store._places)


def _compared(other: Any) -> Checkpoints:
    """The history to compare with."""
    if isinstance(other, Checkpoints):
        return other
    raise InvalidType(
        f"other is a {type(other).__name__}; give a History: velocpy.open(path, mode='r').history(name) is one of a "
        "store on disk."
    )


def _is_schedule(plan: Any) -> bool:
    """Whether it is a schedule of checkpoint_schedules, told without importing that package."""
    return any(
        base.__name__ == "CheckpointSchedule" and base.__module__.partition(".")[0] == "checkpoint_schedules"
        for base in type(plan).__mro__
    )


def _regions_of(regions: Any, named: Mapping[str, Any]) -> dict[str, Any] | tuple[Any, ...]:
    if named:
        raise InvalidArgument("regions come as a mapping, as a sequence or as keywords, not as two of them at once.")
    kind = type(regions)  # an abstract class takes longer to ask than a few regions to copy
    if kind is dict or (kind not in (list, tuple) and isinstance(regions, Mapping)):
        return dict(regions)
    if isinstance(regions, (list, tuple)):
        return tuple(regions)
    raise InvalidType(
        f"regions are a mapping of names to arrays or a list of arrays, not {type(regions).__name__}; for one array "
        "write checkpoint(key, u=array) or checkpoint(key, [array])."
    )


#: Key, regions, meta and structure of a checkpoint, as the core takes them.
_Item = tuple[int | str | None, dict[str, Any] | tuple[Any, ...], bytes | None, bytes | None]


def _pairs_of(checkpoints: Any) -> list[tuple[Any, ...]]:
    """Tuples of a key and regions, and at times a meta."""
    if isinstance(checkpoints, Mapping):
        return list(checkpoints.items())
    if not isinstance(checkpoints, Iterable):
        raise InvalidType(
            "checkpoints are a mapping of keys to regions or an iterable of tuples (key, regions), not "
            f"{type(checkpoints).__name__}."
        )
    pairs = list(checkpoints)
    for number, pair in enumerate(pairs):
        if type(pair) is not tuple or len(pair) not in (2, 3):
            said = f"a tuple of {len(pair)}" if type(pair) is tuple else type(pair).__name__
            raise InvalidType(f"checkpoint {number} is {said}; it is a tuple (key, regions) or (key, regions, meta).")
    return pairs


def _item(key: Any, regions: Any, meta: Any = None) -> _Item:
    if type(key) is not int and key is not None:
        key = plain_key(key)
    return key, _regions_of(regions, {}), None if meta is None else _meta_bytes(meta), None


def _tree_item(regions: Any, item: _Item) -> _Item:
    """The same for regions that are a tree."""
    flat = _flat(regions, item[1])
    return item[0], flat.regions, _beside(flat, item[2]), flat.structure


def _is_tree(regions: Any, source: dict[str, Any] | tuple[Any, ...]) -> bool:
    """Whether regions that were refused are a tree.

    Keywords that hold neither an array nor a dict are none: numbers and lists of them were given for arrays. Nor is raw
    memory that stands where a mapping or a sequence of it belongs.
    """
    if regions is not None:
        return tree.is_nested(regions)
    if not isinstance(source, dict) or not tree.is_nested(source):
        return False
    return any(isinstance(each, dict) for each in source.values()) or bool(tree.flatten(source).regions)


def _flat(regions: Any, source: Any) -> tree.Flat:
    """The tree in parts; ``source`` is the caller's mapping or sequence as a dict or tuple of this call."""
    if regions is None:
        arguments.require_no_options(source)
    return tree.flatten(type(regions)(source) if type(regions) in (list, OrderedDict) else source)


def _beside(flat: tree.Flat, meta: bytes | None) -> bytes:
    """The meta of a tree, with its values."""
    raw = tree.annotation(flat.values, meta)
    _require_shallow(raw)
    return raw


def _is_nested(into: Any) -> bool:
    """Whether destinations are a tree. Those of a mapping of numbers to arrays are regions of a sequence, too."""
    return not (isinstance(into, tuple) and _is_raw(into)) and tree.holds_more(into)


def _labels_of(regions: Any) -> tuple[Any, ...] | None:
    if regions is None:
        return None
    if isinstance(regions, (str, Integral)):
        return (regions,)
    labels = tuple(regions) if isinstance(regions, Iterable) and not isinstance(regions, Mapping) else (regions,)
    wrong = next((label for label in labels if not isinstance(label, (str, Integral))), None)
    if wrong is not None:
        raise InvalidType(
            f"regions are named by one str or int or by several, not by {type(wrong).__name__}; "
            "destinations go by keyword: restore(key, into=…)."
        )
    return labels


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise InvalidType(f"{name} is True or False, not of type {type(value).__name__}.")


def _destinations_of(into: Any) -> dict[Any, Any] | tuple[Any, ...]:
    if isinstance(into, Mapping):
        return dict(into)
    if isinstance(into, list) or (isinstance(into, tuple) and not _is_raw(into)):
        return tuple(into)
    return (into,)


def _parts_of(parts: Parts | None, into: Any) -> dict[str | int, tuple[Any, ...]] | tuple[tuple[Any, ...]] | None:
    """The indices by region, or those of the only one, each as a tuple."""
    if parts is None:
        return None
    if into is None:
        raise InvalidArgument(
            "parts= says what of a region goes into an array of into=, which is not given; index the arrays of a lease "
            "instead."
        )
    if isinstance(parts, Mapping):
        return {label: _indices(index) for label, index in parts.items()}
    return (_indices(parts),)


def _indices(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _written(into: dict[Any, Any] | tuple[Any, ...]) -> None:
    """The core has written into these arrays."""
    arrays.written(into.values() if isinstance(into, dict) else into)


def _is_raw(pair: tuple[Any, ...]) -> bool:
    return len(pair) in (2, 3) and all(isinstance(n, Integral) for n in pair)


def _depth(raw: bytes) -> int:
    """How deep the lists and objects of a JSON text are nested; what lies in its texts counts not."""
    deepest = depth = 0
    for bracket in re.findall(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', raw):
        depth += bracket in b"[{"
        depth -= bracket in b"]}"
        deepest = max(deepest, depth)
    return deepest


def _json_number(value: Any) -> bool | int | float:
    """The number of JSON that a number of NumPy is."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer) and not isinstance(value, np.timedelta64):
        return int(value)
    if isinstance(value, np.floating):
        number = float(value)
        if number == value or value != value:
            return number
        raise TypeError(f"{value!r} has more digits than a number of JSON")
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _json(meta: Any) -> str:
    try:
        return json.dumps(meta, separators=(",", ":"), default=_json_number)
    except TypeError:  # it may be for the keys: json asks about values only
        return json.dumps(_with_plain_keys(meta), separators=(",", ":"), default=_json_number)


def _names_by(best: int | None, by: str | Sequence[str] | None, order: BestOrder) -> tuple[str, ...]:
    """The names that lead to the number by which checkpoints are compared; none where no best ones are asked for."""
    if order not in ("min", "max"):
        raise InvalidArgument(f"order is {order!r}; it is one of min, max.")
    if best is None:
        if by is not None or order != "min":
            given = f"by={by!r}" if by is not None else f"order={order!r}"
            raise InvalidArgument(f"{given} says which checkpoints are the best, and not how many stay: give best=.")
        return ()
    if by is None:
        raise InvalidArgument(f"best={best} does not say by what: give by=, the name of a number in the meta.")
    names = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, Sequence) else ()
    if not 1 <= len(names) <= META_DEPTH or not all(isinstance(name, str) for name in names):
        raise InvalidArgument(f"by is {by!r}; give the name of a number in the meta, or names that lead to it.")
    return names


def _with_plain_keys(node: Any) -> Any:
    """The same with Python's numbers as the keys of dicts, instead of NumPy's."""
    if isinstance(node, dict):
        return {
            key.item() if isinstance(key, np.generic) else key: _with_plain_keys(value) for key, value in node.items()
        }
    return [_with_plain_keys(each) for each in node] if isinstance(node, (list, tuple)) else node


def _meta_bytes(meta: Any) -> bytes:
    try:
        raw = _json(meta).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidType(
            f"meta is something JSON cannot say: {error}. Store arrays as regions, a number in one as array.item()."
        ) from error
    if len(raw) > META_LIMIT:
        raise InvalidArgument(
            f"meta takes {exact(len(raw))} as JSON; at most {exact(META_LIMIT)} fit. Store large things as regions."
        )
    _require_shallow(raw)
    return raw


def _require_shallow(raw: bytes) -> None:
    if raw.count(b"[") + raw.count(b"{") > META_DEPTH and _depth(raw) > META_DEPTH:
        raise InvalidArgument(f"meta is nested more than {META_DEPTH} deep. Store large things as regions.")
