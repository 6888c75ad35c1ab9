"""Which metrics there are, and their values in what `Store.stats` returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from velocpy.figures import ArchiveStats, HistoryStats, ReductionStats, Stats, TierStats


class Family(NamedTuple):
    """A metric: the name ``tier.used`` is ``velocpy.tier.used`` in OpenTelemetry and, with the unit, in Prometheus.

    Times of stats are in nanoseconds, and those of metrics in seconds.
    """

    name: str
    #: "bytes", "seconds", "bytes_per_second", or "" for counts.
    unit: str
    #: Whether it only grows while the store is open.
    grows: bool
    text: str
    #: Labels beside the store's.
    labels: tuple[str, ...] = ()

    @property
    def prometheus(self) -> str:
        """The name in Prometheus, to which a counter gets ``_total``.

        Examples
        --------
        >>> from velocpy.metrics import Family
        >>> Family("tier.used", "bytes", False, "").prometheus, Family("captures", "", True, "").prometheus
        ('velocpy_tier_used_bytes', 'velocpy_captures')
        """
        name = f"velocpy_{self.name.replace('.', '_')}"
        return f"{name}_{self.unit}" if self.unit else name

    @property
    def opentelemetry(self) -> tuple[str, str]:
        """The name and the unit (UCUM) in OpenTelemetry.

        Examples
        --------
        >>> from velocpy.metrics import Family
        >>> Family("tier.used", "bytes", False, "").opentelemetry
        ('velocpy.tier.used', 'By')
        """
        units = {"bytes": "By", "seconds": "s", "bytes_per_second": "By/s", "": "1"}
        return f"velocpy.{self.name}", units[self.unit]


#: A value of a family, with the values of its labels.
Reading = tuple[str, tuple[str, ...], float]

_TIER, _HISTORY = ("tier",), ("history",)

_ALL = (
    Family("store.info", "", False, "1 for each open store, with its directory", ("path", "mode")),
    Family("tier.capacity", "bytes", False, "budget of a tier", _TIER),
    Family("tier.used", "bytes", False, "what checkpoints take of a tier", _TIER),
    Family("tier.high_water", "bytes", False, "the most that they have taken so far", _TIER),
    Family("tier.state", "bytes", False, "what is used of a tier, by what may happen to it", ("tier", "state")),
    Family("tier.pinned", "bytes", False, "host memory that is registered for copies to devices", _TIER),
    Family("tier.resident", "bytes", False, "memory of the host tier that the process has", _TIER),
    Family("tier.evicted", "bytes", True, "evicted from a tier", _TIER),
    Family("tier.written", "bytes", True, "written to a tier by flushes", _TIER),
    Family("tier.read", "bytes", True, "read from a tier by loads", _TIER),
    Family("tier.given_back", "bytes", True, "memory of the host tier that was given back to the system", _TIER),
    Family("tier.link", "bytes_per_second", False, "measured rate to or from the tier below", ("tier", "direction")),
    Family("tier.stalled", "seconds", False, "for how long a disk has not answered; 0: it does", _TIER),
    Family("tier.commits", "", True, "groups of changes of a durable store that shared their syncs", _TIER),
    Family("tier.pending_changes", "", False, "changes of a durable store that are not durable yet", _TIER),
    Family("wait.time", "seconds", True, "waited or copied by calls, and waited by streams on devices", ("reason",)),
    Family("wait.cause.time", "seconds", True, "waited, by what was waited for", ("reason", "cause")),
    Family("captured", "bytes", True, "captured"),
    Family("restored", "bytes", True, "restored"),
    Family("flush.cancelled", "bytes", True, "of flushes that were queued, and not needed any more"),
    Family("flush.avoided", "bytes", True, "of checkpoints that went before a flush was asked for"),
    Family("captures", "", True, "checkpoints captured"),
    Family("consumed", "", True, "checkpoints restored as last"),
    Family("restores", "", True, "restores"),
    Family("restore.hits", "", True, "restores that found their checkpoint in the fastest tier"),
    Family("prefetch.distance", "", False, "checkpoints expected next in the fastest tier at the last restore"),
    Family("prefetch.distance_mean", "", False, "the mean of that over all restores"),
    Family("broken_promises", "", True, "checkpoints brought back for a restore that had to go before it"),
    Family("eviction.decisions", "", True, "decisions of what to evict"),
    Family("mapped", "bytes", False, "memory that is mapped, that of leases included"),
    Family("users", "", False, "calls and leases that use the store now"),
    Family("timeline.lost", "", True, "events that the timeline had no room for"),
    Family("archive.keys", "", True, "keys that the archive has got, with the parts of all ranks"),
    Family("archive.parts", "", True, "checkpoints of ranks that were copied for them"),
    Family("archive.written", "bytes", True, "of these in the archive"),
    Family("archive.pushes", "", True, "pushes that found something new"),
    Family("archive.failures", "", True, "pushes that have failed"),
    Family("archive.time", "seconds", True, "pushes"),
    Family("archive.requests", "", True, "requests to the object store of an archive in a bucket"),
    Family("archive.sent", "bytes", True, "bodies of these"),
    Family("archive.received", "bytes", True, "bodies of the replies"),
    Family("archive.waiting", "", False, "checkpoints of this rank that are not known to be in the archive"),
    Family("history.checkpoints", "", False, "checkpoints of a history", _HISTORY),
    Family("history.hints", "", False, "hints of a history that are queued", _HISTORY),
    Family("history.restores", "", True, "restores of a history", _HISTORY),
    Family("history.restore.hits", "", True, "restores that found their checkpoint in the fastest tier", _HISTORY),
    Family("history.prefetch.distance", "", False, "as velocpy.prefetch.distance, of one history", _HISTORY),
    Family("history.encoded.from", "bytes", True, "encoded checkpoints on their way down, before", _HISTORY),
    Family("history.encoded.to", "bytes", True, "encoded checkpoints on their way down, after", _HISTORY),
    Family("history.plain", "bytes", True, "checkpoints of a reduced history that went down as they were", _HISTORY),
    Family("history.encode.time", "seconds", True, "transfers that encoded", _HISTORY),
    Family("history.decode.time", "seconds", True, "loads and restores that decoded", _HISTORY),
)

#: Every metric by its name.
FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}

_STATES = ("evictable", "flushing", "dirty", "promised", "held")


def readings(stats: Stats, histories: bool) -> Iterator[Reading]:
    """The values that a store has, but for ``store.info``."""
    for name, tier in stats["tiers"].items():
        for family, value in _of_tier(name, tier):
            yield family, (name,), value
        for state in _STATES:
            yield "tier.state", (name, state), tier[state]  # type: ignore[literal-required]
        yield "tier.link", (name, "down"), tier["flush_bytes_per_s"]
        yield "tier.link", (name, "up"), tier["load_bytes_per_s"]
    for reason, waited in cast("dict[str, int]", stats["waits_ns"]).items():
        yield "wait.time", (reason,), waited / 1e9
    for reason, causes in cast("dict[str, dict[str, int]]", stats["waits_by_cause_ns"]).items():
        for cause, waited in causes.items():
            yield "wait.cause.time", (reason, cause), waited / 1e9
    for family, value in _of_store(stats):
        yield family, (), value
    if stats["archive"] is not None:
        for family, value in _of_archive(stats["archive"]):
            yield family, (), value
    if histories:
        for name, history in stats["histories"].items():
            for family, value in _of_history(history):
                yield family, (name,), value


def _of_tier(name: str, tier: TierStats) -> Iterator[tuple[str, float]]:
    yield "tier.capacity", tier["capacity"]
    yield "tier.used", tier["used"]
    yield "tier.high_water", tier["high_water"]
    yield "tier.evicted", tier["evicted_bytes"]
    yield "tier.written", tier["written_bytes"]
    yield "tier.read", tier["read_bytes"]
    if name == "host":
        yield "tier.pinned", tier["pinned_bytes"]
        yield "tier.resident", tier["resident_bytes"]
        yield "tier.given_back", tier["given_back_bytes"]
    if name == "disk":
        yield "tier.stalled", tier["stalled_ns"] / 1e9
        yield "tier.commits", tier["commits"]
        yield "tier.pending_changes", tier["pending_changes"]


def _of_store(stats: Stats) -> Iterator[tuple[str, float]]:
    moved, restores = stats["bytes"], stats["restores"]
    yield "captured", moved["captured"]
    yield "restored", moved["restored"]
    yield "flush.cancelled", moved["flush_cancelled"]
    yield "flush.avoided", moved["flush_avoided"]
    yield "captures", stats["captures"]
    yield "consumed", stats["consumed"]
    yield "restores", restores["count"]
    yield "restore.hits", restores["hits"]
    yield "prefetch.distance", restores["prefetch_distance_last"]
    yield "prefetch.distance_mean", restores["prefetch_distance_mean"]
    yield "broken_promises", stats["broken_promises"]
    yield "eviction.decisions", stats["eviction_decisions"]
    yield "mapped", stats["mapped_bytes"]
    yield "users", stats["users"]
    yield "timeline.lost", stats["timeline_lost"]


def _of_archive(archive: ArchiveStats) -> Iterator[tuple[str, float]]:
    yield "archive.keys", archive["keys"]
    yield "archive.parts", archive["parts"]
    yield "archive.written", archive["bytes"]
    yield "archive.pushes", archive["pushes"]
    yield "archive.failures", archive["failures"]
    yield "archive.time", archive["pushing_ns"] / 1e9
    yield "archive.requests", archive["requests"]
    yield "archive.sent", archive["sent_bytes"]
    yield "archive.received", archive["received_bytes"]
    yield "archive.waiting", archive["waiting"]


def _of_history(history: HistoryStats) -> Iterator[tuple[str, float]]:
    yield "history.checkpoints", history["checkpoints"]
    yield "history.hints", history["hints_queued"]
    yield "history.restores", history["restores"]["count"]
    yield "history.restore.hits", history["restores"]["hits"]
    yield "history.prefetch.distance", history["restores"]["prefetch_distance_last"]
    reduction: ReductionStats | None = history["reduction"]
    if reduction is not None:
        yield "history.encoded.from", reduction["encoded_from"]
        yield "history.encoded.to", reduction["encoded_to"]
        yield "history.plain", reduction["plain_bytes"]
        yield "history.encode.time", reduction["encode_ns"] / 1e9
        yield "history.decode.time", reduction["decode_ns"] / 1e9
