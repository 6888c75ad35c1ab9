"""Copies between a device and the tiers below it.

A transport sends the bytes of a block away and fetches them back. `CudaTransport` copies on streams of its own, to
slots of a `Slab`; slots of storages that are needed late go on to the disk where there is one. `HostTransport` is for
tensors in host memory, which go to the disk.

The order of copies on a device, in which ``compute`` is the stream that is current in the call:

=====================================  ==============================================================
copy to the host                       behind the work on ``compute``, and behind the last use of the slot
source goes back to the allocator      when the copy has ended, or behind it in the order of ``compute``
copy to the device                     behind the copy to the host, and behind what ``compute`` did before
                                       the memory was allocated on it
use of the restored memory             behind the copy to the device; the allocator is told of other streams
=====================================  ==============================================================
"""

from __future__ import annotations

import logging
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from velocpy import pinned

from .saved import Block
from .slab import Slab, Slot
from .stored import REFUSED, Stored

log = logging.getLogger("velocpy")

#: torch.cuda, parts of which have no types.
_cuda: Any = torch.cuda

#: Slots that are on their way to the disk at once.
_WRITES = 4


class Transport(ABC):
    """The way of blocks from one device and back. Its caller holds the lock of the context."""

    @abstractmethod
    def stream(self) -> Any:
        """The stream that is current in this thread."""

    @abstractmethod
    def send(self, block: Block) -> bool:
        """Begins to copy a block away, and sets ``block.sent``. False: no tier has room for it."""

    @abstractmethod
    def fetch(self, block: Block) -> None:
        """Allocates memory on the device, begins to fill it, and sets ``block.arriving``."""

    @abstractmethod
    def settle(self, block: Block) -> None:
        """Puts the current stream behind the arrival of a block."""

    @abstractmethod
    def order_release(self, block: Block) -> bool:
        """Orders the reuse of a block's memory behind copies that use it. False: the bytes are nowhere else."""

    @abstractmethod
    def bury(self, slot: Any, key: int | None, events: tuple[Any, ...]) -> None:
        """Frees the places of a block that no graph needs any more."""

    @abstractmethod
    def forecast(self, blocks: list[Block]) -> None:
        """Tells the order in which blocks that are away will be fetched."""

    def usable(self) -> bool:
        """Whether copies may be queued now."""
        return True

    @abstractmethod
    def close(self) -> None:
        """Waits for all copies."""


