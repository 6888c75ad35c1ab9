"""Objects that a `velocpy.tree` cannot hold, written as containers that it can.

The states of optimizers, schedulers and samplers hold a few types of Python beside arrays and plain values. Each of
them is written as a dict of two entries, "velocpy.kind" and "of". A tensor that a state holds several times, as tied
weights are, is written once; elsewhere stands the path to it.
"""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from velocpy import _core
from velocpy.errors import CorruptCheckpoint, InvalidType
from velocpy.tree import VALUES, name

if TYPE_CHECKING:
    import torch

#: The key that marks a dict as the written form of another object.
KIND = "velocpy.kind"

#: The kind of a tensor that stands elsewhere in the tree.
SAME = "same"

_Path = tuple[Any, ...]

#: How objects of a type are written, by the type: the kind, and its content as a container, an array or a value.
_WRITTEN: dict[type, tuple[str, Callable[[Any], Any]]] = {
    Counter: ("counter", lambda counter: [[key, count] for key, count in counter.items()]),
    set: ("set", list),
    frozenset: ("frozenset", list),
    deque: ("deque", lambda queue: [list(queue), queue.maxlen]),
    bytes: ("bytes", lambda raw: np.frombuffer(raw, np.uint8)),
    complex: ("complex", lambda number: [number.real, number.imag]),
    PosixPath: ("path", str),
}

#: Types of objects that are written, beside those of torch.
WRITABLE: tuple[type, ...] = tuple(_WRITTEN)

_READ: dict[str, Callable[[Any], Any]] = {
    "counter": lambda pairs: Counter(dict(pairs)),
    "set": set,
    "frozenset": frozenset,
    "deque": lambda content: deque(content[0], content[1]),
    "bytes": lambda raw: raw.tobytes(),
    "complex": lambda parts: complex(*parts),
    "path": Path,
    "tuple": tuple,
    "torch.Size": lambda lengths: _torch().Size(lengths),
    "torch.dtype": lambda text: _torch_named(text, "dtype"),
    "torch.device": lambda text: _torch().device(text),
}


def _torch() -> Any:
    import torch

    return torch


def _torch_named(text: str, kind: str) -> Any:
    found = getattr(_torch(), text, None)
    if not isinstance(found, getattr(_torch(), kind)):
        raise CorruptCheckpoint(f"a state holds the torch.{kind} {text!r:.80}, which this version of torch lacks.")
    return found


def is_tensor(node: Any) -> TypeGuard[torch.Tensor]:
    """Whether this is a tensor of torch, told without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(node, torch.Tensor)


def encode(node: Any, path: _Path = ()) -> Any:
    """The same state as a tree; its tensors, and often its containers, are those of the state, not copies.

    A defaultdict becomes a dict: no ``load_state_dict`` needs the default.

    Raises
    ------
    InvalidType
        Names the entry that a checkpoint cannot hold: a sparse or quantised tensor, or a tensor subclass that is not
        known. Other objects stay as they are, and `History.checkpoint` refuses them by their path.
    """
    if _reads_as_memory(node):
        return {KIND: "tuple", "of": list(node)}
    return node if _core.is_written_as_it_is(node) else _Encoder(len(path)).node(node, path)


def _reads_as_memory(node: Any) -> bool:
    """Whether `History.checkpoint` would take a region of this value for memory at an address.

    A state that is a tuple of numbers, such as an epoch and a position, is none.
    """
    return type(node) is tuple and len(node) in (2, 3) and all(type(each) is int for each in node)


class _Encoder:
    def __init__(self, root: int) -> None:
        self._root = root  # so many steps lead to the root of the state
        #: The first tensor of each address, and its path.
        self._first: dict[int, tuple[torch.Tensor, _Path]] = {}
        #: Paths of tensors by address and place, of addresses that several have.
        self._met: dict[tuple[Any, ...], _Path] = {}
        found = sys.modules.get("torch")
        self._tensor_type: Any = None if found is None else found.Tensor

    def node(self, node: Any, path: _Path) -> Any:
        kind: Any = type(node)
        if kind is self._tensor_type:  # most nodes are tensors
            return self._tensor(node, path)
        if kind in VALUES:
            return node
        if kind in (dict, OrderedDict, defaultdict):
            if KIND in node:
                raise InvalidType(f"the state at {name(path)!r} has the key {KIND!r}, which marks objects; rename it.")
            pairs = [(key, self.node(child, (*path, key))) for key, child in node.items()]
            return OrderedDict(pairs) if kind is OrderedDict else dict(pairs)
        if kind in (list, tuple):
            return kind(self.node(child, (*path, number)) for number, child in enumerate(node))
        if is_tensor(node):
            return self._tensor(node, path)
        if kind in _WRITTEN:
            word, content = _WRITTEN[kind]
            return {KIND: word, "of": self.node(content(node), (*path, "of"))}
        return self._torch_object(node, path)

    def _tensor(self, tensor: torch.Tensor, path: _Path) -> Any:
        local = plain_tensor(tensor, path)
        address, there = local.data_ptr(), path[self._root :]
        if address == 0:  # it has no elements
            return local
        other, before = self._first.setdefault(address, (local, there))
        if before is there or local.numel() == 0:
            return local
        self._met.setdefault((address, *_place(other)), before)
        before = self._met.setdefault((address, *_place(local)), there)
        return local if before is there else {KIND: SAME, "of": list(before)}

    def _torch_object(self, node: Any, path: _Path) -> Any:
        torch = sys.modules.get("torch")
        if torch is None:
            return node
        if isinstance(node, torch.Size):
            return {KIND: "torch.Size", "of": list(node)}
        if isinstance(node, torch.dtype):
            return {KIND: "torch.dtype", "of": str(node).removeprefix("torch.")}
        if isinstance(node, torch.device):
            return {KIND: "torch.device", "of": str(node)}
        return node


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What two tensors have in common that have the same elements; their addresses are compared before."""
    return tensor.device, tensor.dtype, tensor.shape, tensor.stride()


