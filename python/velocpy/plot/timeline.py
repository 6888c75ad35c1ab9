"""A picture of what a store did: where every checkpoint was, what moved, and which calls waited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from velocpy.quantity import sized

from .blank import blank
from .stays import Event, Record, Stay, Transfer, record_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = npt.NDArray[np.float64]

INK, FAINT, GRID = "#1d2733", "#6b7785", "#e4e8ed"
#: Colour of each tier.
COLOURS = {"device": "#5aa469", "host": "#f28e2b", "disk": "#a9c7e8", "archive": "#d5d0e5"}
#: A darker one, for lines and words.
STRONG = {"device": "#2f7d43", "host": "#c55a06", "disk": "#3b76b5", "archive": "#6c5fa7"}
PLACES = {"device": "on the device", "host": "in host memory", "disk": "on disk", "archive": "in the archive"}
RESTORED, WAITED = "#12355b", "#c3243b"
#: What moves, and the tier that it comes to; the last two only where there is a device.
LINKS = (
    ("▲ up from disk", "host"),
    ("▼ down to disk", "disk"),
    ("▲ up to device", "device"),
    ("▼ down to host", "host"),
)
#: Slices of time over which rates are taken.
SLICES = 240


def draw_timeline(
    events: Iterable[Event], budgets: Mapping[str, int | None] | None = None, title: str = "", subtitle: str = ""
) -> Figure:
    """Draws the events of a store.

    From top to bottom: every checkpoint as a row, coloured by the tiers that held it, a dark dot where it was restored;
    bytes in each tier, with its budget; bytes per second down and up between the tiers; the share of time that callers
    waited.

    Parameters
    ----------
    events
        As `Store.timeline` gives them.
    budgets
        Capacity of each tier in bytes, drawn where given.
    title, subtitle
        Words above.

    Raises
    ------
    MissingLibrary
        Without matplotlib.

    Examples
    --------
    >>> import numpy, velocpy
    >>> with velocpy.open(host="1MiB", disk="16MiB", timeline=1000) as store:
    ...     forward = store.history("forward")
    ...     for n in range(30):
    ...         _ = forward.checkpoint(n, u=numpy.zeros(20_000))
    ...     for n in reversed(range(30)):
    ...         forward.restore(n, last=True).release()
    ...     figure = draw_timeline(store.timeline(), {"host": 1 << 20}, "Thirty states")
    >>> len(figure.axes)
    4
    """
    record = record_of(events)
    figure = blank("a picture of the timeline", 12.5, 9.4)
    rows, held, moved, waited = figure.subplots(
        4, 1, sharex=True, height_ratios=(5.2, 2.2, 1.8, 0.8), gridspec_kw={"hspace": 0.3}
    )
    figure.subplots_adjust(left=0.07, right=0.972, top=0.868, bottom=0.06)
    for axes, heading in (
        (rows, "Where every checkpoint is"), (held, "Bytes held"), (moved, "Bytes moved per second"),
        (waited, "Share of time that callers waited"),
    ):  # fmt: skip
        _plain(axes, heading)
    _draw_rows(rows, record)
    _draw_held(held, record, budgets or {})
    _draw_moved(moved, record)
    _draw_waited(waited, record)
    waited.set_xlabel("seconds", color=FAINT)
    waited.set_xlim(0.0, max((record.end - record.start) / 1e9, 1e-9))
    figure.text(0.07, 0.955, title, fontsize=17, fontweight="bold", color=INK)
    figure.text(0.07, 0.926, subtitle, fontsize=10.5, color=FAINT)
    _legend(figure, record)
    return figure


def _plain(axes: Axes, heading: str) -> None:
    axes.set_title(heading, loc="left", fontsize=10.5, fontweight="bold", color=INK, pad=7)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.tick_params(colors=FAINT, length=0, labelsize=9)
    axes.grid(True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.yaxis.label.set_color(FAINT)
    axes.yaxis.set_label_coords(-0.05, 0.5)


def _remark(axes: Axes, words: str, colour: str, right: float = 1.0) -> None:
    """Words on the line of the heading, ending at the fraction ``right`` of the axes' width."""
    axes.annotate(
        words, (right, 1.0), xycoords="axes fraction", xytext=(0, 7), textcoords="offset points", ha="right",
        fontsize=9.5, color=colour,
    )  # fmt: skip


