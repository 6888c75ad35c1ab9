"""Putting a training back to a snapshot."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from velocpy import tree
from velocpy.errors import InvalidArgument, StateMismatch
from velocpy.store import History

from . import filling
from .filling import Path, require_alike
from .parts import Part

if TYPE_CHECKING:
    import torch

#: The name in a snapshot that says whether it stays until `Checkpointer.rollback` or ``keep_durable`` drops it.
DURABLE = "velocpy.durable"


class _Slot:
    """Stands for an array of a checkpoint, at its path."""

    def __init__(self, path: Path) -> None:
        self.path = path


class Restoring:
    """One restore: first everything that can fail and changes nothing, then the changes."""

    def __init__(self, history: History, step: int, parts: Mapping[str, Part]) -> None:
        self._history = history
        self._step = step
        self._parts = parts
        #: Tensors of the training that get saved elements, by the names of regions, and what sets its state as a whole.
        self._fill: dict[str, torch.Tensor] = {}
        self._filled: set[str] = set()

    def run(self) -> None:
        with self._history.restore(self._step, ()) as lease:
            outline = lease.tree
        names = self._names(outline)
        for name, part in self._parts.items():
            self._plan(name, part, outline, names)
        distant = {name: tensor for name, tensor in self._fill.items() if not on_host(tensor)}
        wanted = [name for path, name in names.items() if path[0] in self._parts and name not in distant]
        with self._history.restore(self._step, wanted) as lease:  # this verifies what comes to host memory
            saved = lease.tree
            near = {name: tensor for name, tensor in self._fill.items() if on_host(tensor)}
            with self._explained():
                for name, tensor in near.items():
                    require_alike(name, tensor, lease[name])
            if distant:
                self._fetch(distant)
            _copy(near, lease)
            self._set_rest(saved)

    def _names(self, outline: Any) -> dict[Path, str]:
        """Names of the regions, by the paths of their arrays."""
        missing = [name for name in self._parts if not isinstance(outline, dict) or name not in outline]
        if missing:
            has = [str(name) for name in outline if name != DURABLE] if isinstance(outline, dict) else []
            raise self._mismatch(f"the checkpoint has no {missing[0]!r}; it has {', '.join(has) or 'no parts'}")
        return {slot.path: name for name, slot in tree.flatten(_slots(outline, ())).regions.items()}

    def _plan(self, name: str, part: Part, outline: Any, names: Mapping[Path, str]) -> None:
        with self._explained():
            targets = part.targets(outline[name])
        if targets is not None:
            self._filled.add(name)
            self._fill |= {names[path]: tensor for path, tensor in targets.items()}

    def _fetch(self, distant: dict[str, torch.Tensor]) -> None:
        """Fills tensors on a device; the store compares shapes and dtypes before it writes."""
        try:
            self._history.restore(self._step, into=distant)
            self._history.wait()  # for the verification on the device
        except InvalidArgument as error:
            raise self._mismatch(str(error).rstrip(".")) from error

    def _set_rest(self, saved: Any) -> None:
        """Sets what is no tensor, and the states of parts that take them as a whole, in the order of the parts."""
        done: list[str] = []
        for name, part in self._parts.items():
            try:
                if name in self._filled:
                    part.finish(saved[name])
                else:
                    part.load(saved[name])
            except Exception as error:
                filled = [other for other in self._filled if other not in done and other != name]
                failed = StateMismatch(
                    f"{name!r} did not take the state of step {self._step}: {type(error).__name__}: {error}. "
                    f"Restored are {', '.join((*done, *filled)) or 'no other parts'}; the snapshot is intact.",
                    history=self._history.name,
                    key=self._step,
                )
                failed.restored = (*done, *filled)
                raise failed from error
            done.append(name)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Says of a mismatch which checkpoint it is about."""
        try:
            yield
        except StateMismatch as error:
            raise self._mismatch(str(error)) from None

    def _mismatch(self, what: str) -> StateMismatch:
        return StateMismatch(
            f"step {self._step} of history {self._history.name!r} is the checkpoint of another training: {what}. "
            "Nothing was restored. Build what was saved, or name the parts that fit: restore(parts=…).",
            history=self._history.name,
            key=self._step,
        )


def on_host(tensor: torch.Tensor) -> bool:
    """Whether a tensor lies in host memory: what goes there is verified before it is copied."""
    return tensor.is_cpu


def _slots(node: Any, path: Path) -> Any:
    kind: Any = type(node)
    if kind in (dict, OrderedDict):
        return kind((key, _slots(child, (*path, key))) for key, child in node.items())
    if kind in (list, tuple):
        return kind(_slots(child, (*path, number)) for number, child in enumerate(node))
    return _Slot(path) if node is ... else node


def _copy(tensors: Mapping[str, torch.Tensor], lease: Mapping[Any, Any]) -> None:
    """Overwrites tensors with the arrays of the same names; autograd is not told, as of what an optimizer does."""
    if tensors:
        import torch

        with torch.no_grad():
            for name, tensor in tensors.items():
                filling.distinct(tensor, tensor).copy_(filling.distinct(lease[name], tensor))
