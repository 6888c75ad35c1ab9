"""Adjoint computations that save and restore by schedule, over a velocpy history.

`drive` runs a model under any schedule of the package `checkpoint_schedules`; `plan_of` turns such a schedule into the
plan of a history; `weights` tells a schedule what the disk costs; `checkpointed` runs a time loop of PyTorch under a
schedule, for autograd; `velocpy.adjoint.pyrevolve` is a storage for revolvers of the package `pyrevolve`.
"""

from importlib.util import find_spec

from velocpy.extra import MissingExtra

if find_spec("checkpoint_schedules") is None:
    raise MissingExtra("checkpoint_schedules", "adjoint", "velocpy.adjoint")

from .costs import weights
from .executor import Tally, drive
from .model import Model, TakesState
from .plan import plan_of
from .schedule import ScheduleError
from .timeloop import GraphError, checkpointed

__all__ = [
    "GraphError",
    "Model",
    "ScheduleError",
    "TakesState",
    "Tally",
    "checkpointed",
    "drive",
    "plan_of",
    "weights",
]
