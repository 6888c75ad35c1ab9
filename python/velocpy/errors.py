"""Everything that can go wrong, as exceptions: what happened, where, what is still safe, what to do.

All of them are `VelocError`; each is also the builtin that fits, so ``except KeyError`` or ``except TimeoutError``
works too.

Examples
--------
>>> import velocpy
>>> with velocpy.open(host="16MiB") as store:
...     try:
...         store.history("forward").restore(7)
...     except velocpy.errors.CheckpointNotFound as error:
...         print(error.history, error.key)
forward 7
"""

from __future__ import annotations

import enum
import errno
import os
from collections.abc import Sequence
from typing import Any, get_args

from .choices import TierName

__all__ = [
    "AccessDenied",
    "BelatedCorruption",
    "VelocError",
    "CheckpointDropped",
    "CheckpointNotFound",
    "CoreFault",
    "CorePoisoned",
    "CoreUnavailable",
    "CorruptCheckpoint",
    "DamagedStore",
    "DurabilityLost",
    "ForeignDirectory",
    "ForkedProcessError",
    "FormatTooNew",
    "GpuContextLost",
    "InvalidArgument",
    "InvalidBudget",
    "InvalidType",
    "LeaseReleased",
    "LeaseWritten",
    "NotAStore",
    "PlanUnfinished",
    "RankFailed",
    "ReadOnlyStore",
    "RegionNotFound",
    "SavedTensorChanged",
    "StagerBusy",
    "StagerClosed",
    "StateMismatch",
    "StoreClosed",
    "StoreLocked",
    "StoreLost",
    "TierFull",
    "TierIOError",
    "TierUnavailable",
    "TrainingDiverged",
    "WaitTimeout",
]


class Status(enum.IntEnum):
    """Status codes of the contract with the core; velocpy_abi.h has the same numbers."""

    OK = 0
    PENDING = 1
    AGAIN = 2
    INVALID = -1
    NOT_FOUND = -2
    CLOSED = -3
    STALE = -4
    TIER_FULL = -5
    IO = -6
    CORRUPT = -7
    DROPPED = -8
    CHANGED = -9
    POISONED = -10
    FORKED = -11
    TIMEOUT = -12
    UNAVAILABLE = -13
    INTERNAL = -14
    DURABILITY = -15
    DEVICE_LOST = -16
    BELATED = -17
    LOCKED = -18
    NO_STORE = -19
    LATER = -20
    DAMAGED = -21
    READ_ONLY = -22
    LOST = -23


#: Names of the tiers by the contract's numbers.
TIERS: tuple[TierName, ...] = get_args(TierName)


class VelocError(RuntimeError):
    """Base of all exceptions of velocpy."""

    #: Name of the history concerned, or None.
    history: str | None
    #: Key of the checkpoint concerned, or None.
    key: int | str | None
    #: Name of the region concerned (its number in a sequence), or None.
    region: str | int | None
    #: Name of the tier concerned, or None.
    tier: TierName | None
    #: How many checkpoints `History.checkpoint_many` had captured before, or None: another call failed.
    captured: int | None = None
    #: The line of the application that had called for the checkpoint concerned, where an error that comes later knows
    #: it: ``"sweep.py:12"``. The message tells it, too.
    called: str | None = None

    def __init__(
        self,
        message: str = "",
        *,
        history: str | None = None,
        key: int | str | None = None,
        region: str | int | None = None,
        tier: TierName | None = None,
    ) -> None:
        super().__init__(message)
        self.history = history
        self.key = key
        self.region = region
        self.tier = tier

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class InvalidArgument(VelocError, ValueError):
    """An argument cannot mean anything. Nothing was changed."""


class InvalidType(InvalidArgument, TypeError):
    """An argument has a type that cannot be used here. Nothing was changed."""


class InvalidBudget(InvalidArgument):
    """A size of a tier cannot be understood, or needs more address space than the process may map beside the core."""


class ForeignDirectory(InvalidArgument):
    """The directory has files that are not velocpy's, and no store. Nothing was changed, and no store was made."""


class CheckpointNotFound(VelocError, KeyError):
    """The history has no checkpoint of this key: never written, dropped, or restored as last."""


class RegionNotFound(VelocError, KeyError, IndexError):
    """A lease has no region of this name, or, of a sequence, of this number: never written, or not asked for."""


class CheckpointDropped(VelocError):
    """The checkpoint was dropped, replaced or consumed while the call waited for it."""


class StoreClosed(VelocError):
    """The store is closed. Leases taken before stay valid."""


class TierFull(VelocError, MemoryError):
    """A tier has no room, and nothing that the store may do by itself would make room."""


class TierIOError(VelocError, OSError):
    """A tier failed; ``errno`` says how."""


