"""The loop as one node of the caller's autograd graph."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import checkpoint_schedules as cs
import torch

from velocpy.adjoint.executor import Run
from velocpy.adjoint.schedule import TIERS, ScheduleError
from velocpy.errors import InvalidArgument, InvalidType

from .context import Autocast, Generators, NoGenerators
from .failure import GraphError
from .form import form_of
from .graph import Parameters
from .steps import Gradients, Steps

#: Tells the keys of the loops of this process apart.
_numbers = itertools.count()


def run(
    step: Callable[[int, Any], Any],
    n: int,
    state: Any,
    history: Any,
    schedule: Any,
    parameters: Any,
    preserve_rng: bool,
) -> Any:
    """See `velocpy.adjoint.checkpointed`."""
    n = _count(n)
    for what, given, needed in (("step", step, "__call__"), ("history", history, "checkpoint")):
        if not hasattr(given, needed):
            raise InvalidType(f"checkpointed() was given {given!r:.60} as its {what}, which has no {needed}().")
    (form, first), named = form_of(state), _named(parameters)
    if n == 0:
        return state
    devices = {tensor.device for tensor in (*first, *named)}
    generators = Generators(devices) if preserve_rng else NoGenerators()
    owned = Parameters(named)
    steps = Steps(step, form, first, owned, generators, Autocast.present(devices))
    loop = Loop(steps, _planned(schedule, steps, history, n), generators, owned)
    owners = steps.owners(first)
    inputs = [*named, *(tensor for i, tensor in enumerate(first) if owners[i] == i)]
    if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs)):
        return form.build(steps.plain(n))
    tensors = _Function.apply(loop, *inputs)
    return steps.last_state(tensors)


class Loop:
    """A forward sweep whose reverse sweep is still to come, and the checkpoints that it waits with."""

    def __init__(self, steps: Steps, sweeps: Run, generators: Generators, parameters: Parameters) -> None:
        self._steps: Steps | None = steps
        self._sweeps: Run | None = sweeps
        self._generators = generators
        self._parameters = parameters

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Drops the checkpoints, and lets go of the user's step, which may refer to the loop's results."""
        sweeps, self._sweeps, self._steps = self._sweeps, None, None
        if sweeps is not None:
            sweeps.close()

    def forward(self) -> tuple[list[torch.Tensor], list[bool]]:
        """The distinct tensors of the last state, and whether each requires a gradient."""
        assert self._sweeps is not None
        assert self._steps is not None
        try:
            self._sweeps.forward()
            return self._steps.finish()
        except BaseException:
            self.close()
            raise

    def backward(self, of_outputs: Sequence[torch.Tensor | None]) -> Gradients:
        """Gradients of the inputs.

        Raises
        ------
        GraphError
            It ran before, or the parameters were written since the forward sweep.
        """
        if self._sweeps is None or self._steps is None:
            raise GraphError(
                "the backward pass of this time loop has run already and consumed its checkpoints: add up the losses "
                "and call backward() once, or run the loop again."
            )
        self._parameters.require_unchanged()
        sweeps, steps = self._sweeps, self._steps
        try:
            with torch.no_grad(), self._generators.preserved():
                steps.begin(of_outputs)
                sweeps.hint(1)
                sweeps.reverse()
                return steps.gradients()
        finally:
            self.close()


class _Function(torch.autograd.Function):
    """The node."""

    @staticmethod
    def forward(ctx: Any, loop: Loop, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        tensors, required = loop.forward()
        ctx.loop = loop
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(t for t, requires in zip(tensors, required, strict=True) if not requires))
        return tuple(tensors)

    @staticmethod
    def backward(ctx: Any, *of_outputs: torch.Tensor | None) -> Any:
        gradients = ctx.loop.backward(of_outputs)
        if torch.is_grad_enabled():
            found = [index for index, gradient in enumerate(gradients) if gradient is not None]
            anchor = torch.zeros((), requires_grad=True)
            firm = _First.apply(anchor, *(gradients[index] for index in found))
            for index, gradient in zip(found, firm, strict=True):
                gradients[index] = gradient
        return None, *gradients


class _First(torch.autograd.Function):
    """First derivatives, of which there are no second ones."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, *gradients: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(gradient.view_as(gradient) for gradient in gradients)

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> Any:
        raise GraphError("a time loop has no second derivative: differentiate it once, or use the plain loop.")


def _count(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, Integral):
        raise InvalidType(f"n is the number of steps, an int, not {type(n).__name__}.")
    if n < 0:
        raise InvalidArgument(f"n is the number of steps, and {n} is negative.")
    return int(n)


def _named(parameters: Iterable[Any] | torch.nn.Module | None) -> list[torch.Tensor]:
    """The distinct tensors with a gradient among the parameters."""
    if parameters is None:
        return []
    if isinstance(parameters, torch.nn.Module):
        parameters = parameters.parameters()
    if isinstance(parameters, torch.Tensor) or not isinstance(parameters, Iterable):
        raise InvalidType(f"parameters are a module or several tensors, not one {type(parameters).__name__}.")
    tensors = list(parameters)
    wrong = next((each for each in tensors if not isinstance(each, torch.Tensor)), None)
    if wrong is not None:
        raise InvalidType(f"parameters has a {type(wrong).__name__}, where a tensor belongs.")
    return list({id(tensor): tensor for tensor in tensors if tensor.requires_grad}.values())


def _planned(schedule: Any, steps: Steps, history: Any, n: int) -> Run:
    """The sweeps by a schedule; by default by one that keeps every state, in the tiers that suit the store."""
    tiers: Mapping[Any, str | None] = TIERS
    if schedule is None:
        schedule, tiers = cs.MultistageCheckpointSchedule(n, n, 0), dict.fromkeys(TIERS)
    elif isinstance(schedule, cs.NoneCheckpointSchedule):
        raise ScheduleError("NoneCheckpointSchedule has no adjoint, which the backward pass of the loop needs")
    return Run(schedule, steps, history, n, tiers=tiers, prefix=f"loop {next(_numbers)}/")