def plain_tensor(tensor: torch.Tensor, path: _Path = ()) -> torch.Tensor:
    """The tensor whose elements this process holds, without its graph: of a DTensor the local part.

    Raises
    ------
    InvalidType
        The tensor is sparse, quantised, on the meta device or uninitialised, or of a subclass that is not known.
    """
    torch = sys.modules["torch"]  # a state has hundreds of tensors, and nearly all are told by these few questions
    if type(tensor) is torch.Tensor and tensor.layout is torch.strided and not _is_unusual(tensor):
        return tensor.detach() if tensor.requires_grad else tensor
    if torch.nn.parameter.is_lazy(tensor):
        raise InvalidType(
            f"the state at {name(path)!r} is a parameter of a lazy module, which has no elements yet; run a forward "
            "pass first."
        )
    tensor = tensor.detach()
    if type(tensor).__name__ == "DTensor" and hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    known = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    if not known or tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
        kind = type(tensor).__name__ if not known else str(tensor.layout) if not tensor.is_meta else "a meta tensor"
        raise InvalidType(
            f"the state at {name(path)!r} is a tensor of a kind that a checkpoint cannot hold ({kind}); nothing was "
            "saved. Give that part an object whose state_dict() holds dense tensors."
        )
    if tensor.is_conj() or tensor.is_neg():
        return tensor.resolve_conj().resolve_neg()
    return tensor


def _is_unusual(tensor: torch.Tensor) -> bool:
    """Whether the elements of a dense tensor are not what lies in its memory, or it has none."""
    return tensor.is_quantized or tensor.is_meta or tensor.is_conj() or tensor.is_neg()


def decode(tree: Any) -> Any:
    """The state that `encode` wrote; arrays are those of the tree."""
    return _decoded(tree, tree)


def _decoded(node: Any, root: Any) -> Any:
    kind: Any = type(node)
    if kind in (list, tuple):
        return kind(_decoded(child, root) for child in node)
    if kind not in (dict, OrderedDict):
        return node
    if KIND not in node:
        pairs = [(key, _decoded(child, root)) for key, child in node.items()]
        return OrderedDict(pairs) if kind is OrderedDict else dict(pairs)
    word, content = node[KIND], node.get("of")
    if word == SAME:
        return _at(root, content)
    if word not in _READ:
        raise CorruptCheckpoint(
            f"a state holds an object of the kind {word!r:.80}, which this version of velocpy does not know."
        )
    return _READ[word](_decoded(content, root))


def _at(root: Any, path: Any) -> Any:
    try:
        node = root
        for step in path:
            node = node[step]
    except (LookupError, TypeError) as error:
        raise CorruptCheckpoint(f"a state refers to {path!r:.80}, where it holds nothing.") from error
    return node