class AccessDenied(TierIOError, PermissionError):
    """The user may not read or write what lies in a tier's directory; ``errno`` is EACCES or EPERM."""


class TierUnavailable(VelocError):
    """The tier does not exist in this build or on this machine."""


class GpuContextLost(VelocError):
    """The CUDA context of this process is broken; checkpoints that had reached the host or the disk are safe."""


class CorruptCheckpoint(VelocError):
    """What came back is not what was captured.

    The checksum of ``region`` in ``tier`` differs, or the description of the checkpoint, or its meta, is damaged.
    """


class BelatedCorruption(VelocError):
    """What an earlier restore to a device gave was not what was captured, as its verification behind the copy found.

    A restore does not wait for that. The next restore or wait of the same history raises this instead of what it should
    do, once, or `Store.close` does; a `History.wait` that raises nothing vouches for all that was given before it.
    ``history``, ``key`` and ``region`` are those of the earlier restore (None where a name is too long to be told):
    what was computed since from these bytes is wrong. It is no `CorruptCheckpoint`, which concerns the checkpoint that
    the call asks for.
    """


class DurabilityLost(VelocError):
    """The bytes will never reach the tier asked for: their flush failed for good or was cancelled."""


class SavedTensorChanged(VelocError):
    """A tensor that autograd saved was changed in place before the backward pass asked for it."""


class StateMismatch(VelocError, ValueError):
    """A saved state does not fit the objects that were to take it: it is that of another model, say."""

    #: Names of the parts of a training that were restored all the same.
    restored: tuple[str, ...] = ()


class StagerBusy(VelocError):
    """Two saves used one `velocpy.dcp.Stager` at once: a state is not copied yet. Nothing was staged for the second."""


class StagerClosed(VelocError):
    """The `velocpy.dcp.Stager` is closed. States staged before stay valid."""


class StoreLocked(VelocError):
    """The store in this directory is open for writing, here or in another process. Nothing was changed."""


class StoreLost(VelocError):
    """The directory of an open store was removed, or another process took it over. Nothing more is written there."""


class NotAStore(VelocError, FileNotFoundError):
    """There is no store in the directory."""


class FormatTooNew(VelocError):
    """The store was written by a later version of velocpy. Nothing was changed."""


class DamagedStore(VelocError):
    """Something that was acknowledged is gone from the store's directory. Nothing was changed; the rest can be read."""


class PlanUnfinished(VelocError):
    """A loop over a plan comes to the end of what was read of it, and the plan could not be read on.

    An exception such as KeyboardInterrupt ended one of the iterables that the plan is read from, or the loop runs
    inside of such an iterable. It is raised once; checkpoints are unharmed.
    """


class RankFailed(VelocError):
    """A call that all ranks of a run make has failed, as another rank could not take part in it."""

    #: Number of that rank.
    rank: int | None = None

    #: Whether the connection to it has failed, so that the ranks cannot make another call together.
    _cut_off: bool = False


class ReadOnlyStore(VelocError, PermissionError):
    """The store is open for reading only. Nothing was changed."""


class LeaseReleased(VelocError):
    """The lease was released before this use of it."""


class LeaseWritten(VelocError):
    """Debug mode: a caller wrote into a lease that other callers may share."""


class TrainingDiverged(VelocError):
    """A training was put back to earlier snapshots as often as allowed, and its loss is refused again."""


class WaitTimeout(VelocError, TimeoutError):
    """The timeout passed. What was begun has been undone; a wait for a ticket has changed nothing."""


class ForkedProcessError(VelocError):
    """A forked child used a store of its parent. The parent's store is unharmed."""


class CorePoisoned(VelocError):
    """The core panicked earlier in this process; nothing in it can be trusted any more. The message has its stacks."""


class CoreFault(VelocError):
    """The core contradicts itself: a defect of velocpy."""


class CoreUnavailable(VelocError, ImportError):
    """The Go core cannot be loaded, or limits of this process are too narrow for it: see `velocpy.limits`."""


_CLASSES: dict[int, type[VelocError]] = {
    Status.INVALID: InvalidArgument,
    Status.NOT_FOUND: CheckpointNotFound,
    Status.CLOSED: StoreClosed,
    Status.STALE: StoreClosed,
    Status.TIER_FULL: TierFull,
    Status.IO: TierIOError,
    Status.CORRUPT: CorruptCheckpoint,
    Status.DROPPED: CheckpointDropped,
    Status.CHANGED: CheckpointDropped,
    Status.POISONED: CorePoisoned,
    Status.FORKED: ForkedProcessError,
    Status.TIMEOUT: WaitTimeout,
    Status.UNAVAILABLE: TierUnavailable,
    Status.INTERNAL: CoreFault,
    Status.DURABILITY: DurabilityLost,
    Status.DEVICE_LOST: GpuContextLost,
    Status.BELATED: BelatedCorruption,
    Status.LOCKED: StoreLocked,
    Status.NO_STORE: NotAStore,
    Status.LATER: FormatTooNew,
    Status.DAMAGED: DamagedStore,
    Status.READ_ONLY: ReadOnlyStore,
    Status.LOST: StoreLost,
}

