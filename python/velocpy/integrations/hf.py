"""Snapshots and rollback for the Trainer of Hugging Face's transformers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from velocpy.extra import MissingExtra
from velocpy.training.encoding import is_tensor
from velocpy.training.loss import finite

from .rollback import PolicyOwner

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise MissingExtra("transformers", "hf", "velocpy.integrations.hf") from error

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments


class RollbackCallback(PolicyOwner, TrainerCallback):
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

    _hook: Any = None
    _logged = False  # the model has given no loss in the last step
    _spoilt = False  # the gradients of the step are no numbers

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Opens the checkpointer and takes the first snapshot."""
        model, names = kwargs["model"], {"optimizer": "optimizer", "scheduler": "lr_scheduler"}
        self._begin(state.global_step, {"model": model, **{part: kwargs.get(name) for part, name in names.items()}})
        self._logged = self._spoilt = False
        self._hook = model.register_forward_hook(self._look)

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
        losses = self._taken_losses()
        spoilt, self._spoilt = self._spoilt, False
        loss = sum(losses) / len(losses) if losses else math.nan if spoilt else None
        self._logged = not losses
        self._tell(state.global_step, loss)

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Looks at the loss that is logged, where the model gives none."""
        loss = (kwargs.get("logs") or {}).get("loss")
        if self._logged and loss is not None and math.isfinite(float(loss)):
            self._tell(state.global_step, loss, late=True)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Closes the checkpointer."""
        self.close()

    def close(self) -> None:
        """Closes the checkpointer. The Trainer does it at the end; call it where a training was interrupted."""
        hook, self._hook = self._hook, None
        if hook is not None:
            hook.remove()
        super().close()

    def _look(self, model: Any, inputs: Any, output: Any) -> None:
        """Notes the loss of a forward pass of the training."""
        if not model.training:
            return
        loss = output.get("loss") if hasattr(output, "get") else getattr(output, "loss", None)
        if is_tensor(loss) and loss.numel() == 1:
            self._losses.append(loss.detach().float())
