"""The context manager under which saved tensors leave the device."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from velocpy import knobs
from velocpy.budget import host_budget, parse_size
from velocpy.checks import require_whole
from velocpy.choices import Size
from velocpy.errors import InvalidArgument, InvalidBudget, InvalidType, StoreClosed, forked
from velocpy.opening import open as open_store
from velocpy.store import Store
from velocpy.tuning import Tuning

from . import rules
from .foresight import Foresight
from .residency import Residency
from .saved import Block, View, require_unchanged
from .slab import Slab
from .space import Counts, Space
from .stored import Stored
from .transfer import CudaTransport, HostTransport, Transport, registered

if TYPE_CHECKING:
    from typing_extensions import Self

#: The hooks' part of PyTorch's module for autograd, some of which has no types.
_autograd: Any = torch._C._autograd

Hooks = tuple[Callable[[torch.Tensor], Any], Callable[[Any], torch.Tensor]]

#: Part of a device's memory that "auto" leaves to everything that is not saved: gradients, what kernels need.
_HEADROOM = 0.2

#: Bytes that may be leaving at once, at most; and which part of a device's memory.
_STASH, _STASH_SHARE = 512 << 20, 1 / 64

#: After so many bytes the budget "auto" asks the driver again how much memory is free; which part of a device's memory.
_ASK_EVERY, _ASK_SHARE = 64 << 20, 1 / 128

#: Part of the host budget that the store of ``cpu=True`` has, to read ahead from the disk.
_STORE_SHARE = 4

_Tensor = torch.Tensor
_is_compiling: Callable[[], bool] = torch.compiler.is_compiling


class offload:  # noqa: N801  # in lower case, as PyTorch's own context managers
    """A context manager under which tensors that autograd saves leave the device where they do not fit.

    Put the forward pass under it; the backward pass may be inside or outside, and runs in whatever thread. It is
    entered as often as wanted, also nested and in several threads. It takes the place of
    ``torch.autograd.graph.save_on_cpu`` and of ``OffloadActivations`` of TRL and torchtune. Gradients are bitwise those
    without it. What fits stays on the device: without pressure nothing is copied. Make one for a training, and enter it
    in each step: from the second step on it knows how many bytes there will be, and spreads those that have to go over
    the forward pass. In the first step those go that were saved first, which are needed last.

    A storage is moved once, however many views of it are saved, and views of one storage come back as views of one
    storage. These stay where they are: leaf tensors that require a gradient, parameters and views of them, storages of
    ``keep``, storages of less than ``min_offload_size``, 0-dimensional tensors, tensors on other devices than CUDA
    (with ``cpu=True`` those of the host move), sparse, quantised, nested, conjugated and negated ones, subclasses of
    torch.Tensor (DTensor among them), and everything while the current stream is captured into a CUDA graph or
    torch.compile traces.

    As without hooks, a tensor that was changed in place after it was saved makes the backward pass raise,
    `velocpy.errors.SavedTensorChanged` here. PyTorch alone switches that check off where hooks are in force.

    Parameters
    ----------
    device
        Bytes of saved storages that may stay on each CUDA device: an int, a text like ``"2GiB"``, or a share of the
        device's memory (``0.25``, ``"25%"``). 0 moves all but ``stash``. "auto": as many as leave a fifth of the
        device's memory free, by what the driver and PyTorch's allocator say.
    host
        Host memory for storages that left a device, pinned as it is needed, up to exactly this many bytes: a size as
        `velocpy.open` takes it. "auto": a quarter of what may be used here, at most 32 GiB. What finds no room goes to
        the disk, or stays where it is if there is none. With ``cpu=True``: bytes of saved tensors in host memory.
    disk
        Disk for what finds no room in host memory, as for `velocpy.open`. None: none, unless ``path`` is given.
    path
        Directory for that. None: that of the system for temporary files.
    store
        A store that takes the place of ``disk`` and ``path``, and stays open. Each storage is one checkpoint, in a
        history of this context's own.
    cpu
        Whether tensors of the host are offloaded, too, to the disk.
    min_offload_size
        Smaller storages stay.
    stash
        Bytes that may be leaving a device at once, beside ``device``; the forward pass is put behind their copies
        beyond that. As many may be on their way back. From the second step on, as many stay that are saved last: the
        backward pass finds them on the device anyway. None: 512 MiB, or less on a device of less than 32 GiB.
    max_fwd_stash_size
        Storages that may be leaving at once; with a number, those saved last leave, too. None: any number.
    use_pin_memory
        False: host memory is not pinned. Copies then make the host wait.
    use_streams
        False: copies run in the order of the current stream.
    keep
        Modules, whose parameters and buffers stay, and tensors that stay. Parameters stay without it; buffers larger
        than ``min_offload_size`` are moved in vain, as their modules hold them.
    compose_with
        Other hooks, which a tensor passes before it is offloaded, and after it is back: a
        ``torch.autograd.graph.saved_tensors_hooks``, a pair (pack, unpack), or "outer" for those that are in force when
        the context is entered. PyTorch applies the innermost hooks only. What a pack hook returns is offloaded if it is
        a tensor.
    strict
        Whether saving a subclass of torch.Tensor that velocpy does not know raises `velocpy.errors.InvalidType`.

    Raises
    ------
    InvalidArgument, InvalidBudget, InvalidType
        An argument cannot be what it is.
    MissingExtra
        PyTorch is not installed.

    Examples
    --------
    >>> import tempfile, torch, velocpy
    >>> model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(8)))
    >>> with tempfile.TemporaryDirectory() as path:
    ...     context = velocpy.offload(cpu=True, host="256KiB", path=path, disk="64MiB", min_offload_size="16KiB")
    ...     for step in range(3):
    ...         with context:
    ...             loss = model(torch.ones(256, 64)).square().mean()
    ...         loss.backward()
    ...     moved = context.stats()["moved"]
    ...     context.close()
    >>> moved > 0
    True
    """

    def __init__(
        self,
        *,
        device: Size = "auto",
        host: Size = "auto",
        disk: Size | None = None,
        path: str | os.PathLike[str] | None = None,
        store: Store | None = None,
        cpu: bool = False,
        min_offload_size: Size = 256 << 10,
        stash: Size | None = None,
        max_fwd_stash_size: int | None = None,
        use_pin_memory: bool = True,
        use_streams: bool = True,
        keep: Iterable[Any] = (),
        compose_with: Any = None,
        strict: bool = False,
    ) -> None:
        self._device = _device_share(device)
        self._host_bytes = host_budget(host, knobs.node_processes())
        if self._host_bytes is None:
            raise InvalidBudget("host is None; storages of a device go to host memory: give a size, or 'auto'.")
        self._stash = None if stash is None else parse_size(stash, "stash", 0)
        self._most = None if max_fwd_stash_size is None else require_whole("max_fwd_stash_size", max_fwd_stash_size, 1)
        self._least = parse_size(min_offload_size, "min_offload_size", 0)
        for name, flag in (
            ("cpu", cpu),
            ("use_pin_memory", use_pin_memory),
            ("use_streams", use_streams),
            ("strict", strict),
        ):
            if not isinstance(flag, bool):
                raise InvalidType(f"{name} is True or False, not of type {type(flag).__name__}.")
        self._cpu = cpu
        self._pins = use_pin_memory
        self._uses_streams = use_streams
        self._strict = strict
        self._others = _hooks_of(compose_with)
        if store is not None and (disk is not None or path is not None):
            raise InvalidArgument("give a store, or disk= and path= for one of the context's own, not both.")
        if path is not None and disk is None:
            disk = "auto"
        if cpu and store is None and disk is None:
            raise InvalidArgument("cpu=True moves tensors of host memory to a disk: give disk=, path= or store=.")
        self._keep = tuple(keep) if not isinstance(keep, (torch.nn.Module, torch.Tensor)) else (keep,)
        self._kept = rules.storages_of(self._keep)
        self._store = store
        self._owned: list[Store] = []
        opens = _opener(self._host_bytes // _STORE_SHARE, disk, path, self._owned) if store is None else lambda: store
        self._stored = Stored(opens, _name()) if store is not None or disk is not None else None
        self._slab: Slab | None = None
        self._spaces: dict[torch.device, Space] = {}
        self._lock = threading.RLock()
        self._entered = _Entered()
        self._process = os.getpid()
        self._counts = Counts()
        self._foresight = Foresight()
        self._closed = False
        #: Bytes of this device that the forward pass may save without an account: the last step has fitted.
        self._spare, self._spare_on = 0, -1
        self._slabs: list[Slab] = []
        _contexts.add(self)
        self._end = weakref.finalize(self, _end, self._spaces, self._owned, self._slabs, self._process, True)
        self._end.atexit = False

    # --- the context

    def __enter__(self) -> Self:
        if self._closed:
            if os.getpid() != self._process:
                raise forked()
            raise StoreClosed("the offload context is closed; make a new one by velocpy.offload().")
        others = self._others
        if others == "outer":
            others = _outer()
        if not _autograd._saved_tensors_hooks_is_enabled():
            why = _autograd._saved_tensors_hooks_get_disabled_error_message()
            raise InvalidArgument(
                f"saved tensors cannot be offloaded here: {why} Enter velocpy.offload() outside of torch.func's "
                "transforms, and call them outside of it."
            )
        if not self._entered.stack:
            if self._keep:
                self._kept = rules.storages_of(self._keep)
            with self._lock:
                for space in self._spaces.values():
                    if space.residency.spare and self._spare <= 0:
                        space.residency.outgrown = True
                    if space.transport.usable():  # CUDA forbids to ask for events while a graph is captured
                        space.begin()
                self._spare = 0
                if len(self._spaces) == 1:
                    ((device, space),) = self._spaces.items()
                    self._spare, self._spare_on = space.residency.spare, -1 if device.index is None else device.index
        hooks = _hooks(self, others)
        hooks.__enter__()
        self._entered.stack.append((hooks, self._watch()))
        return self

    def _watch(self) -> AbstractContextManager[Any] | None:
        """Lets nodes be watched that are created, unless nothing will move, or the last steps tell the order."""
        with self._lock:
            spaces = self._spaces.values()
            if spaces:
                if all(space.residency.away == 0 for space in spaces):
                    self._foresight.disarm()
                if not any(space.unsteady for space in spaces):
                    return None
        return self._foresight.watch()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hooks, watched = self._entered.stack.pop()
        if watched is not None:
            self._foresight.unwatch(watched)
        hooks.__exit__(kind, error, trace)

    def close(self) -> None:
        """Waits for copies, and gives host memory and the disk back. A second call is nothing.

        A graph that was saved under it and is still wanted can no longer be back-propagated through, unless all of it
        has stayed on the device.
        """
        if self._closed or os.getpid() != self._process:
            self._closed = True
            return
        self._closed = True
        self._spare = 0
        with self._lock:
            self._counts = self._sum()
            self._end.detach()
            _end(self._spaces, self._owned, self._slabs, self._process, False)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def stats(self) -> dict[str, int]:
        """Counters since the context was made.

        ====================  ========================================================================================
        ``saved``             tensors that autograd saved under it
        ``passed``            of these, tensors that stayed by rule: parameters, small ones, …
        ``moved``             storages that were moved away; ``moved_bytes``
        ``refused``           storages that stayed because no tier below had room
        ``fetched``           storages that were brought back; ``fetched_bytes``
        ``hits``              requests that found their storage on the device, or on its way
        ``misses``            requests whose copy to the device began with them
        ``waits``             how often the forward pass was put behind a copy, as too many bytes were leaving
        ``predicted``         backward passes with storages to fetch whose order was read from the graph, …
        ``learnt``            … was that of the last backward pass, …
        ``reversed``          … was the reverse of the forward pass, as neither was known
        ``held_bytes``        bytes on devices now; ``alive_bytes`` with those that are elsewhere
        ``host_bytes``        bytes of host memory that are mapped now; ``pinned_bytes`` those that are pinned;
                              ``used_bytes`` those in use
        ====================  ========================================================================================
        """
        with self._lock:
            counts = self._counts if self._closed else self._sum()
            spaces = self._spaces.values()
            for space in spaces:
                space.settle_accounts()
            return {
                **vars(counts),
                "held_bytes": sum(space.residency.held for space in spaces),
                "alive_bytes": sum(space.residency.alive for space in spaces),
                "host_bytes": sum(slab.mapped for slab in self._slabs),
                "pinned_bytes": sum(slab.pinned for slab in self._slabs),
                "used_bytes": sum(slab.used for slab in self._slabs),
            }

    def __repr__(self) -> str:
        if self._closed:
            return "<offload: closed>"
        counts = self._sum()
        return f"<offload: {counts.moved} storages moved, {counts.fetched} fetched>"

    def _sum(self) -> Counts:
        total = Counts()
        for counts in (self._counts, *(space.counts for space in self._spaces.values())):
            total.add(counts)
        return total

    # --- the hooks

    def _pack(self, tensor: torch.Tensor) -> Any:
        """What autograd keeps in place of a tensor: a view and its block, or a tensor that stays and its version."""
        if type(tensor) is not _Tensor:
            return self._pack_other(tensor)
        if self._spare > 0 and tensor.get_device() == self._spare_on:
            return self._stay(tensor)
        if (tensor.is_cuda or self._cpu) and not self._closed:
            if not rules.is_plain(tensor) or rules.is_of_parameter(tensor) or _is_compiling():
                return self._pass(tensor)
            try:
                storage = tensor.untyped_storage()
                version = tensor._version
            except (NotImplementedError, RuntimeError):  # a wrapper of functorch, or of inference mode
                return self._pass(tensor)
            nbytes = storage.nbytes()
            if version < 0 or nbytes < self._least or nbytes == 0 or storage._cdata in self._kept:
                return self._pass(tensor)
            with self._lock:
                space = self._spaces.get(tensor.device) or self._new_space(tensor.device)
                if space is not None and space.transport.usable():
                    return space.save(tensor, version, storage, nbytes)
        return self._pass(tensor)

    def _stay(self, tensor: torch.Tensor) -> tuple[Any, int]:
        """What autograd keeps of a tensor that fits, as all of the last step did: no block is made of it."""
        try:
            self._spare -= tensor.untyped_storage().nbytes()
            version = tensor._version
        except (NotImplementedError, RuntimeError):  # a wrapper of functorch, or of inference mode
            return self._pass(tensor)
        self._counts.saved += 1
        return tensor.detach(), version

    def _pass(self, tensor: torch.Tensor) -> tuple[Any, int]:
        counts = self._counts
        counts.saved += 1
        counts.passed += 1
        alias = tensor.detach()  # the tensor itself would be part of a cycle with its graph
        return alias, -1 if tensor.is_inference() else alias._version

    def _pack_other(self, tensor: torch.Tensor) -> tuple[Any, int]:
        if self._strict:
            rules.require_known(tensor, self._sum().saved)
        if isinstance(tensor, torch.nn.Parameter):
            return self._pass(tensor)
        counts = self._counts
        counts.saved += 1
        counts.passed += 1
        try:
            return tensor.detach(), -1
        except (NotImplementedError, RuntimeError):
            return tensor, -1

    def _unpack(self, packed: Any) -> torch.Tensor:
        tensor: torch.Tensor
        first, second = packed
        if type(second) is int:
            if second >= 0 and first._version != second:
                require_unchanged(first, second)
            tensor = first
            return tensor
        if self._closed:
            if os.getpid() != self._process:
                raise forked()
            return _unpack_closed(first, second)
        with self._lock:
            tensor = second.space.unpack(first, second)
            return tensor

    def _new_space(self, device: torch.device) -> Space | None:
        """The space of a device whose tensors are offloaded; None for other devices."""
        if self._closed or os.getpid() != self._process:
            return None
        transport: Transport
        if device.type == "cuda":
            if device.index is None:
                return None
            transport = self._cuda_transport(device)
            total = int(torch.cuda.get_device_properties(device).total_memory)
            stash = min(_STASH, int(total * _STASH_SHARE)) if self._stash is None else self._stash
            every = max(_ASK_EVERY, int(total * _ASK_SHARE))
            budget = _cuda_budget(self._device, device, total)
            residency = Residency(budget, every, stash=self._tail(stash), measured=_is_auto(self._device))
        elif device.type == "cpu" and self._cpu and self._stored is not None:
            transport = HostTransport(self._stored)
            own = self._host_bytes or 0
            stays = own if self._store is not None else own - own // _STORE_SHARE
            stash = stays // 4 if self._stash is None else min(self._stash, stays)
            residency = Residency(lambda held: stays - stash, _ASK_EVERY, stash=self._tail(stash))
        else:
            return None
        space = self._spaces[device] = Space(transport, residency, stash, self._most)
        space.lock = self._lock
        space.foresight = self._foresight
        return space

    def _tail(self, stash: int) -> int:
        """Bytes that stay beside the budget if they are saved last; a number of storages bounds no bytes."""
        return stash if self._most is None else 0

    def _cuda_transport(self, device: torch.device) -> Transport:
        if self._slab is None:
            register = registered(device) if self._pins else None
            self._slab = Slab(self._host_bytes or 0, register)
            self._slabs.append(self._slab)
        return CudaTransport(device, self._slab, self._stored, self._uses_streams)


def _unpack_closed(view: View, block: Block) -> torch.Tensor:
    """The tensor that was saved under a context that is closed."""
    if block.storage is None:
        raise StoreClosed(
            "the offload context was closed before the backward pass; the saved tensors that had left the device are "
            "gone."
        )
    require_unchanged(view.alias, view.version)
    return view.on(block)


#: All contexts of this process.
_contexts: weakref.WeakSet[offload] = weakref.WeakSet()


def _close_in_child() -> None:
    """A forked child has neither the threads of the core nor the device: its parent's contexts are closed there."""
    for context in list(_contexts):
        context._closed = True


