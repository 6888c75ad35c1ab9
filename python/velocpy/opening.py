"""Opening a store: what `velocpy.open` is given, checked and said to the core."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _core, budget, cgroups, knobs, limits, paths
from .budget import device_budgets, disk_budget, host_budget
from .checks import require_choice, require_seconds, require_whole
from .choices import DeviceBudgets, Mode, Size, Verification
from .errors import InvalidArgument, TierUnavailable
from .quantity import sized
from .store import Store
from .tuning import FormerKeywords, Tuning, tuning_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .archive import Destination

log = logging.getLogger("velocpy")


def open(  # noqa: A001
    path: str | os.PathLike[str] | None = None,
    *,
    device: DeviceBudgets | None = None,
    host: Size | None = "auto",
    disk: Size | None = "auto",
    archive: str | os.PathLike[str] | Destination | None = None,
    ranks: Any = None,
    mode: Mode = "a",
    durable: bool | None = None,
    verify: Verification = "moved",
    debug: bool = False,
    timeline: int = 0,
    idle: float | None = None,
    tuning: Tuning | None = None,
    **former: Unpack[FormerKeywords],
) -> Store:
    """Opens a store.

    Sizes are hard budgets: bytes as an int (or ``4e9``), texts like ``"4GiB"``, ``"500 MB"`` or ``"1.5G"``, a share of
    what is free now (``0.25`` or ``"25%"``; a float is at most 1.0 then), None for a tier that is not used, or
    ``"auto"``. They are those of this process.
    ``"64GiB/node"`` is what all processes that a launcher (torchrun, MPI, Slurm) started on this node have together:
    each takes an equal part, and of "auto", and of shares of host and disk, likewise.

    Parameters
    ----------
    path
        Directory of the disk tier, made when it is missing. The store in it outlives the process: what was durable in
        "disk" is found by the next `open` of the same directory, after whatever end. One process at a time writes to it
        (`StoreLocked`). A directory with files of others becomes no store (`ForeignDirectory`), and a text that reads
        as a size (``"64MiB"``) names none. With ``mode="r"`` also an archive in a bucket,
        ``"s3://bucket/prefix"``. None: files in the system's directory for temporary files that go with the process, if
        a disk budget is given.
    host
        Host memory. "auto": a quarter of what may still be used here, shared by the node's processes; at most 32 GiB
        each. The log warns of more than the machine has, or than a cgroup allows.
    disk
        Local disk. "auto": half of the free space at ``path``, shared likewise; without a path no disk tier. What a
        store holds already is never too much. The log warns of more than is free, and of a file system that lies in
        memory.
    device
        Memory of CUDA devices, as `velocpy.choices.DeviceBudgets` says: a size, or a fraction of what is free now
        (``0.25`` or ``"25%"``), on the device that is current in torch or CuPy (0 without them); or a mapping of
        devices (``0`` or ``"cuda:0"``) to such budgets.
        Checkpoints of arrays on a device go there first. It needs a host tier. Processes that use the same device have
        each their own budget there: a fraction is one of what those before left.
    archive
        A directory on storage that all nodes share, ``"s3://bucket/prefix"``, or a `velocpy.archive.Destination`, which
        says more. What this store, and those of the other ranks, make durable in "disk" goes on to it in the
        background, as by `velocpy.archive.push`; ``Ticket.wait("archive")`` waits until a checkpoint is there. It needs
        a durable store.
    ranks
        With ``archive=``: the communicator of a run whose ranks all make this call, and all close their stores: one of
        mpi4py, or a process group of `torch.distributed`. The store makes a copy of it for itself. None: this process
        alone has an archive.
    mode
        "a" to read and write; "r" to read a store that exists, as it is now, also while another process writes to it:
        what that process drops or replaces later raises `CheckpointDropped`, and never gives other bytes.
        `Store.refresh` lets a reader see what has come since.
    durable
        Whether the disk tier outlives the process; None: with a path. False: its files are private to the process and
        go with it, also after a kill; they need no syncs, and processes may name the same directory.
    verify
        When checksums are compared. "moved": whenever bytes are copied to the caller's arrays, and once after they came
        from a lower tier; a lease that shows bytes in the memory in which they were captured is compared for one
        checkpoint in 16. "first": for all of those too, which reads the bytes once more. "always": with each restore.
        "off": never. A restore to a device waits for the comparison there with "always" alone: what it finds is
        raised as `BelatedCorruption` by the next restore or wait of the history, or by `Store.close`.
    debug
        Detect writes into leases that callers share (`LeaseWritten`): every lease costs a pass over its bytes. And
        remember where the application has called, so that errors which come later tell the line: of what could not be
        made durable, or of a restore whose bytes were found to be wrong (`VelocError.called`).
    timeline
        How many events `Store.timeline` keeps.
    idle
        Seconds after which memory of the host tier that no checkpoint has used is given back to the system; the store
        takes it again when captures need it, which costs them its first touch. Memory that is pinned for devices stays.
        None: the store keeps what it has touched, until `Store.trim` or `Store.resize`.
    tuning
        What may make the store faster on one machine, or compares ways: see `velocpy.Tuning`.
    former
        The fields of `velocpy.Tuning` as keywords of this call, with a DeprecationWarning; for one version.

    Raises
    ------
    InvalidArgument, InvalidBudget, InvalidType
        An argument cannot be what it is, or ``host`` needs more address space than RLIMIT_AS leaves beside the core.
    ForeignDirectory
        The directory has files of others, and no store.
    StoreLocked, DamagedStore, FormatTooNew
        The store there cannot be written to; for the latter two, nor read.
    NotAStore
        With ``mode="r"``: there is none.
    AccessDenied
        This user may not use the directory. It is a PermissionError too.
    TierIOError, TierUnavailable
        A tier cannot be made. In each case nothing that was there has changed.
    RankFailed
        With ``ranks=``: another rank could not open its store. It says why. No store is open then.
    CoreUnavailable
        The core cannot be loaded, or would find too little address space or too few threads: see `velocpy.limits`.

    Examples
    --------
    >>> import velocpy
    >>> with velocpy.open(host="16MiB") as store:
    ...     store
    <Store host 16.0 MiB: 0 histories>

    What was written to a directory is found there again:

    >>> import numpy, tempfile
    >>> with tempfile.TemporaryDirectory() as path:
    ...     with velocpy.open(path, host="16MiB", disk="1GiB") as store:
    ...         ticket = store.history("run").checkpoint(0, u=numpy.arange(3.0))
    ...         ticket.wait("disk")
    ...     with velocpy.open(path, mode="r", host="16MiB") as store:
    ...         print(store.history("run").restore(0)["u"])
    [0. 1. 2.]

    One of four processes that share a node:

    >>> from velocpy import knobs
    >>> with knobs.override(node_processes=4), velocpy.open(host="64MiB/node", disk="1GiB/node") as store:
    ...     store
    <Store host 16.0 MiB, disk 256.0 MiB: 0 histories>
    """
    tuned = tuning_of(tuning, former)

    def make() -> Store:
        return _opened(path, device, host, disk, mode, durable, verify, debug, timeline, idle, tuned)

    if archive is not None:
        from .archive.background import opened  # which brings much that most stores do without

        return opened(archive, ranks, make)
    if ranks is not None:
        raise InvalidArgument("ranks= are those that share an archive: name it by archive=.")
    return make()


def _opened(
    path: str | os.PathLike[str] | None,
    device: DeviceBudgets | None,
    host: Size | None,
    disk: Size | None,
    mode: Mode,
    durable: bool | None,
    verify: Verification,
    debug: bool,
    timeline: int,
    idle: float | None,
    tuned: Tuning,
) -> Store:
    """The store, without an archive."""
    budgets = device_budgets(device)
    if budgets:
        _require_kernels()
    require_choice("mode", mode, Mode)
    require_choice("verify", verify, Verification)
    require_whole("timeline", timeline, 0)
    reads = mode == "r"
    place = _place(path, reads)
    directory = paths.directory_of(None if place else path, make=not reads)
    sharing = knobs.node_processes()
    host_bytes = host_budget(host, sharing)
    with paths.using(directory):
        disk_bytes = None if reads else disk_budget(disk, directory, sharing)
        lasting = place is not None or _lasting(durable, directory, disk_bytes, reads)
        if lasting and not reads and directory is not None:
            paths.require_own(directory)
    if budgets and host_bytes is None:
        raise InvalidArgument("a device tier needs a host tier below it: give host= a budget.")
    processors, loaded = knobs.max_procs(), _core.loaded()
    if host_bytes is not None and host == "auto":
        host_bytes = limits.within_address_space(host_bytes, processors, loaded=loaded)
    limits.require_address_space(host_bytes or 0, processors, loaded=loaded)
    if host_bytes is None and disk_bytes is None and not reads:
        raise InvalidArgument("the store has no tier: give host= or disk= a budget.")
    if disk_bytes is not None and directory is None:
        directory = Path(tempfile.gettempdir())
    if disk_bytes is not None and directory is not None and disk != "auto":
        with paths.using(directory):
            _warn_of_little_space(disk_bytes, directory)
    if host_bytes is not None and host != "auto":
        _warn_of_little_memory(host_bytes)
    if disk_bytes is not None and directory is not None:
        paths.tell_of_memory(directory, lasting)
    config: dict[str, Any] = {
        "host": host_bytes,
        "disk": disk_bytes,
        "path": place if directory is None else str(directory),
        "durable": lasting,
        "read_only": reads,
        "flush": tuned.flush if tuned.flush != "auto" else "eager" if lasting else "lazy",
        "verify": verify,
        "debug": bool(debug),
        "timeline": timeline,
        **tuned._config(),
    }
    if budgets:
        config |= {"devices": budgets, "pinning": tuned.pinning, "kernels": knobs.kernels_path()}
    if idle is not None:
        config["idle"] = require_seconds("idle", idle)
    return Store(config, tuned.lookahead)


def _place(path: str | os.PathLike[str] | None, reads: bool) -> str | None:
    """The place of an archive in a bucket, which the core can reach; None for every other path."""
    if not isinstance(path, (str, os.PathLike)) or os.fspath(path)[:4] != "s3:/":
        return None
    from .archive import buckets  # which brings much that most stores do without

    if not buckets.is_place(path):
        return None
    if not reads:
        raise InvalidArgument(
            f"path is {path!r}: an archive in a bucket opens with mode='r'. Nothing was opened. A store on a disk goes "
            "on to it by archive=, or by velocpy.archive.push."
        )
    place = buckets.require_place(str(path))
    buckets.reach()
    return place


def _require_kernels() -> None:
    if not Path(knobs.kernels_path()).exists():
        raise TierUnavailable(
            f"this build of velocpy has no GPU kernels: {knobs.kernels_path()} does not exist. Nothing was opened. "
            "Install a wheel or build without VELOCPY_CUDA=0, or open the store without device=.",
            tier="device",
        )


def _warn_of_little_space(size: int, directory: Path) -> None:
    free = shutil.disk_usage(directory).free
    if size > free:
        log.warning(
            "the disk budget of %s is more than the %s that are free in %s: captures will fail when the disk is full",
            sized(size), sized(free), directory,
        )  # fmt: skip


def _warn_of_little_memory(size: int) -> None:
    limit = cgroups.limit("memory")
    whose = "cgroup of this process allows"
    if limit is None or budget.machine_memory() < limit:
        limit, whose = budget.machine_memory(), "machine has"
    if size > limit:
        log.warning(
            "the host budget of %s is more than the %s of memory that the %s: the kernel will end the process when the "
            "tier fills up. Give host= less, or \"auto\"",
            sized(size), sized(limit), whose,
        )  # fmt: skip


def _lasting(durable: bool | None, directory: Path | None, disk_bytes: int | None, reads: bool) -> bool:
    """Whether the disk tier is to outlive the process."""
    if reads and (directory is None or durable is False):
        raise InvalidArgument("mode='r' reads a durable store: give its directory.")
    possible = directory is not None and (reads or disk_bytes is not None)
    if durable and not possible:
        raise InvalidArgument("a durable store needs a path and a disk tier: give path= and disk=.")
    return possible if durable is None else bool(durable)