#: Numbers of errors of the system that are a PermissionError.
_DENIED = (errno.EACCES, errno.EPERM)

# What is still safe and what to do, where the core cannot know it.
_NO_RIGHT = (
    "Nothing that is there was changed. Give this user the right to read and write there, or choose another directory; "
    "a store that may only be read opens with mode='r'."
)
_NO_CREDENTIALS = (
    "Nothing was changed there. Give credentials that may read the bucket, and write to it for a push: by "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in ~/.aws/credentials, or as the role of the machine."
)
_NO_MAPPING = "Nothing was opened; give host= a smaller budget."
REMEDIES: dict[int, str] = {
    Status.NOT_FOUND: "`key in history` asks first.",
    Status.CLOSED: "Leases taken before stay valid; open a new store for anything else.",
    Status.STALE: "It belonged to a store that is closed.",
    Status.TIER_FULL: "What was written is safe. Raise the budget, add a tier, drop checkpoints or give back leases.",
    Status.IO: "What lies in the other tiers is safe.",
    Status.CORRUPT: "Other checkpoints are not affected. Write this one again, and suspect the memory or the disk.",
    Status.DROPPED: "Another thread dropped or replaced it; its new version, if any, can be restored.",
    Status.CHANGED: "Another thread keeps rewriting this key with other regions; synchronise with it.",
    Status.POISONED: "Restart the process; in a notebook, the kernel. Please report the stacks.",
    Status.INTERNAL: "Please report this; close the store and restart the process.",
    Status.DEVICE_LOST: "A kernel or a copy of some library failed in this process, and CUDA cannot go on in it. What "
    "had reached the host tier or below can be restored to host memory; restart the process to use the GPU again.",
    Status.LOCKED: "One process at a time writes to a store, any number read it: open it with mode='r', give each "
    "process a path of its own, or, for files that may go with the process, durable=False.",
    Status.NO_STORE: "Give the directory that was given to velocpy.open, or open it for writing to make a store there.",
    Status.LATER: "Nothing was changed; install a newer velocpy.",
    Status.DAMAGED: "Nothing was changed. What is left can be read with mode='r'; `velocpy check` says what is gone, "
    "and `velocpy check --repair` lets it be written to again; with --rebuild it finds in the data files what the "
    "catalog has lost.",
    Status.READ_ONLY: "Open it without mode='r' to change it.",
    Status.LOST: "What was durable before is where it was; what was not can still be restored from memory. Close this "
    "store, and open it again, or another one, to go on.",
    Status.DURABILITY: "The checkpoint can still be restored while the store is open, unless it was dropped.",
}


def from_core(
    status: int,
    text: str,
    os_errno: int,
    tier: int,
    region: str | int | None,
    history: str | None,
    key: int | str | None,
) -> VelocError:
    """The exception for a failure that the core reports."""
    tier_name = TIERS[tier] if 0 <= tier < len(TIERS) else None
    message = _sentence(text or _CLASSES.get(status, VelocError).__name__, _place(history, key, region, tier_name))
    if os_errno and os.strerror(os_errno).lower() not in message.lower():
        message += f" ({os.strerror(os_errno)})"
    # Memory fails as a device only where a store is opened.
    unmapped = status == Status.IO and os_errno == errno.ENOMEM and tier_name == "host"
    denied = status == Status.IO and os_errno in _DENIED and tier_name in (None, "disk", "archive")
    no_right = _NO_CREDENTIALS if tier_name == "archive" else _NO_RIGHT
    remedy = _NO_MAPPING if unmapped else no_right if denied else REMEDIES.get(status)
    message = f"{message}. {remedy}" if remedy else f"{message}."
    kind = AccessDenied if denied else _CLASSES.get(status, VelocError)
    error = kind(message, history=history, key=key, region=region, tier=tier_name)
    if isinstance(error, OSError) and os_errno:
        error.errno = os_errno
        error.strerror = os.strerror(os_errno)
    return error


#: How many names an error lists from either end where there are more than twice as many, and letters of each.
_LISTED, _LETTERS = 3, 40


def _listing(names: Sequence[Any], count: int) -> str:
    """A sentence that says how many there are and lists them, or some of them."""
    if count == 0:
        return "It has none."
    shown = [f"{name!r:.{_LETTERS}}" for name in names]
    if len(shown) > 2 * _LISTED:
        shown = [*shown[:_LISTED], "…", *shown[-_LISTED:]]
    return f"It has {count}: {', '.join(shown)}." if shown else f"It has {count}."