os.register_at_fork(after_in_child=_close_in_child)


class _Entered(threading.local):
    """The hooks that a thread has entered and not left."""

    def __init__(self) -> None:
        self.stack: list[tuple[saved_tensors_hooks, AbstractContextManager[Any] | None]] = []


def _hooks(context: offload, others: Hooks | None) -> saved_tensors_hooks:
    if others is None:
        return saved_tensors_hooks(context._pack, context._unpack)
    inner_pack, inner_unpack = others

    def pack(tensor: torch.Tensor) -> Any:
        packed = inner_pack(tensor)
        return (context._pack(packed), True) if isinstance(packed, torch.Tensor) else (packed, False)

    def unpack(packed: Any) -> torch.Tensor:
        held, ours = packed
        return inner_unpack(context._unpack(held) if ours else held)

    return saved_tensors_hooks(pack, unpack)


def _hooks_of(compose_with: Any) -> Any:
    """The pair of hooks that tensors pass first; "outer": the one that is in force when the context is entered."""
    if compose_with is None or compose_with == "outer":
        return compose_with
    if isinstance(compose_with, saved_tensors_hooks):
        return compose_with.pack_hook, compose_with.unpack_hook
    if isinstance(compose_with, tuple) and len(compose_with) == 2 and all(callable(hook) for hook in compose_with):
        return compose_with
    raise InvalidType(
        f"compose_with is a {type(compose_with).__name__}; give a torch.autograd.graph.saved_tensors_hooks, a pair of "
        "functions (pack, unpack), or 'outer'."
    )


