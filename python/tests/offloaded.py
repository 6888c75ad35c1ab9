"""A stand-in for CUDA streams on which the offload of saved tensors is tested without a device.

Tensors of host memory play those of a device. Work on the compute stream runs at once, as the test does it. Copies of
the side streams wait in queues; they run at random moments, or when something waits for an event behind them. So a copy
that nothing orders is done too late, or reads memory that has been given back, which raises.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from contextlib import contextmanager

import torch

from velocpy.offloading import offload
from velocpy.offloading.residency import Residency
from velocpy.offloading.slab import Slab
from velocpy.offloading.space import Space
from velocpy.offloading.transfer import CudaTransport


class Race(AssertionError):
    """A copy used memory that was given back before it ran."""


def in_threads(count, work):
    """Calls work with each number below count, each in a thread, and raises what the first of them has raised."""
    failures = []

    def run(index):
        try:
            work(index)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class Fails(torch.autograd.Function):
    """A function whose backward pass raises."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        raise ZeroDivisionError


class Event:
    def __init__(self, stream, position):
        self._stream = stream
        self._position = position

    def query(self):
        self._stream.device.run_some()
        return self._stream.done >= self._position

    def synchronize(self):
        self._stream.run_to(self._position)


class Stream:
    def __init__(self, device):
        self.device = device
        self.queue = deque()
        self.queued = self.done = 0

    def put(self, work):
        self.queue.append(work)
        self.queued += 1

    def wait_event(self, event):
        if event._stream is not self:
            self.put(event.synchronize)

    def record(self):
        return Event(self, self.queued)

    def run_one(self):
        work = self.queue.popleft()
        work()
        self.done += 1

    def run_to(self, position):
        while self.done < position:
            self.run_one()

    def synchronize(self):
        self.run_to(self.queued)


class Compute(Stream):
    """Runs what it is told at once."""

    def put(self, work):
        self.queued += 1
        work()
        self.done += 1


class Device:
    """Streams that lag behind, by chance."""

    def __init__(self, seed, eagerness=0.1):
        self.random = random.Random(seed)
        self.eagerness = eagerness
        self.compute = Compute(self)
        self.side = []

    def run_some(self):
        for stream in self.random.sample(self.side, len(self.side)):
            while stream.queue and self.random.random() < self.eagerness:
                stream.run_one()

    def run_all(self):
        for stream in self.side:
            stream.synchronize()


class StandIn(CudaTransport):
    """The transport of a CUDA device with the stand-in's streams."""

    def __init__(self, device, slab, stored, streams):
        self.queues = device
        self.now = []
        self.lost = False
        super().__init__(torch.device("cpu"), slab, stored, streams)

    def stream(self):
        self.queues.run_some()
        return self.queues.compute

    def usable(self):
        return True

    def _side_stream(self):
        stream = Stream(self.queues)
        self.queues.side.append(stream)
        return stream

    @contextmanager
    def _on(self, stream):
        self.now.append(stream or self.queues.compute)
        yield
        self.now.pop()

    def _mark(self, stream):
        return (stream or self.queues.compute).record()

    def _use_on(self, storage, stream):
        pass

    def _copy(self, target, source):
        # Host memory of a slot stays mapped; that of the device is given back with its last reference.
        held = [self._reach(target), self._reach(source)]

        def run():
            reached = [each() for each in held]
            if any(each is None for each in reached):
                self.lost = True
                raise Race("a copy came after its memory was given back")
            reached[0].copy_(reached[1])

        self.now[-1].put(run)

    def _reach(self, tensor):
        storage = tensor.untyped_storage()
        if self.slab.segments and any(
            segment.address <= storage.data_ptr() < segment.address + segment.nbytes for segment in self.slab.segments
        ):
            return lambda: tensor
        return _Weak(storage)


class _Weak:
    """The bytes of a storage, unless it has gone."""

    def __init__(self, storage):
        from torch.multiprocessing.reductions import StorageWeakRef

        self._weak = StorageWeakRef(storage)

    def __call__(self):
        if self._weak.expired():
            return None
        storage = torch.UntypedStorage._new_with_weak_ptr(self._weak.cdata)
        return None if storage is None else torch.empty(0, dtype=torch.uint8).set_(storage)


class OnStandIn(offload):
    """An offload context for which host memory is a device. Without ``tail`` what is saved last leaves, too."""

    def __init__(self, *, seed=0, budget=0, transport=StandIn, eagerness=0.1, tail=True, **given):
        self.tail = tail
        given.setdefault("stash", 1 << 16)
        given.setdefault("host", "64MiB")
        given.setdefault("min_offload_size", 64)
        super().__init__(**given)
        self._cpu = True
        self.budget = budget
        self.queues = Device(seed, eagerness)
        self._kind = transport

    def _tail(self, stash):
        return super()._tail(stash) if self.tail else 0

    def _new_space(self, device):
        if device.type != "cpu" or self._closed:
            return None
        slab = Slab(self._host_bytes, None)
        self._slabs.append(slab)
        self.transport = self._kind(self.queues, slab, self._stored, self._uses_streams)
        residency = Residency(lambda held: self.budget, 1 << 10, stash=self._tail(self._stash))
        space = Space(self.transport, residency, self._stash, self._most)
        self._spaces[device] = space
        space.lock = self._lock
        space.foresight = self._foresight
        return space
