"""What `Store.stats` and `Store.costs` return, as types. Sizes are bytes; times are said to be what they are."""

from __future__ import annotations

from typing import TypedDict

__all__ = [
    "ArchiveStats",
    "Bytes",
    "Causes",
    "Cost",
    "HistoryStats",
    "ReductionStats",
    "Restores",
    "Stats",
    "StreamWaits",
    "TierStats",
    "WaitCauses",
    "Waits",
]


class Causes(TypedDict):
    """Nanoseconds of waiting, by what was waited for."""

    #: Copies to the tier below.
    flush: int
    #: Bytes on their way up.
    load: int
    #: Leases, and streams of the application that read.
    reader: int
    #: The tier below had no room either; never of a stream.
    full: int
    #: Captures that were still being taken, and verification.
    other: int


class WaitCauses(TypedDict):
    """The sums of `Waits` that have causes: each adds up to the one of the same name.

    A stream that waits for several kinds of work waits for one after the other; each has the time that it took longer
    than those before it.
    """

    capture: Causes
    capture_on_device: Causes
    restore_on_device: Causes


class StreamWaits(TypedDict):
    """Nanoseconds for which the application's streams waited on one device."""

    capture: Causes
    restore: Causes


class TierStats(TypedDict):
    """One tier."""

    #: Its budget.
    capacity: int
    #: What checkpoints take of it, now and at the most so far. On a disk also what de-duplicated checkpoints still need
    #: of dropped ones.
    used: int
    high_water: int
    #: Rooms of checkpoints.
    fragments: int
    #: Of what is used: what may go at once, what is on its way down, what no lower tier has yet, what was brought back
    #: for a restore to come, and what leases show.
    evictable: int
    flushing: int
    dirty: int
    promised: int
    held: int
    #: Added up since the store was opened.
    evicted_bytes: int
    written_bytes: int
    read_bytes: int
    #: Bytes per second of the link to the tier below, as measured; 0: nothing was moved yet.
    flush_bytes_per_s: float
    load_bytes_per_s: float
    #: Of the host tier: how much is registered for copies to devices.
    pinned_bytes: int
    #: Of the host tier: how much of its memory the process may have, in whole pieces, and how much it has given back to
    #: the system since the store was opened.
    resident_bytes: int
    given_back_bytes: int
    #: Of a disk: whether it passes the page cache by.
    direct_io: bool
    #: Of a disk: nanoseconds for which it has not answered; 0: it does.
    stalled_ns: int
    #: Of a device: what the application's streams waited there.
    streams_waited_ns: StreamWaits
    #: Of a durable store's disk: groups of checkpoints and drops that shared their syncs.
    commits: int
    #: Of a durable store's disk: commits, drops and clears that are not durable yet.
    pending_changes: int


class Waits(TypedDict):
    """Nanoseconds that were waited or copied, by reason: by callers, and by their streams on devices."""

    #: For room.
    capture: int
    #: Copying in.
    capture_copy: int
    #: For bytes to come up.
    restore: int
    #: Copying out, and comparing checksums.
    restore_copy: int
    #: For tickets.
    durable: int
    #: By streams on devices, after the call had returned: for a slot that a flush or another reader was still reading.
    capture_on_device: int
    #: By streams on devices: for bytes to get there.
    restore_on_device: int


class Restores(TypedDict):
    """The restores of a store or of a history."""

    count: int
    #: Those that found their checkpoint in the fastest tier.
    hits: int
    #: The prefetch distance: of the checkpoints expected next, how many lay in the fastest tier when a restore was
    #: asked for (Maurya et al., HPDC'23, section 5.3.5). The mean, and the last one.
    prefetch_distance_mean: float
    prefetch_distance_last: int


class ReductionStats(TypedDict):
    """What reducing the checkpoints of a history did on their way down and back."""

    #: See `Store.history`. The chunk in bytes and the digest are those of de-duplication, 0 and "" otherwise.
    method: str
    chunk: int
    digest: str
    #: Of the host; "" if there is none.
    compressor: str
    #: Checkpoints that were encoded, those of them of which a device encoded several at once, and those that went
    #: down as they were.
    encoded: int
    accumulated: int
    plain: int
    #: Bytes of those encoded, before and after; bytes of the others.
    encoded_from: int
    encoded_to: int
    plain_bytes: int
    #: How long the transfers took that encoded, and for how much of that a disk waited for the encoder.
    encode_ns: int
    encoder_ns: int
    #: Loads and restores that decoded, the bytes of their regions, and how long these took.
    decoded: int
    decoded_bytes: int
    decode_ns: int
    #: Of those that decoded: how many took bytes that are damaged on the disk from other checkpoints in memory.
    mended: int
    #: Of de-duplication, 0 otherwise: the encoded checkpoints that refer to earlier ones; the bytes that no earlier
    #: checkpoint had, before they were encoded; and the bytes of metadata, which are among ``encoded_to``.
    differences: int
    first_bytes: int
    meta_bytes: int


class HistoryStats(TypedDict):
    """One history."""

    checkpoints: int
    hints_queued: int
    restores: Restores
    #: None: its checkpoints are kept as they are.
    reduction: ReductionStats | None


class Bytes(TypedDict):
    """Bytes added up since the store was opened."""

    captured: int
    restored: int
    #: Never written down: of flushes that were queued and then not needed, and of checkpoints that went before a flush
    #: was asked for.
    flush_cancelled: int
    flush_avoided: int


class ArchiveStats(TypedDict):
    """What has gone to the archive of ``velocpy.open(archive=)`` since the store was opened."""

    #: Pushes of all ranks together that found something new, and those that have failed.
    pushes: int
    failures: int
    #: As `velocpy.archive.Pushed`, of all ranks, added up.
    keys: int
    parts: int
    bytes: int
    #: How long the pushes took.
    pushing_ns: int
    #: Of an archive in a bucket: requests to the object store, and the bytes of their bodies and of the replies'.
    requests: int
    sent_bytes: int
    received_bytes: int
    #: Checkpoints of this rank that are not known to be in the archive.
    waiting: int


class Stats(TypedDict):
    """What `Store.stats` returns."""

    tiers: dict[str, TierStats]
    waits_ns: Waits
    waits_by_cause_ns: WaitCauses
    restores: Restores
    bytes: Bytes
    histories: dict[str, HistoryStats]
    #: None: the store was opened without an archive.
    archive: ArchiveStats | None
    captures: int
    #: Checkpoints that were restored as last.
    consumed: int
    #: Checkpoints that were brought back for a restore, and had to go before it.
    broken_promises: int
    eviction_decisions: int
    #: Memory that is mapped, leases that outlive their checkpoints included.
    mapped_bytes: int
    #: Calls and leases that use the store now.
    users: int
    #: Events that the timeline had no room for.
    timeline_lost: int


class Cost(TypedDict):
    """One tier, for planners of schedules; bytes per second, or None where nothing was moved yet."""

    capacity: int
    write: float | None
    read: float | None