class HostTransport(Transport):
    """Tensors of host memory, which go to the store."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored

    def stream(self) -> Any:
        return None

    def send(self, block: Block) -> bool:
        try:
            block.key, block.sent = self._stored.put(_bytes_of(block.storage))
        except REFUSED:
            return False
        return True

    def fetch(self, block: Block) -> None:
        assert block.key is not None
        target = torch.empty(block.nbytes, dtype=torch.uint8)
        self._stored.get(block.key, target)
        block.storage = target.untyped_storage()

    def settle(self, block: Block) -> None:
        pass

    def order_release(self, block: Block) -> bool:
        try:
            if block.sent is not None:
                block.sent.synchronize()
        except REFUSED:
            block.sent, block.key = None, None
            return False
        return True

    def bury(self, slot: Any, key: int | None, events: tuple[Any, ...]) -> None:
        if key is not None:
            self._stored.drop(key)

    def forecast(self, blocks: list[Block]) -> None:
        self._stored.hint(block.key for block in blocks if block.key is not None)

    def close(self) -> None:
        pass


class CudaTransport(Transport):
    """Tensors of a CUDA device, which go to pinned host memory, and from there to the store if there is one."""

    def __init__(self, device: torch.device, slab: Slab, stored: Stored | None, streams: bool) -> None:
        self.device = device
        self.slab = slab
        self._stored = stored
        self._down = self._side_stream() if streams else None
        self._up = self._side_stream() if streams else None
        #: The streams on which tensors were saved or used, by their handles.
        self._streams: dict[int, torch.cuda.Stream] = {}
        #: Blocks in the slab, in the order in which they were sent.
        self._resting: deque[weakref.ref[Block]] = deque()
        #: Host memory beside the slab from which a device is filled.
        self._aside: list[tuple[torch.Tensor, Any]] = []
        #: Blocks whose slots the store reads.
        self._writing: deque[tuple[weakref.ref[Block], Any]] = deque()

    def stream(self) -> torch.cuda.Stream:
        raw = torch._C._cuda_getCurrentRawStream(self.device.index)
        found = self._streams.get(raw)
        if found is None:
            found = self._streams[raw] = torch.cuda.current_stream(self.device)
        return found

    def usable(self) -> bool:
        return not torch.cuda.is_current_stream_capturing()

    def send(self, block: Block) -> bool:
        slot = self._slot(block.nbytes)
        if slot is None:
            return False
        try:
            with self._on(self._down):
                self._order_send(block, slot)
                self._copy(_host_bytes(slot), _bytes_of(block.storage))
                block.sent = self._mark(self._down)
        except RuntimeError:
            self.slab.give(slot, [])
            raise
        block.slot = slot
        if self._stored is not None:
            self._resting.append(weakref.ref(block))
        return True

    def fetch(self, block: Block) -> None:
        stream = self.stream()
        target = torch.empty(block.nbytes, dtype=torch.uint8, device=self.device)
        source = self._source(block)
        with self._on(self._up):
            self._order_fetch(block, stream)
            self._copy(target, source)
            block.arriving = block.reading = self._mark(self._up)
        if block.slot is None:
            self._aside = [each for each in self._aside if not each[1].query()]
            self._aside.append((source, block.reading))
        block.storage, block.stream = target.untyped_storage(), stream

    def settle(self, block: Block) -> None:
        if not block.restored:
            return
        stream = self.stream()
        if stream != block.stream:
            self._order_use(block, stream)
            self._use_on(block.storage, stream)
        elif block.arriving is not None:
            self._order_use(block, stream)
            block.arriving = None

    def order_release(self, block: Block) -> bool:
        event = block.used
        if event is not None and not event.query():
            block.stream.wait_event(event)
            if len(self._streams) > 1 and self._down is not None and not block.restored:
                self._use_on(block.storage, self._down)  # another stream may have allocated the memory
        return True

    def bury(self, slot: Slot | None, key: int | None, events: tuple[Any, ...]) -> None:
        if key is not None and self._stored is not None:
            self._stored.drop(key)
        if slot is not None:
            self.slab.give(slot, list(events))

    def forecast(self, blocks: list[Block]) -> None:
        keys = [block.key for block in blocks if block.key is not None and block.slot is None]
        if keys and self._stored is not None:
            self._stored.hint(keys)

    def close(self) -> None:
        for stream in (self._down, self._up, *self._streams.values()):
            if stream is not None:
                stream.synchronize()

    # --- the order of copies, one method for each line of the table above

    def _order_send(self, block: Block, slot: Slot) -> None:
        stream = self.stream() if self._down is None else self._down
        stream.wait_event(self._mark(block.stream))
        for event in slot.after:
            stream.wait_event(event)

    def _order_fetch(self, block: Block, compute: torch.cuda.Stream) -> None:
        stream = compute if self._up is None else self._up
        stream.wait_event(self._mark(compute))
        if block.sent is not None:
            stream.wait_event(block.sent)
        if block.slot is not None:
            for event in block.slot.after:
                stream.wait_event(event)

    def _order_use(self, block: Block, compute: torch.cuda.Stream) -> None:
        compute.wait_event(block.reading)

    def _drain(self, block: Block) -> None:
        """Waits until the host may read the slot."""
        if block.sent is not None:
            block.sent.synchronize()

    # --- what a stand-in for CUDA does otherwise

    def _side_stream(self) -> torch.cuda.Stream:
        stream: torch.cuda.Stream = _cuda.Stream(self.device)
        return stream

    def _on(self, stream: torch.cuda.Stream | None) -> AbstractContextManager[Any]:
        return torch.cuda.stream(stream)

    def _copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        target.copy_(source, non_blocking=True)

    def _mark(self, stream: torch.cuda.Stream | None) -> torch.cuda.Event:
        event: torch.cuda.Event = _cuda.Event()
        event.record(self.stream() if stream is None else stream)
        return event

    def _use_on(self, storage: torch.UntypedStorage | None, stream: torch.cuda.Stream) -> None:
        """Tells the allocator that a stream uses memory that was allocated on another one."""
        _bytes_of(storage).record_stream(stream)

    # --- room in the slab

    def _slot(self, nbytes: int) -> Slot | None:
        """A slot of the slab, for which others go to the disk."""
        slot = self.slab.take(nbytes)
        if self._stored is None:
            return slot
        while slot is None:
            if not self._write_ahead() and not self._reap():
                return None
            if len(self._writing) >= _WRITES or not self._resting:
                self._reap()
            slot = self.slab.take(nbytes)
        return slot

    def _write_ahead(self) -> bool:
        """Begins to write the block that was sent first; False: there is none."""
        assert self._stored is not None
        while self._resting:
            reference = self._resting.popleft()
            block = reference()
            if block is None or block.slot is None:
                continue
            if block.key is not None:  # the disk has it already
                self._free_slot(block)
                return True
            self._drain(block)
            try:
                block.key, written = self._stored.put(_host_bytes(block.slot))
            except REFUSED as error:
                _warn_once(f"the disk tier refuses storages that are offloaded: {error}")
                return False
            self._writing.append((reference, written))
            return True
        return False

    def _reap(self) -> bool:
        """Waits until the disk has the block whose writing began first; False: there is none."""
        while self._writing:
            reference, written = self._writing.popleft()
            block = reference()
            if block is None:
                return True
            try:
                written.synchronize()
            except REFUSED as error:
                _warn_once(f"the disk tier refuses storages that are offloaded: {error}")
                block.key = None
                continue
            self._free_slot(block)
            return True
        return False

    def _free_slot(self, block: Block) -> None:
        events = [event for event in (block.sent, block.reading) if event is not None]
        self.slab.give(block.slot, events)
        block.slot = None

    def _source(self, block: Block) -> torch.Tensor:
        """The bytes of a block in host memory."""
        if block.slot is None:
            assert self._stored is not None
            assert block.key is not None
            slot = self.slab.take(block.nbytes)
            if slot is None:
                aside = torch.empty(block.nbytes, dtype=torch.uint8)
                self._stored.get(block.key, aside)
                return aside
            for event in slot.after:
                event.synchronize()
            slot.after = []
            self._stored.get(block.key, _host_bytes(slot))
            block.slot, block.sent = slot, None
            self._resting.append(weakref.ref(block))
        return _host_bytes(block.slot)


def registered(device: torch.device) -> Callable[[int, int], Callable[[], None] | None]:
    """What registers memory with the CUDA driver, for copies that run beside the host; the memory is any device's."""

    def register(address: int, nbytes: int) -> Callable[[], None] | None:
        failure = pinned.register(address, nbytes, device)
        if failure:
            _warn_once(
                f"the driver refuses to pin {nbytes} bytes of host memory (error {failure}); copies to memory that is "
                "not pinned make the host wait"
            )
            return None
        return lambda: pinned.unregister(address, device)

    return register


_warned: set[str] = set()


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        log.warning("%s", text)


def _bytes_of(storage: torch.UntypedStorage | None) -> torch.Tensor:
    assert storage is not None
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _host_bytes(slot: Slot) -> torch.Tensor:
    return torch.frombuffer(slot.buffer, dtype=torch.uint8)
