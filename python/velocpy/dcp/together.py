"""The name that the ranks of a save agree about, where their stores send to an archive."""

from __future__ import annotations

import dataclasses
import json
import os
import uuid
from typing import Any, NamedTuple

import numpy as np

from velocpy.archive import Destination
from velocpy.archive.exchange import Exchange, own_exchange_of
from velocpy.errors import InvalidArgument, RankFailed

from .layout import COMMITS, DATA

#: Seconds that a rank waits for the others before a save, where nothing else is said.
_PATIENCE = 600.0


class Agreed(NamedTuple):
    """A save, as all ranks know it."""

    #: Its name: the key of the tensors of every rank, and of what commits them.
    save: str
    #: The rank that writes the metadata.
    coordinator: int

    def commit(self, checkpoint: str) -> dict[str, Any]:
        """The meta of each rank's checkpoint in the history of commits."""
        return {"checkpoint": checkpoint, "coordinator": self.coordinator}


class Together:
    """The ranks that save together, and the archive that they send to.

    Parameters
    ----------
    archive
        As for `velocpy.open`.
    ranks
        The process group of the saves, if there are others.
    """

    def __init__(self, archive: str | os.PathLike[str] | Destination, ranks: Any) -> None:
        to = archive if isinstance(archive, Destination) else Destination(archive)
        if to.histories is not None or to.partial:
            raise InvalidArgument(
                "archive= has histories= or partial=True: a Writer says itself what belongs to a checkpoint, and "
                "brings it as a whole. Leave them out."
            )
        self.to = dataclasses.replace(to, histories=(DATA, COMMITS))
        self.ranks = ranks
        self._others: Exchange | None = None
        self._broken = False

    def agree(self, rank: int, coordinator: bool, key: str) -> Agreed:
        """The name of the save that all ranks begin. All of them make this call.

        Raises
        ------
        InvalidArgument
            The ranks are others than those that DCP saves with, or they save different checkpoints.
        RankFailed, WaitTimeout
            Another rank did not come, now or in an earlier save. The ranks cannot agree any more.
        """
        if self._broken:
            raise RankFailed(
                "the ranks have not come together for an earlier save, and cannot agree any more. Nothing was saved. "
                "Make a new Writer on all ranks."
            )
        self._broken = True  # until all have come
        said = {"rank": rank, "coordinator": coordinator, "key": key, "name": uuid.uuid4().hex}
        if self._others is None:
            patience = self.to._patience()
            self._others = own_exchange_of(self.ranks, _PATIENCE if patience is None else patience)
        told = [json.loads(each) for each in self._others.all_gather(json.dumps(said).encode())]
        self._broken = False
        ranks, leaders = [each["rank"] for each in told], [each["rank"] for each in told if each["coordinator"]]
        if ranks != list(range(len(told))) or len(leaders) != 1:
            raise InvalidArgument(
                f"ranks= has {len(told)} ranks, and these are the ranks {ranks} of the save, with {len(leaders)} "
                "coordinators. Give the process group that dcp.save has, or a group of gloo of the same ranks. Nothing "
                "was saved."
            )
        if len({each["key"] for each in told}) > 1:
            raise InvalidArgument(
                f"the ranks save different checkpoints, among them {told[0]['key']!r}. Nothing was saved."
            )
        return Agreed(f"{key}#{told[0]['name']}", leaders[0])


#: The regions of a rank that has no tensors of a save: keys of an archive have a part of every rank.
NOTHING = {"nothing": np.empty(0, np.uint8)}