def not_found(history: str, key: int | str, keys: Sequence[int | str], count: int) -> CheckpointNotFound:
    """The exception for a key that is not there; keys: those that are, or none of them where they are too many."""
    message = f"history {history!r} has no checkpoint {key!r:.{_LETTERS}}: never written, dropped, or restored as last"
    return CheckpointNotFound(
        f"{message}. {_listing(keys, count)} {REMEDIES[Status.NOT_FOUND]}", history=history, key=key
    )


def region_not_found(history: str, key: int | str, region: Any, regions: Sequence[str | int]) -> RegionNotFound:
    """The exception for a region that a lease does not have; regions: those that it has."""
    message = f"the lease of key {key!r:.{_LETTERS}}, history {history!r}, has no region {region!r:.{_LETTERS}}"
    return RegionNotFound(f"{message}. {_listing(regions, len(regions))}", history=history, key=key, region=region)


def from_os(error: OSError, directory: str) -> TierIOError:
    """The exception for what the system says of a directory before a store is opened there."""
    denied = error.errno in _DENIED
    remedy = _NO_RIGHT if denied else "Nothing was changed there; choose another directory."
    failure = (AccessDenied if denied else TierIOError)(
        f"the directory {directory!r} cannot be used: {error.strerror}. {remedy}", tier="disk"
    )
    failure.errno, failure.strerror = error.errno, error.strerror
    return failure


def belated(
    history: str | None, key: int | str | None, region: str | int | None, tier: int, unverified: str | None
) -> BelatedCorruption:
    """The exception of what was found out about an earlier restore; unverified: why nothing could be."""
    tier_name = TIERS[tier] if 0 <= tier < len(TIERS) else None
    if unverified is None:
        text = "an earlier restore gave bytes that are not those that were captured (checksum mismatch)"
        consequence = "What was computed from them is wrong."
    else:
        text = f"an earlier restore gave bytes that could not be verified afterwards: {unverified}"
        consequence = "What was computed from them may be wrong."
    message = _sentence(text, _place(history, key, region, tier_name))
    remedy = (
        f"{consequence} Other checkpoints are not affected, and this call has done nothing: it can be made again. "
        "A store with verify='always' gives nothing out before it is verified."
    )
    return BelatedCorruption(f"{message}. {remedy}", history=history, key=key, region=region, tier=tier_name)


#: What a wait may be for: what did not happen in time, what has become of it, and what to do.
AWAITED = {
    "room": (
        "no room in the fastest tier",
        "Nothing has changed. Drop checkpoints, give back leases or allow more time.",
    ),
    "bytes": (
        "the bytes were not in the fastest tier",
        "The checkpoint stays restorable. Call again, allow more time, or give back leases that take the room.",
    ),
    "promise": ("not captured", "Nothing was lost, and the transfers go on; call again to wait on."),
    "memory": (
        "the memory has not been given back",
        "Nothing was lost, and it goes on being given back; call again to wait on.",
    ),
    "end": ("transfers still run", "The store is closed for new work; call close() again to wait on."),
    "": ("not done", "The store stays usable; call again to go on."),
}


def timed_out(
    seconds: float, history: str | None, key: int | str | None, awaits: str = "", tier: int = -1
) -> WaitTimeout:
    """The exception of a wait that passed its deadline."""
    tier_name = TIERS[tier] if 0 <= tier < len(TIERS) else None
    missing, remedy = AWAITED[awaits]
    if tier_name is not None:
        missing = f"not durable in tier {tier_name!r}"
    message = _sentence(f"{missing} after {seconds:g} s", _place(history, key, None, None))
    return WaitTimeout(f"{message}. {remedy}", history=history, key=key, tier=tier_name)


def plan_unfinished(why: str, history: str | None) -> PlanUnfinished:
    """The exception of a loop that cannot read on."""
    return PlanUnfinished(
        f"the plan of history {history!r} goes on, but {why}. What was read of it has been restored; hint() what is "
        "left, or give it up by hint_clear().",
        history=history,
    )


def forked() -> ForkedProcessError:
    """The exception of a forked child."""
    return ForkedProcessError(
        f"process {os.getpid()} was forked from one that had velocpy in use, and Go's threads do not survive a fork. "
        "The parent's store is unharmed. Start workers with the method 'spawn' or 'forkserver', or fork before the "
        "first store is opened and open one in the child."
    )


def _place(history: str | None, key: Any, region: Any, tier: str | None) -> str:
    named = (("history", history), ("key", key), ("region", region), ("tier", tier))
    return ", ".join(f"{what} {value!r}" for what, value in named if value is not None)


def _sentence(text: str, place: str) -> str:
    text = text.rstrip(". \n")
    return f"{text} ({place})" if place else text
