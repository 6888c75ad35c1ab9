"""Copies of stores, also of those that a process writes to."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import InvalidArgument
from .ondisk import Opened, bytes_of_path
from .replacing import sync_directory

__all__ = ["BackedUp", "backup"]

Place = str | os.PathLike[str]


@dataclass(frozen=True)
class BackedUp:
    """What `backup` has done."""

    #: Checkpoints in the copy.
    checkpoints: int
    #: Bytes of the data files that they take there.
    nbytes: int
    #: Those of which the store had a newer version by the end, which changed too fast to be copied.
    older: int
    #: Those whose bytes are not those captured, in the store too: ``velocpy check --read-data`` names them.
    damaged: int


def backup(path: Place, to: Place) -> BackedUp:
    """Copies a store into a new one, also while a process writes to it.

    The copy holds the checkpoints that the catalog listed at one moment, each as a whole. Where checkpoints are
    replaced faster than they are copied, it has the newest version that could be copied. It is compared with its
    checksums, and appears under its name when it is complete and durable. Files that are copied one by one while a
    process writes (`shutil.copytree`, ``rsync``) are not a store.

    Parameters
    ----------
    path
        The store; nothing in it is changed.
    to
        A directory that does not exist, or is empty.

    Raises
    ------
    InvalidArgument
        There is something in the directory already.
    DamagedStore
        ``velocpy check --repair`` comes first.
    NotAStore, FormatTooNew, TierIOError
        As `velocpy.ondisk.contents`.

    Examples
    --------
    >>> import numpy, tempfile, velocpy
    >>> from velocpy.backup import backup
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with velocpy.open(directory + "/store", host="16MiB", disk="1GiB") as store:
    ...         store.history("run").checkpoint(0, u=numpy.arange(10)).wait("disk")
    ...         backup(directory + "/store", directory + "/copy").checkpoints
    ...     with velocpy.open(directory + "/copy", mode="r") as copy:
    ...         copy.history("run").restore(0)["u"].sum()
    1
    np.int64(45)
    """
    return copied(to, lambda partial: Copying(path=bytes_of_path(path), to=bytes_of_path(partial)))


def copied(to: Place, begin: Callable[[Path], Copying]) -> BackedUp:
    """Makes a store beside a directory, and gives it the directory's name when it is complete.

    `begin` begins the copy into an empty directory.
    """
    target = Path(os.path.abspath(to))  # noqa: PTH100 resolves no links
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidArgument(f"{str(target)!r} is not an empty directory; a copy needs one of its own.")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        with begin(partial) as copying:
            facts = copying.run()
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync_directory(target.parent)
    return BackedUp(facts["checkpoints"], facts["bytes"], facts["older"], facts["damaged"])


class Copying(Opened):
    """A copy that is being made."""

    _opens, _closes = "backup", "backup_close"

    def run(self) -> dict[str, Any]:
        """Goes on to the end, and says what was done."""
        while True:
            facts, _ = self.ask("backup_step", milliseconds=100)
            if facts["done"]:
                return facts
