"""Copies states into host memory, from where DCP saves them in the background."""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch.distributed.checkpoint.staging import AsyncStager

from velocpy.checks import require_whole
from velocpy.closing import Closing
from velocpy.errors import StagerBusy, StagerClosed, TierIOError, VelocError

from .slab import Pool, Slab
from .sources import Sources

#: To where a run is copied, and from where.
_Copy = tuple[torch.Tensor, torch.Tensor]


class Stager(Closing, AsyncStager):
    """Copies the states of ``dcp.async_save`` into pinned host memory that it uses again.

    Give the same stager to all saves of a training::

        stager = velocpy.dcp.Stager()
        response = dcp.async_save(state, storage_writer=writer, checkpoint_id="step-100", async_stager=stager)
        ...  # forward and backward, which leave the state alone
        response.staging_completion.result()
        optimizer.step()

    A worker thread copies the tensors. CUDA tensors are read on a stream of the stager's own, which waits for the work
    that the current stream of the caller has then. ``async_save`` returns before they are copied, and the state may not
    be changed until that has happened. There are three ways to wait for it:

    - ``response.staging_completion.result()``, as late as the training allows;
    - `synchronize_staging`, which does the same for the last state;
    - ``Stager(wait=True)``: ``async_save`` returns when the state is copied, with the future of the upload alone, as
      it does with a stager that returns no future.

    The staged state has copies of all tensors, on the CPU: of tensors that share elements (tied weights, views) one
    copy, which they share too, with their strides; of a DTensor this process's part. Other objects are copied by
    ``copy.deepcopy`` before `stage` returns. A view with more holes than elements is copied without its holes.

    Memory: one slab of as many bytes as the state has, each tensor rounded up to 64 bytes, registered with CUDA at that
    size where the process has a CUDA device. It is lent to the staged state, and comes back when nothing refers to its
    tensors any more, as when the upload has ended. While it is lent, the next save takes a second slab, up to
    ``buffers`` of them, and then `stage` waits. The first save makes and registers the memory, which takes longer than
    the copy; `reserve` does that ahead.

    Parameters
    ----------
    buffers
        So many staged states may be in host memory at once.
    wait
        Whether `stage` returns the state when it is copied, rather than a future of it.
    timeout
        Seconds that `stage` waits for memory that earlier saves have. None: without end.

    Raises
    ------
    InvalidArgument
        ``buffers`` is no number from 1 up.

    Examples
    --------
    >>> import tempfile, torch, warnings
    >>> import torch.distributed.checkpoint as dcp
    >>> from velocpy.dcp import Reader, Stager, Writer
    >>> warnings.simplefilter("ignore", UserWarning)  # DCP warns of one process alone
    >>> with tempfile.TemporaryDirectory() as path, Writer(path, host="16MiB") as writer, Stager() as stager:
    ...     state = {"w": torch.arange(4.0), "step": 7}
    ...     saved = dcp.async_save(state, storage_writer=writer, checkpoint_id="a", async_stager=stager, no_dist=True)
    ...     saved.staging_completion.result()
    ...     _ = state["w"].zero_()
    ...     _ = saved.upload_completion.result()
    ...     with Reader(path) as reader:
    ...         dcp.load(state, storage_reader=reader, checkpoint_id="a", no_dist=True)
    >>> state
    {'w': tensor([0., 1., 2., 3.]), 'step': 7}
    """

    #: DCP need not call `synchronize_staging`: a future tells when it is done, and with ``wait=True`` it is done.
    _synchronize_after_execute = False

    def __init__(self, *, buffers: int = 2, wait: bool = False, timeout: float | None = 600.0) -> None:
        self._pool = Pool(require_whole("buffers", buffers, 1))
        self._wait = wait
        self._timeout = timeout
        self._staging = threading.Lock()  # held while a thread calls `stage`
        self._worker = ThreadPoolExecutor(1, "velocpy-stager")
        self._closed = False
        #: The state that is being copied. A finished future would keep its memory lent.
        self._unfinished: Future[Any] | None = None
        self._streams: dict[torch.device, torch.cuda.Stream] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of host memory that the stager has."""
        return sum(slab.nbytes for slab in self._pool.slabs)

    @property
    def pinned_nbytes(self) -> int:
        """Bytes of them that are registered with CUDA."""
        return sum(slab.nbytes for slab in self._pool.slabs if slab.pinned)

    def reserve(self, state_dict: Mapping[str, Any]) -> None:
        """Makes memory for a state like this one, and registers it, so that the first save has not to wait for that.

        Raises
        ------
        InvalidType, StagerBusy, StagerClosed, TierFull, WaitTimeout
            As for `stage`.
        """
        with self._entered():
            sources = Sources()
            sources.add(state_dict)
            sources.arrange()
            slab = self._pool.take(self._timeout)
            self._pool.put(self._pool.fitting(slab, sources.nbytes, _pinning_device(sources)))

    def stage(self, state_dict: Mapping[str, Any]) -> Any:
        """Begins to copy a state. ``dcp.async_save`` calls this.

        Returns
        -------
        concurrent.futures.Future or dict
            The copy, as soon as the state may be changed; with ``wait=True`` the copy itself.

        Raises
        ------
        InvalidType
            Names the entry that cannot be copied.
        StagerBusy
            Another save is staging: its state is not copied yet.
        StagerClosed
            After `close`.
        WaitTimeout
            The memory of earlier saves did not come back within ``timeout`` seconds.

        Nothing was staged then. The future raises:

        TierFull
            There is no memory for the copy.
        TierIOError
            A device failed.
        """
        with self._entered():
            sources = Sources()
            make = sources.add(state_dict)
            # The copies come behind what the caller's streams have been told so far.
            ready = {device: torch.cuda.current_stream(device).record_event() for device in sources.devices}
            for device in ready:
                if device not in self._streams:
                    self._streams[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            slab = self._pool.take(self._timeout)
            try:
                future = self._worker.submit(self._copied, sources, make, slab, ready)
            except BaseException:
                self._pool.give_up(slab)
                raise
            self._unfinished = future
            future.add_done_callback(self._finished)
        return future.result() if self._wait else future

    def synchronize_staging(self) -> None:
        """Waits until the state of the last save may be changed; raises nothing that its future does not raise."""
        future = self._unfinished
        if future is not None:
            future.result()

    def close(self) -> None:
        """Waits until the last state is copied, and frees the memory; what an upload reads is freed at its end."""
        self._closed = True
        self._worker.shutdown(wait=True)
        self._pool.close()

    @contextlib.contextmanager
    def _entered(self) -> Any:
        """Refuses what would stage two states at once."""
        if not self._staging.acquire(blocking=False):
            raise StagerBusy("another thread is staging a state; give each thread that saves a Stager of its own.")
        try:
            if self._closed:
                raise StagerClosed("the stager is closed; make a new one for further saves.")
            if self._unfinished is not None and not self._unfinished.done():
                raise StagerBusy(
                    "the state of the save before is not copied yet, and nothing was staged: wait for its "
                    "staging_completion before the state is changed, or saved again."
                )
            yield
        finally:
            self._staging.release()

    def _finished(self, future: Future[Any]) -> None:
        if self._unfinished is future:
            self._unfinished = None

    def _copied(
        self, sources: Sources, make: Any, slab: Slab | None, ready: dict[torch.device, torch.cuda.Event]
    ) -> Any:
        """Copies the runs; the worker thread runs this."""
        try:
            sources.arrange()
        except BaseException:
            self._pool.give_up(slab)
            raise
        taken = self._pool.fitting(slab, sources.nbytes, _pinning_device(sources))
        loan = taken.lend(self._pool)
        try:
            with torch.no_grad():
                for device, event in ready.items():
                    self._streams[device].wait_event(event)
                try:
                    self._copy(sources, loan)
                finally:  # no memory is given back into which a device may still write
                    for device in ready:
                        self._streams[device].synchronize()
                return make()
        except (VelocError, MemoryError):
            raise
        except RuntimeError as error:
            raise TierIOError(f"the state could not be copied to the host: {error}. Nothing was saved.") from error

    def _copy(self, sources: Sources, loan: Any) -> None:
        here: list[_Copy] = []
        there: dict[torch.device, list[_Copy]] = defaultdict(list)
        for run, offset in sources.offsets():
            to = run.placed(loan, offset)
            if not run.source.is_cuda:
                here.append((to, run.source))
            else:
                there[run.source.device].append((to, run.source))
        for device, copies in there.items():
            with torch.cuda.device(device), torch.cuda.stream(self._streams[device]):
                for to, source in copies:
                    to.copy_(source, non_blocking=True)
        for to, source in here:  # while the devices copy
            to.copy_(source)


def _pinning_device(sources: Sources) -> torch.device | None:
    """A device whose context registers memory; None: no tensor comes from a CUDA device."""
    return min(sources.devices, key=lambda device: device.index, default=None)
