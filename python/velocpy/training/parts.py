"""The parts of a training: how the state of each is taken, compared with a saved one, and put back."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from velocpy.errors import InvalidArgument, InvalidType, StateMismatch

from . import filling
from .encoding import decode, encode, is_tensor, plain_tensor
from .filling import Path
from .randomness import Generator

if TYPE_CHECKING:
    import torch


class Stateful(Protocol):
    """An object whose state can be taken and set, as torch's are."""

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state: Any) -> Any: ...


def devices_of(parts: Iterable[Part]) -> set[int]:
    """The numbers of the CUDA devices on which modules and optimizers have tensors now."""
    tensors = [tensor for part in parts for tensor in part.tensors()]
    return {tensor.device.index for tensor in tensors if tensor.device.type == "cuda"}


class Part:
    """An object that takes its state back as a whole, by its ``load_state_dict``: a scheduler, sampler or scaler."""

    def __init__(self, name: str, holder: Stateful) -> None:
        self.name = name
        self.holder = holder

    def state(self) -> Any:
        """The state now, as a tree; its tensors are those of the object."""
        return encode(self.holder.state_dict(), (self.name,))

    def tensors(self) -> Iterable[torch.Tensor]:
        """The tensors that the object is known to have."""
        return ()

    def targets(self, saved: Any) -> dict[Path, torch.Tensor] | None:
        """The object's own tensors that get the saved elements, by their paths; None: it takes its state as a whole.

        In ``saved``, ... may stand for arrays.

        Raises
        ------
        StateMismatch
            The object cannot take this state. It has not been changed.
        """
        return None

    def finish(self, saved: Any) -> None:
        """Sets the values of a state whose elements the targets have got."""

    def load(self, saved: Any) -> None:
        """Sets the state as a whole; the object gets arrays of its own."""
        self.holder.load_state_dict(filling.copied(decode(saved)))


class ModulePart(Part):
    """A module of torch. Its parameters and buffers stay where they are and get the saved elements."""

    holder: Any

    def tensors(self) -> Iterable[torch.Tensor]:
        return (*self.holder.parameters(), *self.holder.buffers())

    def targets(self, saved: Any) -> dict[Path, torch.Tensor] | None:
        found = filling.pairs(self.state(), saved, (self.name,))
        own = {_place(tensor) for tensor in self.tensors()}
        direct = all(_place(tensor) in own for tensor in found.values())
        # What get_extra_state() gave, and what hooks made of a state, goes back through load_state_dict.
        return found if direct and filling.only_arrays(decode(saved)) else None

    def load(self, saved: Any) -> None:
        state = decode(saved)
        if isinstance(state, OrderedDict):
            # Without the versions of its modules, a state counts as one of their first version, and is converted.
            state._metadata = getattr(self.holder.state_dict(), "_metadata", None)  # type: ignore[attr-defined]
        self.holder.load_state_dict(state)  # it copies the elements


class OptimizerPart(Part):
    """An optimizer of torch, whose state tensors keep their memory.

    Its state is set as a whole where the two differ in structure: one was taken before the first step, say.
    """

    holder: Any

    def tensors(self) -> Iterable[torch.Tensor]:
        return [tensor for group in self.holder.param_groups for tensor in group["params"]]

    def targets(self, saved: Any) -> dict[Path, torch.Tensor] | None:
        state = self.state()
        self._require_groups(state, saved)
        try:
            found = filling.pairs(state, saved, (self.name,))
        except StateMismatch:
            return None
        # What a subclass adds to the state goes back through load_state_dict.
        return found if set(state) == {"state", "param_groups"} and self._is_direct(found) else None

    def _require_groups(self, state: Any, saved: Any) -> None:
        have, want = _groups(state), _groups(saved)
        if have != want:
            raise StateMismatch(f"{self.name!r} has groups of {have} parameters, and the checkpoint has {want}")

    def _is_direct(self, found: Mapping[Path, torch.Tensor]) -> bool:
        """Whether the tensors are those with which the optimizer computes, in dicts by parameter or by group."""
        dicts = [*self.holder.state.values(), *self.holder.param_groups]
        if not all(isinstance(each, Mapping) for each in dicts):  # state that belongs to no parameter
            return False
        own = {id(value) for each in dicts for value in each.values() if is_tensor(value)}
        places = {_place(value) for each in dicts for value in each.values() if is_tensor(value)}
        flat = all(len(path) == 4 for path in found)  # optimizer, state, parameter, name
        return flat and len(own) == len(found) and all(_place(tensor) in places for tensor in found.values())

    def load(self, saved: Any) -> None:
        state = decode(saved)
        self.holder.load_state_dict(filling.copied(state))
        if type(self.holder).load_state_dict is sys.modules["torch"].optim.Optimizer.load_state_dict:
            _exact(self.holder.state_dict()["state"], state["state"])

    def finish(self, saved: Any) -> None:
        saved = decode(saved)
        state: Any = self.holder.state_dict()["state"]
        for key, values in saved["state"].items():
            _set_values(state[key], values)
        for group, values in zip(self.holder.param_groups, saved["param_groups"], strict=True):
            _set_values(group, {key: value for key, value in values.items() if key != "params"})


def _groups(state: Any) -> list[int]:
    """How many parameters each group of an optimizer's state has."""
    groups = state.get("param_groups", ()) if isinstance(state, Mapping) else ()
    return [len(group["params"]) for group in groups]


def _exact(loaded: Any, saved: Any) -> Any:
    """The loaded state with tensors of the dtypes that were saved: torch casts them to the dtype of the parameter."""
    if is_tensor(saved):
        return loaded if loaded.dtype == saved.dtype else saved.to(loaded.device, copy=True)
    if isinstance(saved, Mapping):
        for key, value in saved.items():
            loaded[key] = _exact(loaded[key], value)
    elif isinstance(saved, (list, tuple)):
        return type(saved)(map(_exact, loaded, saved))
    return loaded


def _set_values(into: dict[str, Any], saved: Mapping[str, Any]) -> None:
    for key, value in saved.items():
        if not filling.is_array(value):
            into[key] = filling.copied(value)


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    local = plain_tensor(tensor)
    return local.device, local.data_ptr(), local.dtype, local.shape, local.stride()


def parts_of(given: Mapping[str, Any]) -> dict[str, Part]:
    """The parts by name; those that are None are left out, and lists and dicts are several parts.

    Raises
    ------
    InvalidType
        Names what has no state.
    InvalidArgument
        Two parts have one name, as those of the dict {1: …, "1": …} have.
    """
    found: dict[str, Part] = {}
    for name, value in given.items():
        for each, holder in _named(name, value):
            if each in found:
                raise InvalidArgument(f"two parts have the name {each!r}; give them different names.")
            found[each] = _part(each, holder)
    return found


def _named(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        for number, each in enumerate(value):
            yield from _named(f"{name}.{number}", each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _named(f"{name}.{key}", each)
    elif value is not None:
        yield name, value


def _part(name: str, value: Any) -> Part:
    if Generator.is_one(value):
        return Part(name, Generator(value))
    if not callable(getattr(value, "state_dict", None)) or not callable(getattr(value, "load_state_dict", None)):
        raise InvalidType(
            f"{name} is a {type(value).__name__}, which has no state_dict() and load_state_dict(); give an object with "
            "both, a random generator, or a list or dict of these."
        )
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.Module):
        return ModulePart(name, value)
    if torch is not None and isinstance(value, torch.optim.Optimizer):
        return OptimizerPart(name, value)
    return Part(name, value)
