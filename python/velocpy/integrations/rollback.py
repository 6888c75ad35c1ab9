"""What the callbacks of all trainers share: the policy of the training that runs, and how it begins and ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from velocpy.training import Checkpointer, LossGuard, RollbackPolicy


class PolicyOwner:
    """Has a `velocpy.training.RollbackPolicy` while a training runs; the arguments are those of the callbacks."""

    def __init__(
        self,
        *,
        every: int = 50,
        guard: LossGuard | None = None,
        most: int = 3,
        backoff: float = 1.0,
        store: Any = None,
        **options: Any,
    ) -> None:
        self._policy_options: dict[str, Any] = {"every": every, "guard": guard, "most": most, "backoff": backoff}
        self._store = store
        self._options = options
        self._policy: RollbackPolicy | None = None
        self._losses: list[Any] = []  # of the batches since the last step
        #: How many times the training went back, in the last one that began.
        self.rollbacks = 0

    @property
    def checkpointer(self) -> Checkpointer | None:
        """The checkpointer of the training that runs, or None."""
        return None if self._policy is None else self._policy.checkpointer

    def close(self) -> None:
        """Closes the checkpointer. The trainer does it at the end; call it where a training was interrupted."""
        policy, self._policy = self._policy, None
        self._losses = []
        if policy is not None:
            policy.checkpointer.close()

    def _begin(self, step: int, parts: Mapping[str, Any]) -> None:
        """Opens the checkpointer of a training with these parts, and takes the first snapshot."""
        self.close()
        self.rollbacks = 0
        checkpointer = Checkpointer(self._store, **parts, **self._options)
        try:
            policy = RollbackPolicy(checkpointer, **self._policy_options)
            policy.before_steps(step)
        except BaseException:
            checkpointer.close()
            raise
        self._policy = policy

    def _taken_losses(self) -> list[Any]:
        """The losses of the step that has ended; those of the next one are noted from now on."""
        losses, self._losses = self._losses, []
        return losses

    def _tell(self, step: int, loss: Any, *, late: bool = False) -> None:
        """Tells the policy of a step; with ``late``, of a loss alone whose step it knows already."""
        policy = self._policy
        if policy is None:
            return
        try:
            (policy.judge if late else policy.after_step)(step, loss)
        finally:
            self.rollbacks = policy.rollbacks
