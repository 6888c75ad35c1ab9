"""Putting saved elements into the tensors that a training has, where both states have one structure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from velocpy.errors import StateMismatch
from velocpy.tree import name

from .encoding import KIND, SAME, is_tensor

if TYPE_CHECKING:
    import torch

Path = tuple[Any, ...]

_CONTAINERS = (dict, OrderedDict, list, tuple)


def is_array(node: Any) -> bool:
    """Whether an array of a checkpoint stands here; ... stands for one that was not asked for."""
    return node is ... or isinstance(node, np.ndarray) or is_tensor(node)


def leaves(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The arrays and values of a tree with their paths, in their order."""
    if type(node) not in _CONTAINERS:
        yield path, node
    else:
        for key, child in node.items() if isinstance(node, Mapping) else enumerate(node):
            yield from leaves(child, (*path, key))


def only_arrays(node: Any) -> bool:
    """Whether a tree holds arrays alone."""
    return all(is_array(leaf) for _, leaf in leaves(node))


def pairs(current: Any, saved: Any, path: Path) -> dict[Path, torch.Tensor]:
    """The tensors of a state into which arrays of a saved one go, by their paths. Shapes are not compared.

    Raises
    ------
    StateMismatch
        The two have other structures; the text names the first entry that differs, and of which kind it is in each.
    """
    found: dict[Path, torch.Tensor] = {}
    _pair(current, saved, path, found)
    return found


def _pair(current: Any, saved: Any, path: Path, found: dict[Path, torch.Tensor]) -> None:
    if is_array(saved) and is_tensor(current):
        found[path] = current
        return
    if type(current) not in _CONTAINERS and type(saved) not in _CONTAINERS and not is_array(saved):
        if is_tensor(current):
            raise _differs(path, "a tensor", "a value")
        return
    keys, saved_keys = _keys(current), _keys(saved)
    if keys is None or saved_keys is None:
        raise _differs(path, _told(current), _told(saved))
    if keys != saved_keys:
        entry, here = _first_difference(keys, saved_keys)
        raise _differs((*path, entry), *(("something", "nothing") if here else ("nothing", "something")))
    if _is_same(current) and current != saved:
        raise _differs(path, f"tied to {current['of']}", f"tied to {saved['of']}")
    for key in keys:
        _pair(current[key], saved[key], (*path, key), found)


def _is_same(node: Any) -> bool:
    return isinstance(node, Mapping) and node.get(KIND) == SAME


def _keys(node: Any) -> list[Any] | None:
    if type(node) not in _CONTAINERS:
        return None
    return list(node) if isinstance(node, Mapping) else list(range(len(node)))


def _first_difference(keys: list[Any], saved: list[Any]) -> tuple[Any, bool]:
    """A key that one of both lacks, or that is at another place, and whether the first one has it."""
    for key in keys:
        if key not in saved:
            return key, True
    for key in saved:
        if key not in keys:
            return key, False
    return next(key for key, other in zip(keys, saved, strict=True) if key != other), True


def _told(node: Any) -> str:
    if is_array(node):
        return "a tensor"
    return f"a {type(node).__name__}" if type(node) in _CONTAINERS else f"the value {node!r:.40}"


def _differs(path: Path, here: str, saved: str) -> StateMismatch:
    return StateMismatch(f"{name(path)!r} is {here} in this training, and {saved} in the checkpoint")


def require_alike(entry: str, tensor: torch.Tensor, array: Any) -> None:
    """Refuses a saved array whose shape or dtype is not that of the tensor it goes into.

    Raises
    ------
    StateMismatch
    """
    if not is_tensor(array):
        raise _differs((entry,), "a tensor", f"a {type(array).__name__}")
    if tensor.shape != array.shape or tensor.dtype != array.dtype:
        raise _differs((entry,), _described(tensor), _described(array))
    once = distinct(array, tensor)
    if once is not array and not _same_bits(once.expand_as(array), array):
        raise _differs((entry,), "an expanded tensor, whose elements repeat,", "one whose elements do not repeat")


def distinct(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The elements of a tensor without the repeated ones, where ``like`` is expanded (`torch.Tensor.expand`)."""
    for dimension, (length, stride) in enumerate(zip(like.shape, like.stride(), strict=True)):
        if length > 1 and stride == 0:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    import torch

    return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


def _described(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def copied(node: Any, placed: Callable[[torch.Tensor], torch.Tensor] | None = None) -> Any:
    """The same state with arrays of its own. An array that stands at several places is copied once.

    ``placed`` copies a tensor; None: to where it is.
    """
    return _copied(node, placed or (lambda tensor: tensor.clone()), {})


def _copied(node: Any, placed: Callable[[torch.Tensor], torch.Tensor], made: dict[int, Any]) -> Any:
    kind: Any = type(node)
    if kind in (list, tuple):
        return kind(_copied(child, placed, made) for child in node)
    if kind in (dict, OrderedDict):
        return kind((key, _copied(child, placed, made)) for key, child in node.items())
    if id(node) in made:
        return made[id(node)]
    if isinstance(node, np.ndarray):
        made[id(node)] = node.copy()
    elif is_tensor(node):
        made[id(node)] = placed(node)
    return made.get(id(node), node)
