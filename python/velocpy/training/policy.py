"""When a training takes snapshots, and when it goes back to one."""

from __future__ import annotations

import logging
from typing import Any

from velocpy.checks import require_whole
from velocpy.errors import InvalidArgument, TrainingDiverged

from .checkpointer import Checkpointer
from .encoding import is_tensor
from .loss import LossGuard

log = logging.getLogger("velocpy")


class RollbackPolicy:
    """Takes a snapshot every so many steps, and goes back to one when the loss is refused.

    The batches that led there are not repeated: the training goes on with those that come next. Where the first loss
    after the way back is refused too, the snapshot itself is taken for spoilt, and is dropped if there is an earlier
    one to go back to. The log has a warning of each way back.

    Parameters
    ----------
    checkpointer
        Its ``keep`` says how many snapshots there are to go back to.
    every
        Steps between two snapshots.
    guard
        Says which losses are refused.
    most
        After so many rollbacks the next one ends the training with `TrainingDiverged`.
    backoff
        Learning rates are multiplied by this at each way back: those of the checkpointer's optimizers, and the base
        rates of its schedulers.

    Examples
    --------
    A batch that makes no sense costs the steps since the last snapshot:

    >>> import torch, velocpy
    >>> from velocpy.training import RollbackPolicy
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with velocpy.Checkpointer(model=model, optimizer=optimizer, host="16MiB") as checkpointer:
    ...     policy = RollbackPolicy(checkpointer, every=4, backoff=0.5)
    ...     for step in range(10):
    ...         batch = torch.full((8, 2), torch.nan) if step == 6 else torch.rand(8, 2)
    ...         loss = model(batch).square().mean()
    ...         optimizer.zero_grad()
    ...         loss.backward()
    ...         optimizer.step()
    ...         back = policy.after_step(step, loss)
    ...         if back is not None:
    ...             print(f"from step {step} back to {back}")
    from step 6 back to 4
    >>> bool(model.weight.isfinite().all()), optimizer.param_groups[0]["lr"]
    (True, 0.05)
    """

    def __init__(
        self,
        checkpointer: Checkpointer,
        *,
        every: int = 50,
        guard: LossGuard | None = None,
        most: int = 3,
        backoff: float = 1.0,
    ) -> None:
        self._checkpointer = checkpointer
        self._every = require_whole("every", every, 1)
        self._guard = LossGuard() if guard is None else guard
        self._most = require_whole("most", most, 0)
        if not 0 < backoff <= 1:
            raise InvalidArgument(f"backoff is {backoff!r}; give a factor above 0 and up to 1.")
        self._backoff = backoff
        #: How many rollbacks there were when a snapshot was taken, by its step: its learning rates have their factor.
        self._before: dict[int, int] = {}
        self._fresh = False  # no loss has been accepted since the last rollback
        #: How many rollbacks there have been.
        self.rollbacks = 0

    @property
    def checkpointer(self) -> Checkpointer:
        """The checkpointer that has the snapshots."""
        return self._checkpointer

    def before_steps(self, step: int) -> None:
        """Takes a snapshot before the first step, unless that of ``step`` was saved last: the training has resumed it.

        Snapshots that an earlier training has left in the history are not gone back to afterwards.
        """
        if self._checkpointer.latest() != step:
            self._save(step)

    def after_step(self, step: int, loss: Any = None) -> int | None:
        """Tells of a step that is done, and its loss. Returns the step gone back to; None: the training goes on.

        ``loss`` is a number, or anything that ``float()`` takes; a tensor on a device is waited for. None: it is not
        known, and the step is a good one.

        Raises
        ------
        TrainingDiverged
            The loss was refused once more than ``most`` allows, and the training is in the state of the snapshot that
            ``error.key`` names; or there is no snapshot to go back to.
        """
        back = None if loss is None else self.judge(step, loss)
        if back is None and step % self._every == 0:
            self._save(step)
        return back

    def judge(self, step: int, loss: Any) -> int | None:
        """Tells of a loss that is known later than its step: as `after_step`, but takes no snapshot."""
        reason = self._guard.refuses(loss)
        if reason is not None:
            return self._go_back(step, reason)
        self._fresh = False
        return None

    def _save(self, step: int) -> None:
        self._checkpointer.save(step)
        self._before[step] = self.rollbacks
        steps = self._checkpointer.steps
        self._before = {step: count for step, count in self._before.items() if step in steps}

    def _go_back(self, step: int, reason: str) -> int:
        to = self._goal(step)
        if to is None:
            raise TrainingDiverged(
                f"step {step}: {reason}, and there is no snapshot to go back to. The training is as this step left it.",
                history=self._checkpointer.history.name,
            )
        self._checkpointer.rollback(to)
        self._fresh = True
        self.rollbacks += 1
        # A snapshot that other code has saved counts as one that was taken just before this rollback.
        self._scale(self._backoff ** (self.rollbacks - self._before.setdefault(to, self.rollbacks - 1)))
        if self.rollbacks > self._most:
            raise TrainingDiverged(
                f"step {step}: {reason}, after {self._most} rollbacks. The training is back at step {to}; look at its "
                "data and learning rate, or allow more rollbacks: most=.",
                history=self._checkpointer.history.name,
                key=to,
            )
        log.warning("step %d: %s; the training goes back to step %d", step, reason, to)
        return to

    def _goal(self, step: int) -> int | None:
        """The snapshot that was saved last, not after the step; not the one that has just been tried in vain."""
        steps = [key for key in self._checkpointer.history if isinstance(key, int) and key <= step]
        doubtful = bool(steps) and (self._fresh or steps[-1] == step)
        return steps[-2] if doubtful and len(steps) > 1 else steps[-1] if steps else None

    def _scale(self, factor: float) -> None:
        if factor != 1:
            for holder in self._checkpointer.holders():
                scale_rates(holder, factor)


def scale_rates(holder: Any, factor: float) -> None:
    """Multiplies the learning rates of an optimizer, or the base rates of a scheduler; others have none.

    Examples
    --------
    >>> import torch
    >>> from velocpy.training.policy import scale_rates
    >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.5)
    >>> scale_rates(optimizer, 0.5)
    >>> optimizer.param_groups[0]["lr"]
    0.25
    """
    for group in getattr(holder, "param_groups", ()):
        same = group["lr"] is group.get("initial_lr") and is_tensor(group["lr"])
        for name in ("lr",) if same or "initial_lr" not in group else ("lr", "initial_lr"):
            group[name] *= factor
    if hasattr(holder, "base_lrs"):
        holder.base_lrs = [rate * factor for rate in holder.base_lrs]
    for inner in (*getattr(holder, "_schedulers", ()), getattr(holder, "scheduler", None)):
        if inner is not None:  # of a sequence of schedulers, and of accelerate's wrapper
            scale_rates(inner, factor)
