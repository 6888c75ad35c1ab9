"""`pull`: the parts of one rank as a store of their own."""

from __future__ import annotations

from velocpy.backup import BackedUp, Copying, Place, copied
from velocpy.checks import require_whole
from velocpy.ondisk import bytes_of_path

__all__ = ["pull"]


def pull(archive: Place, to: Place, *, rank: int) -> BackedUp:
    """Copies the parts of one rank out of an archive, into a new durable store with the histories that the rank had.

    Encoded checkpoints stay encoded, and differences stay differences. The copy appears under its name when it is
    complete and durable, as that of `velocpy.backup.backup`. To read a few checkpoints only, open the archive itself.

    Parameters
    ----------
    archive
        The archive; nothing in it is changed.
    to
        A directory that does not exist, or is empty.
    rank
        Number of the rank, from 0 on. Of a rank that the archive does not know, the store is empty.

    Returns
    -------
    BackedUp
        What has been copied.

    Raises
    ------
    InvalidArgument
        There is something in ``to`` already, or ``rank`` is no whole number from 0 on.
    DamagedStore
        ``velocpy check --repair`` comes first.
    NotAStore, FormatTooNew, TierIOError
        As `velocpy.ondisk.contents`.

    Examples
    --------
    >>> import numpy, tempfile, velocpy
    >>> from velocpy.archive import pull, push
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with velocpy.open(directory + "/rank-0", host="16MiB", disk="1GiB") as store:
    ...         store.history("forward").checkpoint(7, u=numpy.arange(10)).wait("disk")
    ...     _ = push([directory + "/rank-0"], directory + "/archive")
    ...     print(pull(directory + "/archive", directory + "/again", rank=0).checkpoints)
    ...     with velocpy.open(directory + "/again", mode="r") as store:
    ...         store.history("forward").restore(7)["u"].sum()
    1
    np.int64(45)
    """
    require_whole("rank", rank, 0)
    return copied(to, lambda partial: _Pulling(path=bytes_of_path(archive), to=bytes_of_path(partial), rank=rank))


class _Pulling(Copying):
    """A store that is being made of the parts of a rank."""

    _opens = "pull"
