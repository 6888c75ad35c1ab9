"""The trials in their order, and how long each may take."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from . import files, filesystem, locks, owner, rates, space
from .finding import Finding
from .place import Place


@dataclasses.dataclass(frozen=True)
class Trial:
    """One thing that is looked at."""

    look: Callable[[Place], Finding]
    seconds: float = 2.0  # after which the answer is missed
    writes: bool = True


#: By the names of their findings. The first one decides whether the others make sense.
COURSE = {
    "directory": Trial(files.look_at_directory),
    "store": Trial(owner.look, writes=False),
    "file system": Trial(filesystem.look, writes=False),
    "free space": Trial(space.look, writes=False),
    "quota": Trial(space.look_at_quota, writes=False),
    "durable writes": Trial(files.look_at_durable_writes, seconds=4.0),
    "direct I/O": Trial(files.look_at_direct_io),
    "unnamed files": Trial(files.look_at_unnamed_files),
    "locks": Trial(locks.look, seconds=4.0),
    "preallocation": Trial(files.look_at_preallocation),
    "holes": Trial(files.look_at_holes),
    "sparse files": Trial(files.look_at_sparse_files),
    "extended attributes": Trial(files.look_at_attributes),
    "case of names": Trial(files.look_at_case),
    "disk rates": Trial(rates.look, seconds=4.0),
}
