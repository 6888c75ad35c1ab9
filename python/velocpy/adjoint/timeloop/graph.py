"""The graph of one step: which parameters it reaches, and its gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from velocpy.errors import InvalidArgument

from .failure import GraphError

#: Each operation on it makes one node.
_PROBE = torch.zeros((), requires_grad=True)


def sequence_number() -> int:
    """A number that is smaller than those of all nodes which this thread will make. Gradients are enabled."""
    node: Any = _PROBE.neg().grad_fn
    return int(node._sequence_nr())


class Parameters:
    """The tensors with a gradient that a step uses beside its state."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self.tensors = tuple(tensors)
        self._leaves = {id(tensor): index for index, tensor in enumerate(tensors) if tensor.is_leaf}
        self._edges = {(t.grad_fn, t.output_nr): index for index, t in enumerate(tensors) if not t.is_leaf}
        self._versions = [tensor._version for tensor in tensors]

    def require_unchanged(self) -> None:
        """Refuses to go on with other values than the forward sweep had.

        Raises
        ------
        GraphError
        """
        for index, (tensor, version) in enumerate(zip(self.tensors, self._versions, strict=True)):
            what = f"parameter {index} of the loop, of shape {tuple(tensor.shape)},"
            if tensor._version != version:
                raise GraphError(f"{what} was written after the forward sweep: run backward() before the update.")
            if tensor.retains_grad:
                raise GraphError(
                    f"{what} is computed and retains its gradient, which each step would add to: take the gradient by "
                    "torch.autograd.grad, or name the leaves from which it is computed and compute it in the step."
                )

    def reached(self, outputs: Sequence[torch.Tensor], leaves: Sequence[torch.Tensor], first: int) -> list[int]:
        """Which of them the graph of a step leads to.

        ``leaves`` are the tensors of the state that the step was given, ``first`` is the `sequence_number` before it.

        Raises
        ------
        InvalidArgument
            The graph leads to a tensor with a gradient that is neither in the state nor among the parameters.
        """
        found: set[int] = set()
        state = {id(leaf) for leaf in leaves}
        pending = [_edge(output) for output in outputs if output.requires_grad and id(output) not in state]
        seen = set(pending)
        while pending:
            edge = pending.pop()
            index = self._index(edge)
            if index is not None:
                found.add(index)
                continue
            variable = _leaf(edge)
            if id(variable) in state:
                continue
            if variable is not None or edge[0]._sequence_nr() < first:
                raise _unnamed(edge[0], variable)
            for follower in edge[0].next_functions:
                if follower[0] is not None and follower not in seen:
                    seen.add(follower)
                    pending.append(follower)
        return sorted(found)

    def _index(self, edge: tuple[Any, int]) -> int | None:
        variable = _leaf(edge)
        return self._edges.get(edge) if variable is None else self._leaves.get(id(variable))


def step_gradients(
    outputs: Sequence[torch.Tensor],
    of_outputs: Sequence[torch.Tensor],
    leaves: Sequence[torch.Tensor],
    parameters: Sequence[torch.Tensor],
    of_parameters: Sequence[torch.Tensor | None],
) -> tuple[list[torch.Tensor | None], list[torch.Tensor | None]]:
    """Gradients of ``leaves``, and those of ``parameters`` added to what later steps gave.

    Plain autograd adds each contribution to the sum of all earlier ones. So the sum goes into the graph, as the
    gradient of an output which is the parameter itself: it is then what the contributions of this step are added to.
    """
    sums = [(p, total) for p, total in zip(parameters, of_parameters, strict=True) if total is not None]
    with _without_hooks(parameters):
        found = torch.autograd.grad(
            [*outputs, *(p for p, _ in sums)],
            [*leaves, *parameters],
            [*of_outputs, *(total for _, total in sums)],
            allow_unused=True,
        )
    return list(found[: len(leaves)]), list(found[len(leaves) :])


@contextmanager
def _without_hooks(tensors: Sequence[torch.Tensor]) -> Iterator[None]:
    """Hooks of tensors see their whole gradient, once, after the loop's backward pass, and nothing of single steps."""
    hooked = [(t._backward_hooks, dict(t._backward_hooks)) for t in tensors if t._backward_hooks]
    for hooks, _ in hooked:
        hooks.clear()
    try:
        yield
    finally:
        for hooks, before in hooked:
            hooks.update(before)


def _edge(tensor: torch.Tensor) -> tuple[Any, int]:
    """Where the gradient of a tensor goes."""
    if tensor.grad_fn is not None:
        return tensor.grad_fn, tensor.output_nr
    return tensor.view_as(tensor).grad_fn.next_functions[0]  # type: ignore[union-attr]


def _leaf(edge: tuple[Any, int]) -> torch.Tensor | None:
    """The leaf whose gradient a node accumulates, or None for other nodes."""
    if type(edge[0]).__name__ != "AccumulateGrad":
        return None
    variable: torch.Tensor = edge[0].variable
    return variable


def _unnamed(node: Any, leaf: torch.Tensor | None) -> InvalidArgument:
    what = f"shape {tuple(leaf.shape)}" if leaf is not None else f"an operation before the step ({node.name()})"
    return InvalidArgument(
        f"step uses a tensor of {what}, which needs a gradient and is no input of the loop: name it in parameters=, or "
        "detach it."
    )
