"""Training with a way back: snapshots of model, optimizer and everything else that a training step depends on.

`Checkpointer` saves and brings back the whole state of a training, `LossGuard` tells when a loss has gone astray, and
`RollbackPolicy` goes back then.
Nothing here imports torch: objects of torch are recognised when the training has imported it.
"""

from .checkpointer import Checkpointer
from .loss import LossGuard
from .policy import RollbackPolicy

__all__ = ["Checkpointer", "LossGuard", "RollbackPolicy"]
