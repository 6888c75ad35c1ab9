"""`push`: what the stores of all ranks have, and an archive lacks, goes into the archive."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from velocpy.checks import require_seconds, require_whole
from velocpy.errors import InvalidArgument, InvalidType
from velocpy.store import Store

from .alone import Options, Pushed, push_alone, store_path
from .destination import Destination
from .exchange import exchange_of
from .together import push_together

if TYPE_CHECKING:
    from velocpy.backup import Place

__all__ = ["Pushed", "push"]


def push(
    stores: Store | Place | Sequence[Store | Place] | Mapping[int, Store | Place],
    archive: Place,
    *,
    ranks: Any = None,
    files: int | None = None,
    partial: bool = False,
    histories: Iterable[str] | None = None,
    writers: int | None = None,
    leaders: int | None = None,
    buffer: int | str | None = None,
    buffers: int | None = None,
    stripe: int | str | None = None,
    timeout: float | None = None,
) -> Pushed:
    """Brings the checkpoints of all ranks that an archive lacks into the archive.

    Neighbouring ranks go to one file, and files get bytes as equally as that allows. Several goroutines append to a
    file, in pieces of 4 MiB; they take ``writers`` times 4 MiB of memory, however many ranks there are. If ranks are on
    several nodes, each reads its own store, and sends what another one writes (section 4.3 of the paper). Encoded
    checkpoints stay encoded, and differences stay differences. Every part is compared with its checksums before its key
    is committed. The stores may be written to meanwhile.

    Parameters
    ----------
    stores
        The durable stores of the ranks: a sequence, in the order of ranks, or a mapping from numbers of ranks. They are
        all ranks of the run: of a key that the archive has from more of them, the parts of the others are dropped. With
        ``ranks=``, the store of this rank alone. Of a `Store` that is open, everything captured becomes durable first.
    archive
        A directory, which is made if there is none, or ``"s3://bucket/prefix"``. One process at a time pushes into a
        directory. Into a bucket several may, in turn: of two that change it at once, one begins its batch again.
    ranks
        The communicator of a run whose ranks all make this call: one of mpi4py, or a process group of
        `torch.distributed` with a CPU backend such as gloo (``torch.distributed.group.WORLD``). Stores may lie on disks
        that only their own node reads; the archive lies where all nodes write. Give the call a communicator of its own
        (``comm.Dup()``) if other threads communicate.
    files
        To how many files the checkpoints are appended, from 1 up to the number of ranks, and at most 131072; None:
        those that the archive has, or one. If there are as many ranks with bytes, there are exactly as many files.
    partial
        Whether keys are taken too that not all ranks have.
    histories
        Names of the histories that are taken; None: all.
    writers
        Goroutines that copy, for all files together, 1 to 1024; None: 8. Where ranks are on several nodes: threads of
        each rank.
    leaders
        Where ranks are on several nodes: how many of them write into one file, from 1 on; None: as many as let every
        node write, so that little is sent.
    buffer, buffers
        Where ranks are on several nodes: bytes of a message, as a number or a text like ``"4MiB"``, in whole pages; and
        how many of them a rank has for sending, and as many again for receiving, 1 to 256. None: 4 MiB and 8.
    stripe
        Bytes of a stripe of the file system with the archive, as a number or a text like ``"4MiB"``, in whole pages.
        What a push writes, and of ranks on several nodes what each node writes, begins at a multiple of it in its file,
        if there is as much: no two nodes write to one stripe then, unless others write for a slow one. None: 1 MiB.
    timeout
        Seconds to wait for an open store to become durable, and with ``ranks=`` for the other ranks, and for the lowest
        while it pushes; None: as long as it takes.

    Returns
    -------
    Pushed
        With ``ranks=``, the same on every rank.

    Raises
    ------
    InvalidArgument
        A store is no durable one, or an archive; there is a store in ``archive`` that is no archive; ``files`` is more
        than there are ranks; with ``ranks=``: the ranks do not agree about the arguments, or one that writes does not
        find the archive on its node.
    RankFailed
        With ``ranks=``: another rank could not take part, has failed, or died. ``rank`` is its number, if known.
        What fails on rank 0 when it plans and commits is raised by all, as an error of its kind.
    CorruptCheckpoint
        Bytes were changed on their way from rank to rank. They are not in the archive.
    StoreLocked
        Another process pushes into the archive. Into a bucket: others have changed it again and again meanwhile.
    TierUnavailable
        The archive is in a bucket, and this build has no program for object stores.
    AccessDenied
        The credentials are missing or wrong, or do not allow it.
    WaitTimeout
        ``timeout`` has passed. With ``ranks=``, the communicator must not be used any more.
    NotAStore, DamagedStore, FormatTooNew, TierIOError
        As `velocpy.ondisk.contents`. After any error the archive has each key as a whole, in its old version or in the
        new one, and the next push goes on.

    Examples
    --------
    >>> import numpy, tempfile, velocpy
    >>> from velocpy.archive import part, push
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     for rank in range(4):
    ...         with velocpy.open(f"{directory}/rank-{rank}", host="16MiB", disk="1GiB") as store:
    ...             store.history("forward").checkpoint(7, u=numpy.full(10, rank)).wait("disk")
    ...     done = push([f"{directory}/rank-{rank}" for rank in range(4)], directory + "/archive", files=2)
    ...     print(done.keys, done.parts, done.files)
    ...     with velocpy.open(directory + "/archive", mode="r") as archive:
    ...         print(archive.history("forward").restore(7)["ranks"])
    ...         print(archive.history(part("forward", 3)).restore(7)["u"])
    1 4 2
    [0 1 2 3]
    [3 3 3 3 3 3 3 3 3 3]
    """

    def options() -> Options:
        return Destination(archive, files, partial, histories, writers, leaders, buffer, buffers, stripe)._options()

    if ranks is not None:
        return push_together(exchange_of(ranks, timeout), stores, options, timeout)
    if timeout is not None:
        require_seconds("timeout", timeout)
    found = _numbered(stores, timeout)
    return push_alone(found, options().for_ranks(len(found)))


def _numbered(stores: Any, timeout: float | None) -> dict[int, Path]:
    if isinstance(stores, (str, os.PathLike, Store)):
        raise InvalidType("stores is one store; give those of all ranks as a list, or ranks=, the communicator.")
    if not isinstance(stores, (Sequence, Mapping)) or isinstance(stores, bytes):
        raise InvalidType(
            f"stores is a {type(stores).__name__}; give a list of stores, or a mapping from ranks to them."
        )
    pairs = stores.items() if isinstance(stores, Mapping) else enumerate(stores)
    found = {require_whole("a rank", rank, 0): store_path(store, timeout) for rank, store in pairs}
    if not found:
        raise InvalidArgument("stores has no store.")
    if len(set(found.values())) < len(found):
        raise InvalidArgument("two ranks have the same store; each rank has one of its own.")
    return found
