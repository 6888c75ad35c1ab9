"""Archives: the checkpoints of all ranks of a run in one store, in a given number of files.

Each rank of a run has a durable store of its own. `push` brings what all of them have into an archive, in the
background of the run or behind it, and only what the archive lacks (after Gossman et al., "Scalable I/O aggregation for
asynchronous multi-level checkpointing", section 4). A key is in an archive with the parts of all its ranks, or not at
all, whenever a process dies.

An archive is a durable store: `velocpy.open` reads it with ``mode="r"``, and ``velocpy ls``, ``show``, ``check``,
``diff`` and ``export`` work on it. Its history *H* has the keys that are complete, each with the numbers of its ranks
as the region ``"ranks"``. The checkpoint of rank *R* lies in the history ``part("H", R)``; any process reads any of
them, so a run with another number of ranks goes on from the same archive. `pull` makes a store of one rank's parts.
"""

from .destination import Destination
from .names import part, split_part
from .pulling import pull
from .pushing import Pushed, push

__all__ = ["Destination", "Pushed", "part", "pull", "push", "split_part"]
