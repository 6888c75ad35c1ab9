"""What a time-stepping code shows to the executor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

#: A numpy.ndarray, torch.Tensor, cupy.ndarray or whatever else a history can store.
Array = Any


class Model(Protocol):
    """A forward computation in steps, and its adjoint.

    The model owns its arrays and its adjoint state; the executor asks for steps in the order of a schedule, saves and
    restores between them, and never looks inside. Steps must be repeatable: from equal states they compute equal bits.

    When ``advance`` starts, the model stands at the start of step 0.
    """

    def state(self) -> Mapping[str, Array]:
        """The live arrays from which the forward goes on at the present step.

        They are saved from, and restored into in place, so they must be writable and must not be copies. Asked for anew
        each time: arrays may change roles between steps.
        """

    def step(self, n: int, keep: bool) -> Mapping[str, Array] | None:
        """Advances the state from the start of step ``n`` to the start of step ``n + 1``.

        With ``keep`` returns the arrays that the adjoint of this step needs. They may be views of live arrays, as long
        as they hold until the next call of `step`, or until the arrays of `state` are written: what has to live longer
        is copied before.
        """

    def begin_adjoint(self, steps: int) -> None:
        """The forward computation had ``steps`` steps, and an adjoint sweep starts: back to its final condition."""

    def adjoint_step(self, n: int, kept: Mapping[str, Array]) -> None:
        """Advances the adjoint over step ``n``, with the arrays that `step` returned for it. They are read-only."""


@runtime_checkable
class TakesState(Protocol):
    """A model whose arrays cannot be written (JAX): its state is handed over instead."""

    def set_state(self, arrays: Mapping[str, Array]) -> None:
        """Goes on from ``arrays``, which hold only during the call: copy what stays."""
