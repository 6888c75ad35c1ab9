"""The tensors of a state that is to be staged, as runs of bytes to be copied, and the state with the copies."""

from __future__ import annotations

import bisect
import copy
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from velocpy.errors import InvalidType
from velocpy.tree import name

#: The offsets of copies in a slab are multiples of so many bytes.
_ALIGNMENT = 64

#: Makes a part of the staged state, once the runs are copied.
_Maker = Callable[[], Any]
_Path = tuple[Any, ...]


class Run:
    """Bytes that are copied at once, and where their copy is."""

    __slots__ = ("begin", "copy", "nbytes", "source")

    def __init__(self, source: torch.Tensor, begin: int) -> None:
        #: Bytes of one storage, or a tensor whose elements are copied in C order.
        self.source = source
        #: First byte in the storage.
        self.begin = begin
        #: Bytes of the copy.
        self.nbytes: int = source.nbytes
        #: In a slab, as soon as there is one.
        self.copy: torch.Tensor | None = None

    def placed(self, slab: np.ndarray[Any, Any], offset: int) -> torch.Tensor:
        """The memory of the copy, as a storage of its own: writers copy tensors that have part of a storage."""
        source = self.source
        flat = torch.frombuffer(slab, dtype=torch.uint8, count=self.nbytes, offset=offset)
        self.copy = flat.view(source.dtype).view(source.shape)
        return self.copy


