"""Host memory into which states are staged: registered with CUDA at its exact size, lent, and used again."""

from __future__ import annotations

import gc
import logging
import mmap
import queue
import weakref
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from velocpy import pinned
from velocpy.errors import TierFull, WaitTimeout
from velocpy.quantity import exact

#: Seconds before another slab is made: a thread that has ended its upload drops the state a little later.
_GRACE = 0.005


class Slab:
    """One mapping of memory, registered with CUDA where ``device`` is not None.

    Without registration, as where CUDA refuses it, copies from a device are slower, and as exact.

    Raises
    ------
    TierFull
        The system maps no more memory.
    """

    def __init__(self, nbytes: int, device: torch.device | None) -> None:
        self.nbytes = nbytes
        self.device = device
        #: Ends the registration, at the latest with the slab: memory that is unmapped before stays registered.
        self._registration: weakref.finalize[..., Slab] | None = None
        try:
            self._map = pinned.mapped(nbytes)
        except OSError as error:
            raise TierFull(
                f"no {exact(nbytes)} of host memory to stage a state into: {error.strerror}. Nothing was staged.",
                tier="host",
            ) from error
        if device is not None:
            self._register(device)

    @property
    def pinned(self) -> bool:
        """Whether CUDA knows this memory."""
        return self._registration is not None

    def _register(self, device: torch.device) -> None:
        pinned.keep_from_children(self._map)
        elements = torch.frombuffer(self._map, dtype=torch.uint8)
        elements[:: mmap.PAGESIZE].zero_()  # several threads make the pages; CUDA would make them with one
        address = elements.data_ptr()
        failure = pinned.register(address, len(self._map), device)
        if not failure:
            self._registration = weakref.finalize(self, pinned.unregister, address, device)
            self._registration.atexit = False  # the driver may have gone by then
            return
        logging.getLogger("velocpy").warning(
            "CUDA registers no %s of host memory (error %d); states are staged into memory that is not pinned, slower.",
            exact(self.nbytes),
            failure,
        )

    def lend(self, pool: Pool) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The memory, as an array; when nothing refers to that any more, the pool has the slab back."""
        loan = np.frombuffer(self._map, np.uint8)
        weakref.finalize(loan, pool.put, self).atexit = False
        return loan

    def free(self) -> None:
        """Ends the registration. The mapping ends with the last tensor in it."""
        if self._registration is not None:
            self._registration()
            self._registration = None


class Pool:
    """At most ``limit`` slabs."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._made: list[Slab | None] = []
        #: Slabs that are not lent. Its `put` may interrupt its `get`: the garbage collector ends loans.
        self._free: queue.SimpleQueue[Slab] = queue.SimpleQueue()
        self._closed = False

    @property
    def slabs(self) -> list[Slab]:
        """Those that have memory."""
        return [slab for slab in self._made if slab is not None]

    def take(self, timeout: float | None) -> Slab | None:
        """A slab that is not lent, or None: one may be made. Waits for one where all are lent.

        Raises
        ------
        WaitTimeout
        """
        with suppress(queue.Empty):
            return self._free.get(timeout=_GRACE) if self._made else self._free.get_nowait()
        if len(self._made) < self._limit:
            self._made.append(None)
            return None
        gc.collect()  # the exception of an upload that failed refers to its state in a circle
        try:
            return self._free.get(timeout=timeout)
        except queue.Empty:
            raise WaitTimeout(
                f"the {self._limit} states staged before are still in use after {timeout:g} s; nothing was staged. "
                "Their memory comes free when their uploads have ended: wait for upload_completion, give up the "
                "responses of saves that failed and planners that hold a state, or allow more buffers."
            ) from None

    def fitting(self, slab: Slab | None, nbytes: int, device: torch.device | None) -> Slab:
        """The slab that was taken, or one of this size in its place."""
        if slab is not None and slab.nbytes >= nbytes and (device is None or slab.device is not None):
            return slab
        self._forget(slab)
        made = Slab(nbytes, device)  # where that fails, another one may be made
        self._made.append(made)
        return made

    def give_up(self, slab: Slab | None) -> None:
        """Takes back what `take` gave and `fitting` has not got."""
        if slab is None:
            self._made.remove(None)
        else:
            self.put(slab)

    def put(self, slab: Slab) -> None:
        """Takes back what `fitting` gave."""
        self._free.put(slab)
        if self._closed:
            self._drain()

    def close(self) -> None:
        """Frees the slabs, those that are lent when they come back."""
        self._closed = True
        self._drain()

    def _forget(self, slab: Slab | None) -> None:
        self._made.remove(slab)
        if slab is not None:
            slab.free()

    def _drain(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._forget(self._free.get_nowait())
