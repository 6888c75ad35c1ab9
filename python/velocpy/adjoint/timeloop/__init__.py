"""A time loop in PyTorch whose states lie in a history, and whose gradients are those of plain autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from velocpy.extra import MissingExtra

from .failure import GraphError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch

State = TypeVar("State")

__all__ = ["GraphError", "checkpointed"]


def checkpointed(
    step: Callable[[int, State], State],
    n: int,
    state: State,
    *,
    history: Any,
    schedule: Any = None,
    parameters: Iterable[torch.Tensor] | torch.nn.Module | None = None,
    preserve_rng: bool = True,
) -> State:
    """Runs ``state = step(i, state)`` for ``i`` from 0 to ``n - 1``, with the states in a history instead of a graph.

    The result is part of the autograd graph like that of the plain loop. The forward sweep keeps no graph: states
    become checkpoints of ``history`` as the schedule says. The backward pass restores them, computes each step again
    with a graph of its own, and back-propagates through it. So one graph of one step exists at a time.

    Gradients are bitwise those of the plain loop, of state tensors and of parameters, with these exceptions, which
    differ in the order of a sum only:

    - A tensor that is an input of the loop, and that other operations use after the loop or in a second loop: plain
      autograd adds the contributions of all uses one after the other. Here those of this loop are summed first.
    - Autocast with its cache of weights: plain autograd sums a weight's gradient over all steps in the low precision.
      Here each use of a weight is cast on its own, as with ``torch.autocast(…, cache_enabled=False)``, which gives the
      same bits in both loops.

    What ``step`` raises passes through, here and in the backward pass, and the loop's checkpoints are dropped.

    Parameters
    ----------
    step
        One step: takes its number and a state, returns the next state. It is called again in the backward pass, so from
        equal states it computes equal bits; its side effects happen again too. It is called with gradients disabled
        where no graph is needed. It must not write into the tensors of the state that it is given.
    n
        Number of steps.
    state
        A tensor, or tuples, named tuples, lists and dicts of tensors, nested as wanted. Each step returns the same
        structure, shapes, dtypes and devices. Tensors without a gradient, of integers for example, are allowed.
    history
        Where states are kept, a `velocpy.History`. The keys begin with a prefix that no other loop of this process has,
        so several loops may use one history at once. All of them are dropped when the backward pass is over, or when
        the graph is freed without one.
    schedule
        A fresh schedule of the package checkpoint_schedules, made for ``n`` steps or online. None:
        ``MultistageCheckpointSchedule(n, n, 0)``, by which every state is kept and no step is computed more often than
        once forward and once with a graph; the store chooses the tiers.
    parameters
        Tensors with a gradient that ``step`` uses and that are not in the state: weights, controls. A module stands for
        its parameters. Those that are missing are an error, never a missing gradient.
    preserve_rng
        Computing a step again draws the same numbers from torch's default generators (of the CPU and, where CUDA is in
        use, of the devices of the tensors). After the backward pass these stand where they stood before it. False saves
        some microseconds a step. Other generators are the caller's to handle.

    Returns
    -------
    state
        The state after ``n`` steps. With gradients disabled, or where nothing needs one, nothing is stored. A tensor
        that required a gradient in an earlier step and is a constant now still says that it requires one.

    Raises
    ------
    InvalidArgument, InvalidType
        Also when ``step`` returns another structure, shape or dtype, writes into its state, or uses a tensor with a
        gradient that is not named in ``parameters``.
    ScheduleError
        The schedule has started, or is for another number of steps, or has no adjoint.
    GraphError
        From the backward pass: a second one over the same loop, a second derivative, or parameters that were written
        since the forward sweep.
    MissingExtra
        PyTorch is not installed, or older than 2.4.

    Examples
    --------
    >>> import torch, velocpy
    >>> from velocpy.adjoint import checkpointed
    >>> speed = torch.tensor(0.1, requires_grad=True)
    >>> def step(i, u):
    ...     return u + speed * torch.sin(u)
    >>> with velocpy.open(host="1MiB") as store:
    ...     u = checkpointed(step, 100, torch.ones(3), history=store.history("u"), parameters=[speed])
    ...     u.sum().backward()
    >>> plain = torch.tensor(0.1, requires_grad=True)
    >>> u = torch.ones(3)
    >>> for i in range(100):
    ...     u = u + plain * torch.sin(u)
    >>> u.sum().backward()
    >>> torch.equal(speed.grad, plain.grad)
    True
    """
    try:
        from torch import get_autocast_dtype  # noqa: F401  (younger than PyTorch 2.3)
    except ImportError:
        raise MissingExtra("torch>=2.4", "torch", "velocpy.adjoint.checkpointed") from None
    from .loop import run

    last: State = run(step, n, state, history, schedule, parameters, preserve_rng)
    return last
