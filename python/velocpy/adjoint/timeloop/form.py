"""The form of a state: how its tensors are nested, and of which shapes, dtypes and devices they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from velocpy.errors import InvalidArgument, InvalidType


@dataclass(frozen=True)
class Nest:
    """A container of a state, or with ``kind`` None a tensor."""

    kind: type[Any] | None
    keys: tuple[Any, ...] = ()
    parts: tuple[Nest, ...] = ()

    def flatten(self, state: Any, path: str) -> Iterator[torch.Tensor]:
        """The tensors of a state of the same nesting, in this one's order."""
        if self.kind is None:
            if not isinstance(state, torch.Tensor):
                raise InvalidType(f"{path} is of type {type(state).__name__}, where a tensor belongs.")
            if state.layout is not torch.strided:
                raise InvalidType(f"{path} is a tensor without plain strides ({state.layout}); give its parts.")
            yield state
            return
        if type(state) is not self.kind:
            raise InvalidType(f"{path} is of type {type(state).__name__}, where a {self.kind.__name__} belongs.")
        if len(state) != len(self.keys):
            raise InvalidArgument(f"{path} has {len(state)} parts, where {len(self.keys)} belong.")
        for key, part in zip(self.keys, self.parts, strict=True):
            if self.kind is dict and key not in state:
                raise InvalidArgument(f"{path} has no {key!r}.")
            yield from part.flatten(state[key], f"{path}[{key!r}]")

    def build(self, tensors: Iterator[torch.Tensor]) -> Any:
        """A state of these tensors."""
        if self.kind is None:
            return next(tensors)
        built = [part.build(tensors) for part in self.parts]
        if self.kind is dict:
            return dict(zip(self.keys, built, strict=True))
        return self.kind._make(built) if hasattr(self.kind, "_make") else self.kind(built)

    def paths(self, path: str) -> Iterator[str]:
        """Where each tensor lies."""
        if self.kind is None:
            yield path
        for key, part in zip(self.keys, self.parts, strict=True):
            yield from part.paths(f"{path}[{key!r}]")


def nest_of(state: Any, path: str = "state") -> Nest:
    """The nesting of a state.

    Raises
    ------
    InvalidType
        Something of it is no tensor and no container that a state may have.
    """
    kind = type(state)
    if isinstance(state, torch.Tensor):
        return Nest(None)
    if kind is dict:
        keys = tuple(state)
    elif kind in (tuple, list) or (isinstance(state, tuple) and hasattr(kind, "_make")):
        keys = tuple(range(len(state)))
    else:
        raise InvalidType(f"{path} is of type {kind.__name__}; a state is tensors in tuples, lists and dicts.")
    return Nest(kind, keys, tuple(nest_of(state[key], f"{path}[{key!r}]") for key in keys))


class Form:
    """What every state of a loop has in common with the first one."""

    def __init__(self, nest: Nest, tensors: Sequence[torch.Tensor]) -> None:
        self._nest = nest
        self._kinds = tuple(map(_kind, tensors))
        #: Where each tensor lies.
        self.paths = tuple(nest.paths("state"))
        #: Whether each tensor can have a gradient.
        self.differentiable = tuple(t.is_floating_point() or t.is_complex() for t in tensors)

    def build(self, tensors: Sequence[torch.Tensor]) -> Any:
        """A state of these tensors."""
        return self._nest.build(iter(tensors))

    def flatten(self, state: Any, number: int) -> tuple[torch.Tensor, ...]:
        """The tensors of what step ``number`` returned.

        Raises
        ------
        InvalidArgument, InvalidType
            It is not of this form.
        """
        try:
            tensors = tuple(self._nest.flatten(state, "state"))
        except InvalidArgument as error:
            raise type(error)(f"step({number}, …) returned another structure than it was given: {error}") from None
        for path, tensor, kind in zip(self.paths, tensors, self._kinds, strict=True):
            if _kind(tensor) != kind:
                raise InvalidArgument(
                    f"step({number}, …) returned {path} as {_described(*_kind(tensor))}; it was {_described(*kind)}. "
                    "All states of a loop have the same shapes, dtypes and devices."
                )
        return tensors


def form_of(state: Any) -> tuple[Form, tuple[torch.Tensor, ...]]:
    """The form of the first state, and its tensors.

    Raises
    ------
    InvalidArgument, InvalidType
        It is no state.
    """
    nest = nest_of(state)
    tensors = tuple(nest.flatten(state, "state"))
    if not tensors:
        raise InvalidArgument("the state has no tensor: there is nothing that a step could compute.")
    return Form(nest, tensors), tensors


def _kind(tensor: torch.Tensor) -> tuple[torch.Size, torch.dtype, torch.device]:
    return tensor.shape, tensor.dtype, tensor.device


def _described(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> str:
    return f"{str(dtype).removeprefix('torch.')} of shape {tuple(shape)} on {device}"