def _legend(figure: Figure, record: Record) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    tiers = [tier for tier in COLOURS if any(stay.tier == tier for stay in record.stays)]
    entries: list[Any] = [Patch(color=COLOURS[tier], label=PLACES[tier]) for tier in tiers]
    entries.append(Line2D([], [], color=RESTORED, marker="o", markersize=4, linestyle="", label="restored"))
    figure.legend(
        handles=entries, loc="upper right", bbox_to_anchor=(0.976, 0.967), ncols=len(entries), frameon=False,
        fontsize=10, labelcolor=INK, handlelength=1.2, columnspacing=1.6,
    )  # fmt: skip


def _seconds(record: Record, times: Sequence[int]) -> Numbers:
    return (np.asarray(times, dtype=np.int64) - record.start) / 1e9


def _draw_rows(axes: Axes, record: Record) -> None:
    for tier in reversed(COLOURS):
        _draw_stays(axes, record, [stay for stay in record.stays if stay.tier == tier], COLOURS[tier])
    if record.restores:
        times, rows = zip(*record.restores, strict=True)
        size = float(np.clip(3000.0 / len(rows), 1.2, 14.0))
        axes.scatter(_seconds(record, times), np.asarray(rows) + 0.5, s=size, color=RESTORED, linewidths=0, zorder=4)
    axes.set_ylim(0, max(len(record.captures), 1))
    axes.set_ylabel("checkpoint")
    if len(record.groups) > 1:
        axes.set_yticks([first for _, first, _ in record.groups], [""] * len(record.groups))
        axes.set_yticks([(first + after) / 2 for _, first, after in record.groups], minor=True)
        names = [name if name.isprintable() else repr(name) for name, _, _ in record.groups]
        axes.set_yticklabels(names, minor=True, rotation=90, va="center", parse_math=False)
        axes.tick_params(which="minor", length=0, colors=FAINT, labelsize=9.5)
        axes.set_ylabel("")


def _draw_stays(axes: Axes, record: Record, stays: Sequence[Stay], colour: str) -> None:
    from matplotlib.collections import PolyCollection

    if not stays:
        return
    left, right = (_seconds(record, [getattr(stay, end) for stay in stays]) for end in ("start", "end"))
    low = np.asarray([stay.row for stay in stays], dtype=np.float64)
    corners = np.stack([left, low, left, low + 1, right, low + 1, right, low], axis=1).reshape(-1, 4, 2)
    axes.add_collection(PolyCollection(list(corners), facecolors=colour, edgecolors=colour, linewidths=0.15))


def _draw_held(axes: Axes, record: Record, budgets: Mapping[str, int | None]) -> None:
    unit, name = unit_of(max([int(b) for b in budgets.values() if b] + [stay.nbytes for stay in record.stays] + [1]))
    highest = 0.0
    for tier in reversed(COLOURS):
        times, level = _levels([stay for stay in record.stays if stay.tier == tier])
        if not times:
            continue
        seconds, height = _seconds(record, times), np.asarray(level) / unit
        highest = max(highest, float(height.max()))
        axes.fill_between(seconds, height, step="post", color=COLOURS[tier], alpha=0.75, linewidth=0)
        axes.step(seconds, height, where="post", color=STRONG[tier], linewidth=1.1)
    for tier, budget in budgets.items():
        if budget and tier in COLOURS and budget / unit < 1.3 * highest:
            axes.axhline(budget / unit, color=STRONG[tier], linewidth=1.1, linestyle=(0, (5, 3)))
    words = [f"{tier} budget {sized(budget)}" for tier in COLOURS if (budget := budgets.get(tier))]
    _remark(axes, " · ".join(words), FAINT)
    axes.set_ylim(0, 1.08 * highest or 1)
    axes.set_ylabel(name)