def _outer() -> Hooks | None:
    found: Hooks | None = _autograd._top_saved_tensors_default_hooks(False)
    return found


def _device_share(device: Size) -> float | int:
    """The bytes that stay on a device, or as a float the share of its memory; NaN stands for "auto"."""
    if device == "auto":
        return float("nan")
    share: float | None = None
    if isinstance(device, str) and device.strip().endswith("%"):
        try:
            share = float(device.strip()[:-1]) / 100
        except ValueError:
            share = -1.0
    elif isinstance(device, float) and device <= 1:
        share = device
    if share is None:
        return parse_size(device, "device", 0)
    if not 0 <= share <= 1:
        raise InvalidBudget(f"device is {device!r}; a share of the device's memory is from 0 to 1, or 0% to 100%.")
    return share


def _is_auto(device_share: float | int) -> bool:
    return device_share != device_share  # as NaN is


def _cuda_budget(device_share: float | int, device: torch.device, total: int) -> Callable[[int], int]:
    if isinstance(device_share, int):
        return lambda held: device_share
    if not _is_auto(device_share):
        fixed = int(total * device_share)
        return lambda held: fixed

    def what_fits(held: int) -> int:
        free, _ = torch.cuda.mem_get_info(device)
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return max(0, int(free + unused + held - _HEADROOM * total))

    return what_fits


def _opener(
    host: int, disk: Size | None, path: str | os.PathLike[str] | None, owned: list[Store]
) -> Callable[[], Store]:
    """Opens the context's own store when it is needed first. Its files go with the process."""

    def opens() -> Store:
        store = open_store(
            path,
            host=max(host, 1 << 20),
            disk=disk,
            durable=False,
            tuning=Tuning(flush="lazy"),
        )
        owned.append(store)
        return store

    return opens


_names = 0
_names_lock = threading.Lock()


def _name() -> str:
    """The name of a history that no other context of this process has."""
    global _names
    with _names_lock:
        _names += 1
        return f"offload-{os.getpid()}-{_names}"


def _end(spaces: dict[torch.device, Space], owned: list[Store], slabs: list[Slab], process: int, keep: bool) -> None:
    """Gives everything back. ``keep`` leaves pinned memory to later contexts of this process."""
    if os.getpid() != process:
        return
    for space in spaces.values():
        with suppress(RuntimeError):  # the device failed, or a stream is captured into a graph
            space.close()
    spaces.clear()
    for slab in slabs:
        slab.end(keep)
    slabs.clear()
    while owned:
        owned.pop().close()
