"""The dict that Lightning saves, as the tree of a checkpoint and back."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from velocpy.errors import InvalidArgument, InvalidType
from velocpy.training.encoding import WRITABLE, decode, encode, is_tensor
from velocpy.training.filling import copied
from velocpy.tree import name

Path = tuple[Any, ...]

#: Gives a tensor of its own with the elements of a tensor, on the device that the caller wants.
Placement = Callable[[torch.Tensor], torch.Tensor]

_LEAVES = (type(None), bool, int, float, str, np.ndarray, *WRITABLE)


def tree_of(checkpoint: Mapping[Any, Any]) -> dict[str, Any]:
    """The tree of a checkpoint; its tensors are those of the checkpoint, not copies.

    Mappings of other types become dicts. The versions of modules, which torch keeps as an attribute of their state,
    stand in an entry of their own.

    Raises
    ------
    InvalidType
        Names the entry that a checkpoint cannot hold.
    """
    states = {key: value for key, value in checkpoint.items() if isinstance(value, OrderedDict)}
    metadata = [(key, state._metadata) for key, state in states.items() if hasattr(state, "_metadata")]
    return {"checkpoint": encode(_plain(checkpoint, ())), "metadata": _text(metadata)}


def checkpoint_of(tree: Mapping[str, Any], place: Placement) -> dict[str, Any]:
    """The checkpoint that a tree stands for, with arrays of its own."""
    checkpoint: dict[str, Any] = decode(copied(tree["checkpoint"], place))
    for key, metadata in json.loads(tree["metadata"].tobytes()):
        checkpoint[key]._metadata = OrderedDict(metadata)
    return checkpoint


def placement(map_location: Any) -> Placement:
    """Where tensors are put, by an argument ``map_location`` of `torch.load`.

    All elements of a checkpoint come from host memory. So a function is called with the storage of each tensor there
    and the location ``"cpu"``, and of a mapping the entry ``"cpu"`` counts. None: they stay there.

    Raises
    ------
    InvalidArgument, InvalidType
        It names no device.

    Examples
    --------
    >>> import torch
    >>> from velocpy.integrations.lightning.content import placement
    >>> placement({"cpu": "meta"})(torch.ones(2)).device
    device(type='meta')
    """
    if callable(map_location) and not isinstance(map_location, torch.device):
        return _by_function(map_location)
    if isinstance(map_location, Mapping):
        map_location = map_location.get("cpu")
    device = _device(map_location)
    return lambda tensor: tensor.to("cpu", copy=True).to(device)


def _by_function(function: Callable[[Any, str], Any]) -> Placement:
    def place(tensor: torch.Tensor) -> torch.Tensor:
        own = tensor.to("cpu", copy=True)
        moved = function(own.untyped_storage(), "cpu")
        return own if moved is None else own.to(moved.device)

    return place


def _device(location: Any) -> torch.device:
    if location is not None and not isinstance(location, (str, torch.device)):
        raise InvalidType(
            f"map_location is a {type(location).__name__}; give a device, its name, a mapping of names, a function or "
            "None."
        )
    try:
        return torch.device("cpu" if location is None else location)
    except RuntimeError as error:
        raise InvalidArgument(f"map_location is {location!r:.80}, which is no device: {error}") from error


def _plain(node: Any, path: Path) -> Any:
    """The same with dicts for all mappings."""
    kind: Any = type(node)
    if kind in (list, tuple):
        return kind(_plain(child, (*path, number)) for number, child in enumerate(node))
    if kind in _LEAVES or isinstance(node, (np.generic, torch.Size, torch.dtype, torch.device)):
        return node
    if isinstance(node, Mapping):
        pairs = [(key, _plain(child, (*path, key))) for key, child in node.items()]
        return OrderedDict(pairs) if kind is OrderedDict else dict(pairs)
    if is_tensor(node) and kind.__name__ != "DTensor":
        return node
    raise InvalidType(
        f"the entry {name(path)!r} of the checkpoint is a {kind.__name__}, which VelocCheckpointIO does not save: it "
        "pickles nothing. Leave it out, as by save_hyperparameters(ignore=[…]), or make it of dicts, lists, tuples, "
        "arrays, numbers and texts. Nothing was saved."
    )


def _text(metadata: list[tuple[Any, Any]]) -> Any:
    """Metadata as an array: the values of a checkpoint have a limit."""
    try:
        return np.frombuffer(json.dumps(metadata).encode(), np.uint8)
    except (TypeError, ValueError) as error:
        raise InvalidType(f"the _metadata of a state is something that JSON cannot say: {error}.") from error
