"""Snapshots and rollback for the Trainer of Lightning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.strategies import DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy

from velocpy.errors import InvalidArgument
from velocpy.integrations.rollback import PolicyOwner
from velocpy.training.loss import finite


class RollbackCallback(PolicyOwner, pl.Callback):
    """A callback of a Trainer that goes back to a snapshot when the loss is no number, or has a spike.

    Module, optimizers, schedulers, random generators and the gradient scaler of the precision plugin go back. The
    Trainer's count of steps and its data loader go on, so that the batches that led there are not seen again. States of
    other callbacks and of loggers stay as they are.

    The loss of a step is what ``training_step`` returns, or its entry "loss"; with accumulated gradients, the mean over
    the batches of the step; with several processes, the mean over them. Where ``training_step`` returns none, as manual
    optimization allows, the callback looks at the parameters instead, and goes back when one is no finite number.

    A step is a batch after which an optimizer has stepped. With one optimizer this is ``trainer.global_step``, which
    counts the steps of each optimizer where there are several.

    FSDP, DeepSpeed and ModelParallel strategies are refused: no process has the whole state there.

    Parameters
    ----------
    every
        Steps between two snapshots.
    guard, most, backoff
        As for `velocpy.training.RollbackPolicy`.
    store
        As for `velocpy.Checkpointer`, of which ``options`` are the other arguments: ``host=``, ``device=``, ``path=``,
        ``keep=``, ``durable_every=`` and so on, and parts in addition to the Trainer's. With several processes each
        needs a ``path`` of its own, if any.

    Raises
    ------
    TrainingDiverged
        By ``fit()``, when there were too many rollbacks.

    Examples
    --------
    >>> from velocpy.integrations.lightning import RollbackCallback
    >>> callback = RollbackCallback(every=100, keep=2, host="16MiB")
    >>> # Trainer(callbacks=[callback]).fit(model, data)
    >>> callback.rollbacks
    0
    """

    _step = 0
    _counted = 0  # trainer.global_step after that step

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Opens the checkpointer and takes the first snapshot: the Trainer has restored its own checkpoint by now."""
        _require_whole_state(trainer)
        self._step = self._counted = trainer.global_step
        self._begin(self._step, _parts(trainer, pl_module))

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Notes the loss of a batch, and judges the step that it ends."""
        loss = _loss(trainer, pl_module, outputs)
        if loss is not None:
            self._losses.append(loss)
        if self._policy is None or trainer.global_step == self._counted:
            return
        self._step, self._counted = self._step + 1, trainer.global_step
        losses = self._taken_losses()
        self._tell(self._step, _mean(trainer, losses) if losses else _nan_if_spoilt(pl_module))

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Closes the checkpointer."""
        self.close()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Closes the checkpointer."""
        self.close()

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Closes the checkpointer, where the training ended before it had begun."""
        self.close()


def _require_whole_state(trainer: pl.Trainer) -> None:
    if isinstance(trainer.strategy, (FSDPStrategy, ModelParallelStrategy, DeepSpeedStrategy)):
        raise InvalidArgument(
            f"RollbackCallback does not work with {type(trainer.strategy).__name__}: each process has a part of the "
            "state. Use a strategy without sharding, or leave the callback out."
        )


def _parts(trainer: pl.Trainer, module: pl.LightningModule) -> dict[str, Any]:
    """What the state of the training consists of."""
    return {
        "model": module,
        "optimizer": trainer.optimizers,
        "scheduler": [config.scheduler for config in trainer.lr_scheduler_configs],
        "scaler": getattr(trainer.precision_plugin, "scaler", None),
    }


def _loss(trainer: pl.Trainer, module: pl.LightningModule, outputs: Any) -> Any:
    """The loss of a batch as ``training_step`` returned it, or None.

    Automatic optimization divides it by the number of batches whose gradients are accumulated.
    """
    loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
    if loss is None or loss.numel() != 1:
        return None
    loss = loss.detach().float()
    return loss * trainer.accumulate_grad_batches if module.automatic_optimization else loss


def _mean(trainer: pl.Trainer, losses: list[Any]) -> Any:
    """The mean over the batches of a step and over the processes, which have to judge alike."""
    loss = sum(losses) / len(losses)
    return trainer.strategy.reduce(loss, reduce_op="mean") if trainer.world_size > 1 else loss


def _nan_if_spoilt(module: pl.LightningModule) -> float | None:
    """Stands for the loss of a step that gave none."""
    return None if finite(module.parameters()) else math.nan
