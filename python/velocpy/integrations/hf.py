"""Snapshots and rollback for the Trainer of Hugging Face's transformers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from velocpy.extra import MissingExtra
from velocpy.training import Checkpointer, LossGuard, RollbackPolicy
from velocpy.training.loss import finite

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise MissingExtra("transformers", "hf", "velocpy.integrations.hf") from error

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments


class RollbackCallback(TrainerCallback):
    """A callback of a Trainer that goes back to a snapshot when the loss is no number, or has a spike.

    Model, optimizer, scheduler and random generators go back; the Trainer's count of steps and its data loader go on,
    so that the batches that led there are not seen again. The loss is that of the model's output, of each step. Where
    the model gives none, as with a ``compute_loss_func``, gradients that are no numbers are found at once, and spikes
    in the losses that the Trainer logs.

    Parameters
    ----------
    every
        Steps between two snapshots.
    guard, most, backoff
        As for `velocpy.training.RollbackPolicy`.
    store
        As for `velocpy.Checkpointer`, of which ``options`` are the other arguments: ``host=``, ``device=``, ``path=``,
        ``keep=``, ``durable_every=`` and so on, and parts in addition to the Trainer's.

    Raises
    ------
    TrainingDiverged
        By ``train()``, when there were too many rollbacks.

    Examples
    --------
    >>> from velocpy.integrations.hf import RollbackCallback
    >>> callback = RollbackCallback(every=100, keep=2, host="16MiB")
    >>> # Trainer(model, arguments, train_dataset=data, callbacks=[callback]).train()
    >>> callback.rollbacks
    0
    """

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
        self._losses: list[Any] = []  # of the forward passes since the last step
        self._hook: Any = None
        self._logged = False  # the model has given no loss in the last step
        self._spoilt = False  # the gradients of the step are no numbers
        #: How many times the training went back, in the last call of ``train()``.
        self.rollbacks = 0

    @property
    def checkpointer(self) -> Checkpointer | None:
        """The checkpointer of the training that runs, or None."""
        return None if self._policy is None else self._policy.checkpointer

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Opens the checkpointer and takes the first snapshot."""
        self.close()
        model = kwargs["model"]
        checkpointer = Checkpointer(
            self._store,
            model=model,
            optimizer=kwargs.get("optimizer"),
            scheduler=kwargs.get("lr_scheduler"),
            **self._options,
        )
        try:
            self._policy = RollbackPolicy(checkpointer, **self._policy_options)
        except BaseException:
            checkpointer.close()
            raise
        self.rollbacks, self._logged, self._spoilt = 0, False, False
        self._hook = model.register_forward_hook(self._look)
        self._policy.before_steps(state.global_step)

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Looks at the gradients, where the model has given no loss.

        With fp16 it does not: a GradScaler expects gradients that are not finite, and skips the step.
        """
        if self._policy is not None and not self._losses and not args.fp16:
            self._spoilt = not finite(each.grad for each in kwargs["model"].parameters() if each.grad is not None)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Judges a step."""
        losses, self._losses = self._losses, []
        spoilt, self._spoilt = self._spoilt, False
        loss = sum(losses) / len(losses) if losses else math.nan if spoilt else None
        self._logged = not losses
        if self._policy is not None:
            with self._counted(self._policy):
                self._policy.after_step(state.global_step, loss)

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Looks at the loss that is logged, where the model gives none."""
        loss = (kwargs.get("logs") or {}).get("loss")
        if self._policy is not None and self._logged and loss is not None and math.isfinite(float(loss)):
            with self._counted(self._policy):
                self._policy.judge(state.global_step, loss)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Closes the checkpointer."""
        self.close()

    def close(self) -> None:
        """Ends what a training left that was interrupted; the Trainer does it at the end of one that was not."""
        hook, self._hook = self._hook, None
        policy, self._policy = self._policy, None
        self._losses = []
        if hook is not None:
            hook.remove()
        if policy is not None:
            policy.checkpointer.close()

    @contextmanager
    def _counted(self, policy: RollbackPolicy) -> Iterator[None]:
        try:
            yield
        finally:
            self.rollbacks = policy.rollbacks

    def _look(self, model: Any, inputs: Any, output: Any) -> None:
        """Notes the loss of a forward pass of the training."""
        if not model.training:
            return
        loss = output.get("loss") if hasattr(output, "get") else getattr(output, "loss", None)
        if loss is not None and loss.numel() == 1:
            self._losses.append(loss.detach().float())
