"""Rollback and checkpoints for the Trainer of Lightning.

`RollbackCallback` goes back to a snapshot in memory when the loss is no number, or has a spike. `VelocCheckpointIO`
keeps the checkpoints of a Trainer in a store. Both are for the package ``lightning``; classes of ``pytorch_lightning``
are others, and a Trainer of that package takes neither.
"""

from __future__ import annotations

from velocpy.extra import MissingExtra

try:
    import lightning.pytorch  # noqa: F401
except ImportError as error:
    raise MissingExtra("lightning", "lightning", "velocpy.integrations.lightning") from error

from .callback import RollbackCallback
from .checkpoint_io import VelocCheckpointIO
from .loading import load_checkpoint

__all__ = ["RollbackCallback", "VelocCheckpointIO", "load_checkpoint"]