def _levels(stays: Sequence[Stay]) -> tuple[list[int], list[int]]:
    """Bytes held after each change."""
    changes: dict[int, int] = {}
    for stay in stays:
        changes[stay.start] = changes.get(stay.start, 0) + stay.nbytes
        changes[stay.end] = changes.get(stay.end, 0) - stay.nbytes
    times = sorted(changes)
    return times, [int(level) for level in np.cumsum([changes[time] for time in times])]


def _draw_moved(axes: Axes, record: Record) -> None:
    """Rates of all links, one upon another: upwards what came up, downwards what went down; coloured by where to."""
    edges = np.linspace(record.start, max(record.end, record.start + 1), SLICES + 1)
    seconds = (edges - record.start) / 1e9
    stacks = {way: _stack(record, way, edges) for way in ("up", "down")}
    highest = max((float(top.max()) for stack in stacks.values() for _, _, top in stack), default=0.0)
    unit, name = _unit_of_rate(highest)
    for way, sign in (("up", 1.0), ("down", -1.0)):
        for tier, bottom, top in stacks[way]:
            low, high = sign * bottom / unit, sign * top / unit
            axes.stairs(high, seconds, baseline=low, fill=True, color=STRONG[tier], alpha=0.85)
    axes.axhline(0.0, color=FAINT, linewidth=0.8)
    reach = 1.15 * highest / unit or 1.0
    axes.set_ylim(-reach, reach)
    axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    axes.set_ylabel(name)
    links = LINKS if any(stay.tier == "device" for stay in record.stays) else LINKS[:2]
    right = 1.0
    for words, tier in links:
        _remark(axes, words, STRONG[tier], right)
        right -= 0.0082 * len(words)


def _stack(record: Record, way: str, edges: Numbers) -> list[tuple[str, Numbers, Numbers]]:
    """Per tier that bytes came to on this way, from which to which rate it is drawn."""
    length, bottom, stack = float(edges[1] - edges[0]) / 1e9, np.zeros(len(edges) - 1), []
    for tier in COLOURS:
        rate = _spread([t for t in record.transfers if (t.tier, t.way) == (tier, way)], edges) / length
        if rate.any():
            stack.append((tier, bottom, bottom + rate))
            bottom = bottom + rate
    return stack


def _spread(transfers: Sequence[Transfer], edges: Numbers) -> Numbers:
    """Bytes per slice of time, those of a transfer spread evenly over its duration."""
    if not transfers:
        return np.zeros(len(edges) - 1)
    starts, ends, sizes = (np.asarray([getattr(t, name) for t in transfers]) for name in ("start", "end", "nbytes"))
    length = np.maximum(ends - starts, 1)
    done = [(np.clip((edge - starts) / length, 0.0, 1.0) * sizes).sum() for edge in edges]
    return np.diff(np.asarray(done, dtype=np.float64))


def _draw_waited(axes: Axes, record: Record) -> None:
    edges = np.linspace(record.start, max(record.end, record.start + 1), SLICES + 1)
    waits = [Transfer("", start, end, end - start, "") for start, end in record.waits]
    share = _spread(waits, edges) / float(edges[1] - edges[0])
    axes.stairs(100.0 * share, (edges - record.start) / 1e9, fill=True, color=WAITED)
    axes.set_ylim(0, max(10.0, 115.0 * float(share.max())))
    axes.set_ylabel("%")
    total = sum(end - start for start, end in record.waits) / 1e9
    _remark(axes, f"{total:.2f} s in all" if total >= 0.1 else f"{1000.0 * total:.1f} ms in all", WAITED)


def unit_of(largest: float) -> tuple[float, str]:
    """The unit of an axis that goes so far, in bytes, and its name."""
    for power, unit in ((30, "GiB"), (20, "MiB")):
        if largest >= 2 << power:
            return float(1 << power), unit
    return 1024.0, "KiB"


def _unit_of_rate(largest: float) -> tuple[float, str]:
    for unit, name in ((1e9, "GB/s"), (1e6, "MB/s")):
        if largest >= 2 * unit:
            return unit, name
    return 1e3, "kB/s"