class _Entry:
    """A tensor of the state."""

    __slots__ = ("run", "tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.run: Run | None = None

    @property
    def begin(self) -> int:
        """First byte in the storage."""
        return int(self.tensor.storage_offset()) * self.tensor.element_size()

    @property
    def span(self) -> int:
        """Elements from the first one to the last one in the storage."""
        axes = zip(self.tensor.shape, self.tensor.stride(), strict=True)
        return 1 + sum((int(length) - 1) * int(stride) for length, stride in axes)

    @property
    def end(self) -> int:
        """The byte behind the last one."""
        return self.begin + self.span * self.tensor.element_size()

    def made(self) -> torch.Tensor:
        """The staged tensor, of the strides of its source where the whole span was copied."""
        tensor, run = self.tensor, self.run
        if run is None:
            return torch.empty(tensor.shape, dtype=tensor.dtype)
        assert run.copy is not None
        whole = self.begin == run.begin and tensor.stride() == run.source.stride()
        if run.source is tensor or (whole and run.source.dtype == tensor.dtype and run.source.shape == tensor.shape):
            return run.copy
        offset = (self.begin - run.begin) // tensor.element_size()
        staged = torch.empty(0, dtype=tensor.dtype)
        return staged.set_(run.copy.untyped_storage(), offset, tensor.shape, tensor.stride())


@dataclass
class Sources:
    """The tensors of one state: those that share elements are in one run, which is copied once."""

    #: The CUDA devices that have tensors of the state.
    devices: set[torch.device] = field(default_factory=set)
    #: After `arrange`.
    runs: list[Run] = field(default_factory=list)
    #: The tensors by the storages that they lie in.
    _storages: dict[tuple[torch.device, int], list[_Entry]] = field(default_factory=dict)
    #: What `copy.deepcopy` has copied.
    _memo: dict[int, Any] = field(default_factory=dict)

    def add(self, state: Any) -> _Maker:
        """Collects the tensors of a state, and copies everything else; returns what makes the staged state.

        Raises
        ------
        InvalidType
            Names the entry that cannot be staged.
        """
        try:
            make = self._add(state, ())
        except RecursionError:
            raise InvalidType("the state is nested too deep, or holds itself; nothing was staged.") from None
        return make

    def offsets(self) -> Iterator[tuple[Run, int]]:
        """The runs with the offsets of their copies in a slab."""
        offset = 0
        for run in self.runs:
            yield run, offset
            offset += -(-run.nbytes // _ALIGNMENT) * _ALIGNMENT

    @property
    def nbytes(self) -> int:
        """Size of the slab that takes the copies."""
        return max((offset + run.nbytes for run, offset in self.offsets()), default=0)

    def _add(self, node: Any, path: _Path) -> _Maker:
        kind: Any = type(node)
        if isinstance(node, torch.Tensor):
            return self._tensor(node, path)
        if kind in (dict, OrderedDict, defaultdict):
            pairs = [(key, self._add(child, (*path, key))) for key, child in node.items()]
            empty = defaultdict(node.default_factory) if kind is defaultdict else kind()
            return lambda: _filled(empty, pairs)
        if kind in (list, tuple):
            makers = [self._add(child, (*path, number)) for number, child in enumerate(node)]
            return lambda: kind(make() for make in makers)
        if isinstance(node, tuple) and hasattr(kind, "_make"):
            makers = [self._add(child, (*path, key)) for key, child in zip(kind._fields, node, strict=True)]
            return lambda: kind._make(make() for make in makers)
        copied = self._object(node, path)
        return lambda: copied

    def _object(self, node: Any, path: _Path) -> Any:
        try:
            return copy.deepcopy(node, self._memo)
        except RecursionError:
            raise
        except Exception as error:
            raise InvalidType(
                f"the state at {name(path)!r} is an object of type {type(node).__name__} that cannot be copied: "
                f"{error}. Nothing was staged; leave it out of the state, or save what it consists of."
            ) from error

    def _tensor(self, tensor: torch.Tensor, path: _Path) -> _Maker:
        tensor = tensor.detach()
        if type(tensor) in (torch.Tensor, torch.nn.Parameter):
            if tensor.layout == torch.strided and not tensor.is_quantized and not tensor.is_meta:
                return self._strided(tensor, path)
        elif type(tensor).__name__ == "ShardedTensor":
            raise InvalidType(
                f"the state at {name(path)!r} is a ShardedTensor; nothing was staged. Save DTensors, as FSDP2 has them "
                "and FSDP1 with a device mesh."
            )
        elif hasattr(tensor, "__tensor_flatten__"):
            return self._wrapper(tensor, path)
        return self._other(tensor, path)

    def _wrapper(self, tensor: Any, path: _Path) -> _Maker:
        """A tensor that consists of others, as a DTensor does of its local part."""
        if hasattr(tensor, "trigger_wait"):  # the result of a collective that may not have ended
            return self._tensor(tensor.trigger_wait(), path)
        names, context = tensor.__tensor_flatten__()
        parts = {each: self._part(getattr(tensor, each), (*path, each)) for each in names}
        kind, shape, strides = type(tensor), tensor.shape, tensor.stride()
        return lambda: kind.__tensor_unflatten__(
            {each: make() for each, make in parts.items()}, context, shape, strides
        )

    def _part(self, part: Any, path: _Path) -> _Maker:
        return self._tensor(part, path) if isinstance(part, torch.Tensor) else lambda: part  # a DeviceMesh, say

    def _other(self, tensor: torch.Tensor, path: _Path) -> _Maker:
        """A sparse or quantised tensor, or one of a subclass: copied at once."""
        try:
            copied = tensor if tensor.is_meta else tensor.to("cpu", copy=True)
        except Exception as error:
            raise InvalidType(
                f"the state at {name(path)!r} is a {type(tensor).__name__} that cannot be copied to the host: {error}. "
                "Nothing was staged."
            ) from error
        return lambda: copied

    def _strided(self, tensor: torch.Tensor, path: _Path) -> _Maker:
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        entry = _Entry(tensor)
        if tensor.numel():
            device = tensor.device
            if tensor.is_cuda:
                self.devices.add(device)
            address = tensor.untyped_storage().data_ptr()
            if address == 0:
                raise InvalidType(
                    f"the state at {name(path)!r} is a tensor whose memory was freed, as FSDP frees that of parameters "
                    "between uses; nothing was staged. Take the state where it is gathered."
                )
            self._storages.setdefault((device, address), []).append(entry)
        return entry.made

    def arrange(self) -> None:
        """Makes the runs, the largest first: while they are copied the others can be begun.

        The span of a tensor is copied as it lies, together with the spans that it overlaps. A tensor with more holes
        than elements in its span is copied element by element, unless another run has its span.
        """
        for entries in self._storages.values():
            if len(entries) == 1 and entries[0].tensor.is_contiguous():
                entries[0].run = Run(entries[0].tensor, 0)
                self.runs.append(entries[0].run)
                continue
            dense = [entry for entry in entries if entry.span <= entry.tensor.numel()]
            runs = _merged(dense)
            alone: dict[tuple[Any, ...], Run] = {}
            begins = [run.begin for run in runs]
            for entry in entries:
                before = bisect.bisect_right(begins, entry.begin)
                if before and _has(runs[before - 1], entry):
                    entry.run = runs[before - 1]
                else:
                    tensor = entry.tensor
                    place = (tensor.dtype, entry.begin, tensor.shape, tensor.stride())
                    entry.run = alone.setdefault(place, Run(tensor, entry.begin))
            self.runs += [*runs, *alone.values()]
        self.runs.sort(key=lambda run: -run.nbytes)


def _filled(empty: Any, pairs: list[tuple[Any, _Maker]]) -> Mapping[Any, Any]:
    filled: Mapping[Any, Any] = empty.copy()
    empty = filled
    for key, make in pairs:
        empty[key] = make()
    return filled


def _merged(entries: list[_Entry]) -> list[Run]:
    """The spans of tensors in one storage, those that overlap together."""
    spans: list[list[int]] = []
    # Elements of all dtypes have to lie at multiples of their size in the copy too.
    alignment = max((entry.tensor.element_size() for entry in entries), default=1)
    for entry in sorted(entries, key=lambda entry: entry.begin):
        begin = entry.begin // alignment * alignment
        if spans and begin < spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], entry.end)
        else:
            spans.append([begin, entry.end])
    # Storages at one address may differ in length: arrays of NumPy of which tensors were made.
    longest = max(
        (entry.tensor for entry in entries), key=lambda tensor: tensor.untyped_storage().nbytes(), default=None
    )
    return [Run(_raw(longest, begin, end), begin) for begin, end in spans if longest is not None]


def _raw(tensor: torch.Tensor, begin: int, end: int) -> torch.Tensor:
    """Bytes of the storage of a tensor."""
    raw = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return raw.set_(tensor.untyped_storage(), begin, (end - begin,), (1,))


def _has(run: Run, entry: _Entry) -> bool:
    return run.begin <= entry.begin and entry.end <= run.begin + run.nbytes
