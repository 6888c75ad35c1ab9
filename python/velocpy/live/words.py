"""Texts that the live views have in common."""

from __future__ import annotations

from velocpy.quantity import rated, timed

from .change import Change, Wait


def title(shown: Change) -> str:
    """The store, and how much is in it."""
    now = shown.now
    where = f" in {now.path}" if now.durable else ""
    how = ", read-only" if now.read_only else ""
    checkpoints = "1 checkpoint" if now.checkpoints == 1 else f"{now.checkpoints} checkpoints"
    histories = "1 history" if now.histories == 1 else f"{now.histories} histories"
    return f"Store{where}{how}: {checkpoints} in {histories}"


def facts(shown: Change) -> list[tuple[str, str]]:
    """Rates of captures and restores, the prefetch distance, and restores that found their checkpoint above."""
    found = shown.now.stats["restores"]
    rows = [("captured", per_second(shown.captured)), ("restored", per_second(shown.restored))]
    if found["count"]:
        hits, count = (shown.hits or 0, shown.restores) if shown.restores else (found["hits"], found["count"])
        distance = f"{found['prefetch_distance_last']} (mean {found['prefetch_distance_mean']:.1f})"
        when = "" if shown.restores else " so far"
        rows += [
            ("prefetch distance", distance),
            ("found in the fastest tier", f"{100 * hits / count:.0f} % of {count}{when}"),
        ]
    stalled = sum(tier.now["stalled_ns"] for tier in shown.tiers)
    return [*rows, *([("the disk has not answered for", timed(stalled / 1e9))] if stalled else [])]


def wait_row(wait: Wait) -> tuple[str, str, str]:
    """Reason, share of the time, and sum."""
    mostly = f", mostly {wait.cause}" if wait.cause is not None else ""
    share = "" if wait.share is None else f"{100 * wait.share:.0f} %"
    return f"{wait.reason}{mostly}", share, timed(wait.seconds)


def per_second(rate: float | None) -> str:
    """A rate; nothing where it is not known, and a dash where nothing moved.

    Examples
    --------
    >>> from velocpy.live.words import per_second
    >>> per_second(2.5e9), per_second(0.0), per_second(None)
    ('2.5 GB/s', '–', '')
    """
    if rate is None:
        return ""
    return rated(rate) if rate > 0 else "–"
