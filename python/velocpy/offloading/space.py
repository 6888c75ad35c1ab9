"""The storages of one device, from the save to the last use."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch.multiprocessing import reductions

from .foresight import Foresight, graph_task
from .order import Order, Source
from .residency import Residency
from .saved import Block, Graves, Remains, View, reach, require_unchanged
from .transfer import Transport

#: The number that the next node of this thread gets.
_next_node: Callable[[], int] = torch._C._autograd._get_sequence_nr

#: How often the order of a backward pass is found anew, as it asks for something else.
_SURPRISES = 4

#: Keeps the number of a storage from being given to another one, and not its bytes.
_weak_reference: Callable[[Any], Any] = reductions.StorageWeakRef

#: What PyTorch's allocator raises; before PyTorch 2.5 it had another name.
_OutOfMemory: type[RuntimeError] = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)


@dataclass
class Counts:
    """What has happened since the context was made."""

    #: Tensors that autograd saved; of these, tensors that stayed by rule.
    saved: int = 0
    passed: int = 0
    #: Storages that were moved away, and their bytes; storages that stayed for want of room below.
    moved: int = 0
    moved_bytes: int = 0
    refused: int = 0
    #: Storages that were fetched, and their bytes.
    fetched: int = 0
    fetched_bytes: int = 0
    #: Requests that found their storage on the device, or on its way; requests whose fetch began with them.
    hits: int = 0
    misses: int = 0
    #: How often the forward pass was put behind a copy because too many bytes were leaving.
    waits: int = 0
    #: Backward passes that had storages to fetch, by how their order was found.
    predicted: int = 0
    learnt: int = 0
    reversed: int = 0

    def add(self, other: Counts) -> None:
        """Adds those of another device."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class Space:
    """Blocks of one device. Its caller holds the lock of the context.

    Parameters
    ----------
    transport
        Copies their bytes away and back.
    residency
        Says which have to go.
    stash
        Bytes that may be leaving at once, beside the budget. While a backward pass runs, as many may arrive. With
        ``residency.stash`` as many stay instead that are saved last.
    most_leaving
        Storages that may be leaving at once; None: any number.
    """

    def __init__(self, transport: Transport, residency: Residency, stash: int, most_leaving: int | None) -> None:
        self.transport = transport
        self.residency = residency
        self.stash = stash
        self.most_leaving = most_leaving
        #: The lock of the context.
        self.lock: Any = None
        #: What is known of the backward passes that run; the context's.
        self.foresight: Foresight
        self.counts = Counts()
        self.graves: Graves = deque()
        self._order = Order()
        self._known: dict[int, weakref.ref[Block]] = {}
        #: Blocks that stay, in the order in which they were saved.
        self._staying: deque[weakref.ref[Block]] = deque()
        #: Blocks that leave, in the order in which they were sent.
        self._leaving: deque[weakref.ref[Block]] = deque()
        #: Blocks that are away.
        self._away: weakref.WeakSet[Block] = weakref.WeakSet()
        #: Blocks that will be asked for, in the order of the forecast; one as often as nodes will ask for it.
        self._coming: deque[weakref.ref[Block]] = deque()
        #: Blocks on the device that are elsewhere too, in the order in which this backward pass asked for them. Those
        #: that stay for a coming request are passed over.
        self._clean: deque[weakref.ref[Block]] = deque()
        #: Those that the node has asked for which asks now: it may ask for other views of them, so they are dropped
        #: later. Their bytes do not count for what may arrive.
        self._asking: list[weakref.ref[Block]] = []
        self._asking_bytes = 0
        self._node = -1
        #: Storages of dead blocks that a copy may still use.
        self._lingering: list[Remains] = []
        self._tasks: dict[int, None] = {}
        self._ordinal = 0
        self._saves = 0
        #: The sum of the sizes of this step's storages, each times its place. Steps that are alike have it in common.
        self._form = 0
        #: How the order of this backward pass was found, and how often it may be found anew.
        self._source: Source = "reversed"
        self._surprises = 0
        self._generation = 0
        self._unpacked = False
        self._closed = False

    # --- the forward pass

    def begin(self) -> None:
        """The context is entered."""
        self.settle_accounts()
        if self.residency.alive == 0 and (self._ordinal or self.residency.spare):
            self._begin_step()
        else:  # what is alive has been saved without an account, perhaps
            self.residency.spare = 0

    @property
    def unsteady(self) -> bool:
        """Whether storages will leave in this step, or have left, and the last backward passes tell no order."""
        return (self.residency.to_move > 0 or self.residency.away > 0) and not self._order.steady

    def save(
        self, tensor: torch.Tensor, version: int, storage: torch.UntypedStorage, nbytes: int
    ) -> tuple[View, Block]:
        """What autograd holds for a tensor."""
        if self.graves or self._lingering:
            self._bury()
        if self._unpacked and graph_task() == -1:
            self._begin_step()
        self.counts.saved += 1
        self._saves += 1
        view = View(tensor.detach(), version, _next_node() - 1, self._saves)
        if self.foresight.watches:
            self.foresight.saved(view)
        cdata = storage._cdata
        known = self._known.get(cdata)
        if known is not None:
            block = self._known_block(known, nbytes, version, tensor)
            if block is not None:
                if block.storage is None:
                    view.strip()
                block.views.append(view)
                return view, block
        stream = self.transport.stream()
        block = Block(storage, nbytes, cdata, self._ordinal, self._generation, stream, self, view)
        self._ordinal += 1
        self._form += self._ordinal * nbytes
        self._known[cdata] = reference = weakref.ref(block)
        residency = self.residency
        if residency.save(nbytes):
            self._send(block)
        else:
            self._staying.append(reference)
        if residency.excess > 0:
            residency.tail = 0  # more is saved than the last step has told: copies and work are to overlap again
            self._send_oldest()
        if self._leaving:
            self._release_sent()
        return view, block

    def _known_block(
        self, reference: weakref.ref[Block], nbytes: int, version: int, tensor: torch.Tensor
    ) -> Block | None:
        """The block of a storage of which a view was saved before, if it may stand for this one too.

        Where the bytes have left, autograd must have made them, or an earlier save must have shown them already: others
        write into buffers without a new version, as collective operations do, and autograd functions that fill a
        buffer in steps and return it. Such a result has a grad_fn, but its base, the buffer, has none.
        """
        block = reference()
        if block is None or block.nbytes != nbytes:
            return None
        if block.away:  # the copy has the bytes of the first save
            first = block.views[0]
            if block.generation != self._generation or not version == first.version == first.alias._version:
                return None
            base = tensor._base
            if (tensor if base is None else base).grad_fn is None and not _shown(tensor, block):
                return None
        return block

    def _begin_step(self) -> None:
        self.residency.begin_step()
        self._ordinal = self._saves = self._form = 0
        self._generation += 1
        self._unpacked = False
        self._tasks.clear()
        self._coming.clear()
        self._staying = deque(each for each in self._staying if each() is not None)

    def _send_oldest(self) -> None:
        residency = self.residency
        if not self.transport.usable():
            return
        while residency.excess > 0 and self._staying:
            block = self._staying.popleft()()
            if block is not None and not block.away and not block.stuck:
                self._send(block)

    def _send(self, block: Block) -> None:
        if not self.transport.usable():
            self._staying.append(weakref.ref(block))
            return
        if not self.transport.send(block):
            block.stuck = True
            self.counts.refused += 1
            return
        block.origin = _weak_reference(block.storage)
        block.away = block.leaves = True
        if not self.residency.away:
            self.foresight.arm()
        self._away.add(block)
        self._leaving.append(weakref.ref(block))
        self.residency.away += block.nbytes
        self.residency.leaving += block.nbytes
        self.counts.moved += 1
        self.counts.moved_bytes += block.nbytes

    def _release_sent(self) -> None:
        """Lets go of sources that were read, and of more if too many leave at once."""
        residency, leaving = self.residency, self._leaving
        while leaving:
            block = leaving[0]()
            if block is not None and block.leaves:
                many = self.most_leaving is not None and len(leaving) > self.most_leaving
                if residency.beside > self.stash or many:
                    if not block.sent.query():
                        self.counts.waits += 1
                elif not block.sent.query():
                    return
                self._release(block)
            leaving.popleft()

    def _release(self, block: Block) -> None:
        """Gives the memory of a block back to the allocator, which may use it again in stream order."""
        if block.leaves:
            self.residency.leaving -= block.nbytes
            block.leaves = False
        if not self.transport.order_release(block):
            block.stuck, block.away = True, False
            self._away.discard(block)
            self.residency.away -= block.nbytes
            self.counts.refused += 1
            return
        if block.sent is not None and block.sent.query():
            block.sent = None
        block.arriving = None
        block.strip()
        block.cdata = block.cdata[:1]
        self.residency.held -= block.nbytes

    # --- the backward pass

    def unpack(self, view: View, block: Block) -> torch.Tensor:
        """The tensor that was saved.

        Raises
        ------
        SavedTensorChanged
        """
        if view.alias._version != view.version:
            require_unchanged(view.alias, view.version)
        self._unpacked = True
        if not self.residency.away:
            self.counts.hits += 1
            return view.on(block)
        if self.graves or self._lingering:
            self._bury()
        if (task := graph_task()) != -1 and task not in self._tasks:
            self._begin_backward(task, view.last)
        if view.last != self._node:
            self._node = view.last
            self._stop_asking()
        if block.storage is None:
            self.counts.misses += 1
            self._skip_to(block, view.last)
            self._make_room(block.nbytes)
            self._fetch_now(block)
        else:
            self.counts.hits += 1
        if block.away:
            self.transport.settle(block)
            if block.asked_by != view.last:
                block.asked_by = view.last
                self._order.note(block)
                if block.ahead:
                    block.ahead -= 1
                elif self._coming and self._coming[0]() is block:
                    self._coming.popleft()
            if not block.ahead and not block.asked:
                block.asked = True
                self._asking.append(weakref.ref(block))
                self._asking_bytes += block.nbytes
        tensor = view.on(block)
        if self._coming:
            self._fetch_ahead()
        return tensor

    def _stop_asking(self) -> None:
        """Another node asks: blocks that this one has asked for may be dropped."""
        self._clean.extend(self._asking)
        self._asking.clear()
        self._asking_bytes = 0

    def _begin_backward(self, task: int, node: int) -> None:
        first = not self._tasks
        self._tasks[task] = None
        if first:
            self._order.begin(self._form, self._generation)
            torch.autograd.Variable._execution_engine.queue_callback(_ending(self))
        # Sources that are on the device still are asked for soon: they stay, beside their copies.
        for reference in self._leaving:
            block = reference()
            if block is not None and block.leaves:
                block.leaves = False
                self.residency.leaving -= block.nbytes
        self._leaving.clear()
        self._surprises = _SURPRISES
        if self._forecast(node, self.foresight.nodes(task)):
            setattr(self.counts, self._source, getattr(self.counts, self._source) + 1)

    def _forecast(self, node: int, nodes: set[int] | None, *, anew: bool = False) -> bool:
        """Finds the order in which storages will be asked for; tells whether any are to be fetched."""
        away = list(self._away)
        for block in away:
            block.ahead = 0
        coming, self._source = self._order.forecast(away, node, nodes, anew=anew)
        self._coming = deque(weakref.ref(block) for block in coming)
        fetched = [block for block in dict.fromkeys(coming) if block.storage is None]
        if fetched:
            self.transport.forecast(fetched)
        return bool(fetched)

    def end_backward(self) -> None:
        """A backward pass is over: what a retained graph still needs, and has elsewhere, leaves the device."""
        for task in self._tasks:
            self.foresight.forget(task)
        self._tasks.clear()
        self._coming.clear()
        self._stop_asking()
        self._clean.clear()
        self._node = -1
        for block in list(self._away):
            block.asked, block.ahead, block.asked_by = False, 0, -1
            if block.storage is not None:
                self._release(block)
        self._bury()
        self.residency.tail = 0  # the next pass over a graph that is kept may come late, or never
        if self.residency.excess > 0 and not self._closed:
            self._send_oldest()

    def _skip_to(self, block: Block, node: int) -> None:
        """Gives up what the forecast has before a block that is asked for, or the forecast if it was wrong."""
        for index, reference in enumerate(self._coming):
            if reference() is block:
                if index and self._source == "learnt":
                    break
                for _ in range(index + 1):
                    self._coming.popleft()
                return
        if self._surprises and self._source != "reversed" and not self._order.noted(block):
            self._surprises -= 1
            # The nodes behind this one come, too. If it is none of them, its number is not that of its node.
            watched = self._surprises > 0 and self.foresight.nodes(graph_task()) is not None
            nodes = self.foresight.look() if watched else None
            self._forecast(node, nodes, anew=True)
            if nodes is not None and not any(each() is block for each in self._coming):
                self._forecast(node, None, anew=True)
            if self._coming and self._coming[0]() is block:
                self._coming.popleft()

    def _fetch_now(self, block: Block) -> None:
        try:
            self._fetch(block)
        except _OutOfMemory:
            self._stop_asking()
            self._clean.clear()
            for each in list(self._away):
                each.asked, each.ahead = False, 0
                if each.storage is not None:
                    self._release(each)
            self._fetch(block)

    def _fetch_ahead(self) -> None:
        limit = self.residency.budget + self.stash
        while self._coming:
            block = self._coming[0]()
            if block is not None and block.storage is None:
                if not self._make_room(block.nbytes, limit) or not self.transport.usable():
                    return
                try:
                    self._fetch(block)
                except _OutOfMemory:
                    return
            if block is not None:
                block.ahead += 1
            self._coming.popleft()

    def _fetch(self, block: Block) -> None:
        self.transport.fetch(block)
        self.residency.held += block.nbytes
        # The new storage is not known by its number: a program that writes into it makes other bytes of it.
        block.cdata = (*block.cdata[:1], _present(block)._cdata)
        self.counts.fetched += 1
        self.counts.fetched_bytes += block.nbytes

    def _make_room(self, nbytes: int, limit: int | None = None) -> bool:
        """Drops blocks that were used and are elsewhere too, as far as the limit asks for it."""
        if limit is None:
            limit = self.residency.budget + self.stash
        limit += self._asking_bytes
        while self.residency.held + nbytes > limit and self._clean:
            self._drop_clean()
        return self.residency.held + nbytes <= limit

    def _drop_clean(self) -> None:
        block = self._clean.popleft()()
        if block is not None and block.away and block.storage is not None:
            block.asked = False
            if not block.ahead:  # else it is asked for again before others
                self._release(block)

    # --- the end of blocks

    def settle_accounts(self) -> None:
        """Lets go of sources that were read, and accounts for blocks that no graph needs any more."""
        if self.graves or self._lingering:
            self._bury()
        if self._leaving:
            self._release_sent()

    def _bury(self) -> None:
        """Accounts for blocks that no graph needs any more, and frees their places."""
        residency = self.residency
        known = self._known
        while self.graves:
            remains = self.graves.popleft()
            if not isinstance(remains, Remains):
                cdata, nbytes = remains
                residency.alive -= nbytes
                residency.held -= nbytes
                reference = known.get(cdata)
                if reference is not None and reference() is None:
                    del known[cdata]
                continue
            reference = known.get(remains.cdata)
            if reference is not None and reference() is None:
                del known[remains.cdata]
            residency.alive -= remains.nbytes
            residency.away -= remains.nbytes
            if remains.leaves:
                residency.leaving -= remains.nbytes
            if remains.slot is not None or remains.key is not None:
                self.transport.bury(remains.slot, remains.key, remains.events)
            if remains.storage is not None:
                self._lingering.append(remains)
            elif remains.on_device:
                residency.held -= remains.nbytes
        if self._lingering:
            staying = []
            for remains in self._lingering:
                if _passed(remains.used):
                    residency.held -= remains.nbytes
                else:
                    staying.append(remains)
            self._lingering = staying

    def close(self) -> None:
        """Waits for all copies. A backward pass that still runs sends nothing."""
        self._closed = True
        self.transport.close()
        self._bury()


def _shown(tensor: torch.Tensor, block: Block) -> bool:
    """Whether all that a tensor shows of its storage was shown by a tensor that was saved before."""
    begin, end = reach(tensor)
    return any(first <= begin and end <= last for first, last in map(View.reach, block.views))


def _present(block: Block) -> torch.UntypedStorage:
    assert block.storage is not None
    return block.storage


def _passed(event: Any) -> bool:
    """Whether it has passed; an event that fails will never be waited for again."""
    try:
        return bool(event.query())
    except RuntimeError:
        return True


def _ending(space: Space) -> Callable[[], None]:
    """What the engine calls at the end of a backward pass; it does not keep the context alive."""
    reference = weakref.ref(space)

    def end() -> None:
        found = reference()
        if found is not None:
            with found.lock:
                found.end_backward()

    return end
