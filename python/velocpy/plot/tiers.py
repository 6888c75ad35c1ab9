"""A picture of where the checkpoints of a store lie now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from velocpy.errors import TIERS
from velocpy.occupancy import REST, STATES, parts
from velocpy.quantity import sized

from .blank import blank
from .timeline import COLOURS, FAINT, GRID, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from velocpy.choices import TierName
    from velocpy.figures import TierStats
    from velocpy.interfaces import HistoryState, StoreContents

#: Histories that get a strip, the longest first; the rest is counted.
HISTORIES = 8
#: Columns of a strip: so many checkpoints are told apart.
COLUMNS = 600
#: Letters of a history's name.
LETTERS = 40


def draw_tiers(store: StoreContents) -> Figure:
    """Draws what takes of each tier's budget, and for each history which tiers have its checkpoints.

    Raises
    ------
    MissingLibrary
        Without matplotlib.
    StoreClosed
        `draw_timeline` draws events that were taken before.
    """
    stats = store.stats()
    tiers = {name: stats["tiers"][name] for name in TIERS if name in stats["tiers"]}
    histories = sorted(store.histories, key=len, reverse=True)
    shown = histories[:HISTORIES]
    heights = [0.45 + 0.4 * len(tiers)] + [0.3 + 0.22 * len(tiers)] * len(shown)
    gap, above, below = 0.75, 1.15, 0.55
    height = sum(heights) + gap * len(shown) + above + below
    figure = blank("a picture of a store", 10.0, height)
    grid = figure.subplots(
        len(heights), 1, squeeze=False, height_ratios=heights, gridspec_kw={"hspace": gap * len(heights) / sum(heights)}
    )[:, 0]
    figure.subplots_adjust(left=0.09, right=0.97, top=1.0 - above / height, bottom=below / height)
    _draw_budgets(grid[0], tiers)
    for axes, history in zip(grid[1:], shown, strict=True):
        hints = stats["histories"].get(history.name, {"hints_queued": 0})["hints_queued"]
        _draw_history(axes, history, tuple(tiers), hints)
    if len(histories) > len(shown):
        words = f"… and {len(histories) - len(shown)} histories with no more checkpoints than these"
        figure.text(0.09, 0.12 / height, words, fontsize=9, color=FAINT)
    _legend(figure, tiers, 1.0 - 0.12 / height)
    return figure


def _heading(axes: Axes, words: str) -> None:
    # A name may have dollar signs, and what lies between two of them is no formula.
    axes.set_title(words, loc="left", fontsize=10.5, fontweight="bold", color=INK, pad=6, parse_math=False)
    for spine in axes.spines.values():
        spine.set_color(GRID)
    axes.tick_params(colors=FAINT, length=0, labelsize=9)


def _draw_budgets(axes: Axes, tiers: dict[TierName, TierStats]) -> None:
    _heading(axes, "Share of each budget that is used")
    for row, tier in enumerate(tiers.values()):
        whole, left = max(tier["capacity"], 1), 0.0
        axes.barh(row, 100.0, height=0.6, color="white", edgecolor=GRID)
        for part in parts(tier):
            share = 100.0 * part.nbytes / whole
            axes.barh(row, share, left=left, height=0.6, color=part.colour)
            left += share
        words = f"{sized(tier['used'])} of {sized(tier['capacity'])}"
        axes.text(99.0, row, words, ha="right", va="center", fontsize=9, color=INK)
    axes.set_yticks(range(len(tiers)), list(tiers))
    axes.set_ylim(len(tiers) - 0.5, -0.5)
    axes.set_xlim(0.0, max(100.0, *(100.0 * tier["used"] / max(tier["capacity"], 1) for tier in tiers.values())))
    axes.xaxis.set_major_formatter("{x:.0f} %")


def _draw_history(axes: Axes, history: HistoryState, tiers: tuple[str, ...], hints: int) -> None:
    sizes, held = _places(history)
    total = sized(int(sizes.sum()))
    ahead = f", {hints} hints queued" if hints else ""
    _heading(axes, f"{history.name!r:.{LETTERS}}: {len(sizes)} checkpoints, {total}{ahead}")
    axes.set_yticks(range(len(tiers)), tiers)
    axes.set_xlabel("checkpoints in the order in which they were written", color=FAINT, fontsize=9)
    if not len(sizes):
        axes.set_xticks([])
        axes.set_ylim(len(tiers) - 0.5, -0.5)
        return
    picture = np.ones((len(tiers), min(COLUMNS, len(sizes)), 4))
    for row, tier in enumerate(tiers):
        picture[row, :, :3] = _rgb(COLOURS[tier])
        picture[row, :, 3] = shares(sizes, held >> TIERS.index(tier) & 1, picture.shape[1])
    axes.imshow(picture, aspect="auto", interpolation="nearest", extent=(0, len(sizes), len(tiers) - 0.5, -0.5))


def _places(history: HistoryState) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sizes of the checkpoints, in the order of writing, and a bit for each tier that has a complete copy."""
    found = [history._core.lookup(key) for key in history]
    rows = [(each[0], each[3]) for each in found if each is not None]
    columns = np.asarray(rows, dtype=np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def shares(sizes: npt.NDArray[np.int64], held: npt.NDArray[np.int64], columns: int) -> npt.NDArray[np.float64]:
    """For each of so many groups of neighbours the share of its bytes that is held.

    Examples
    --------
    >>> import numpy
    >>> from velocpy.plot.tiers import shares
    >>> shares(numpy.array([1, 3, 2, 2]), numpy.array([1, 0, 1, 1]), 2).tolist()
    [0.25, 1.0]
    """
    begins = np.arange(columns) * len(sizes) // columns
    weights = np.maximum(sizes, 1)
    return np.asarray(np.add.reduceat(weights * held, begins) / np.add.reduceat(weights, begins), dtype=np.float64)


def _rgb(colour: str) -> list[float]:
    return [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]


def _legend(figure: Figure, tiers: dict[TierName, TierStats], top: float) -> None:
    from matplotlib.patches import Patch

    there = {part.name for tier in tiers.values() for part in parts(tier)}
    named = [(name, colour) for _, name, colour in STATES] + [REST]
    entries: list[Any] = [Patch(color=colour, label=name) for name, colour in named if name in there]
    if entries:
        figure.legend(
            handles=entries, loc="upper right", bbox_to_anchor=(0.975, top), ncols=len(entries), frameon=False,
            fontsize=9.5, labelcolor=INK, handlelength=1.2, columnspacing=1.4,
        )  # fmt: skip
