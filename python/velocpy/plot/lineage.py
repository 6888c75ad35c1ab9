"""A picture of where the bytes of the checkpoints of a history lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from velocpy.origins import OWN_COLOUR, CheckpointOrigins, Identity, colours_of, objects_of
from velocpy.quantity import sized

from .blank import blank
from .timeline import FAINT, INK, unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Rows that have their key beside them, and what they take; of more some have.
NAMED = 30
#: Letters of a key or a name.
LETTERS = 30
#: Regions whose names are written.
REGIONS = 12
#: Other objects in the legend; of more the first, the last and some between.
OBJECTS = 6


def draw_lineage(history: str, checkpoints: Sequence[CheckpointOrigins]) -> Figure:
    """Draws each checkpoint as a bar along its bytes, the first one on top.

    Raises
    ------
    MissingLibrary
        Without matplotlib.
    """
    rows = len(checkpoints)
    height = 1.9 + min(7.0, max(0.28 * rows, 0.6))
    figure = blank("a picture of a lineage", 11.0, height)
    axes = figure.subplots()
    figure.subplots_adjust(left=0.1, right=0.9, top=1.0 - 0.85 / height, bottom=0.95 / height)
    total = sized(sum(each.nbytes for each in checkpoints))
    words = f"{history!r:.{LETTERS}}: {rows} checkpoint{'' if rows == 1 else 's'}, {total}"
    # A name may have dollar signs, and what lies between two of them is no formula.
    axes.set_title(words, loc="left", fontsize=10.5, fontweight="bold", color=INK, pad=22, parse_math=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(colors=FAINT, length=0, labelsize=9)
    longest = max((each.nbytes for each in checkpoints), default=0)
    unit, name = unit_of(longest)
    _draw_bars(axes, checkpoints, unit)
    _name_regions(axes, checkpoints, unit)
    _name_rows(axes, checkpoints)
    axes.set_xlim(0.0, max(longest, 1) / unit)
    axes.set_ylim(max(rows, 1), 0.0)
    axes.set_xlabel(f"position in the checkpoint, {name}", color=FAINT, fontsize=9)
    axes.set_ylabel("checkpoint", color=FAINT, fontsize=9)
    _legend(figure, checkpoints, 0.1 / height)
    return figure


def _draw_bars(axes: Axes, checkpoints: Sequence[CheckpointOrigins], unit: float) -> None:
    """A bar has a gap below it, and a line where a region ends."""
    from matplotlib.collections import PolyCollection

    colours = colours_of(objects_of(checkpoints))
    corners: list[tuple[tuple[float, float], ...]] = []
    faces: list[str] = []
    fresh: list[tuple[tuple[float, float], ...]] = []
    borders: list[tuple[float, float, float]] = []
    for row, checkpoint in enumerate(checkpoints):
        last, low, high = len(checkpoint.origins) - 1, row + 0.08, row + 0.92
        for start, stop, origin, new in checkpoint.spans():
            left, right = start / unit, stop / unit
            if origin != last:
                corners.append(((left, low), (left, high), (right, high), (right, low)))
                faces.append(colours[checkpoint.identity(origin)])
            if new:
                top = low if origin == last else row + 0.5
                fresh.append(((left, top), (left, high), (right, high), (right, top)))
        begin = 0
        for region in checkpoint.regions[:-1]:
            begin += region.nbytes
            borders.append((begin / unit, low, high))
    axes.add_collection(PolyCollection(corners, facecolors=faces, edgecolors="none", antialiaseds=False))
    # An edge shows also what is narrower than a pixel.
    axes.add_collection(PolyCollection(fresh, facecolors=OWN_COLOUR, edgecolors=OWN_COLOUR, linewidths=0.5))
    if borders:
        places, lows, highs = zip(*borders, strict=True)
        axes.vlines(places, lows, highs, color="white", linewidth=1.2)


def _name_regions(axes: Axes, checkpoints: Sequence[CheckpointOrigins], unit: float) -> None:
    """Names above the bars, where these are the same for all checkpoints and there is room for them."""
    layouts = {tuple((each.name, each.nbytes) for each in checkpoint.regions) for checkpoint in checkpoints}
    regions = layouts.pop() if len(layouts) == 1 else ()
    whole, begin = max(sum(nbytes for _, nbytes in regions), 1), 0
    if len(regions) > REGIONS:
        return
    for name, nbytes in regions:
        words = f"{name:.{LETTERS}}" if isinstance(name, str) and name.isprintable() else f"{name!r:.{LETTERS}}"
        if nbytes / whole > 0.012 * len(words):
            axes.annotate(
                words, ((begin + nbytes / 2) / unit, 0.0), xytext=(0, 5), textcoords="offset points", ha="center",
                fontsize=9, color=INK, parse_math=False,
            )  # fmt: skip
        begin += nbytes


def _name_rows(axes: Axes, checkpoints: Sequence[CheckpointOrigins]) -> None:
    """The keys on the left, and what each checkpoint takes on the right."""
    count = len(checkpoints)
    rows = range(0, count, -(-count // NAMED) or 1)
    named = [checkpoints[row] for row in rows]
    axes.set_yticks([row + 0.5 for row in rows])
    axes.set_yticklabels([f"{each.key!r:.{LETTERS}}" for each in named], parse_math=False)
    for row, each in zip(rows, named, strict=True):
        axes.annotate(
            sized(each.stored_nbytes), (1.0, row + 0.5), xycoords=("axes fraction", "data"), xytext=(6, 0),
            textcoords="offset points", va="center", fontsize=9, color=INK,
        )  # fmt: skip
    if named:
        axes.annotate(
            "takes on disk", (1.0, 0.0), xycoords=("axes fraction", "data"), xytext=(6, 5),
            textcoords="offset points", fontsize=9, color=FAINT,
        )  # fmt: skip


def _legend(figure: Figure, checkpoints: Sequence[CheckpointOrigins], bottom: float) -> None:
    from matplotlib.patches import Patch

    objects = objects_of(checkpoints)
    colours = colours_of(objects)
    entries: list[Any] = [Patch(color=OWN_COLOUR, label="new in the checkpoint")]
    entries += [Patch(color=colours[each], label=_source(each, objects[each])) for each in some(others(checkpoints))]
    legend = figure.legend(
        handles=entries, loc="lower left", bbox_to_anchor=(0.09, bottom), ncols=len(entries), frameon=False,
        fontsize=9, labelcolor=INK, handlelength=1.2, columnspacing=1.3,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)


def others(checkpoints: Sequence[CheckpointOrigins]) -> list[Identity]:
    """The objects that have bytes of another checkpoint than the one that wrote them, from the earliest on."""
    used = {
        checkpoint.identity(place)
        for checkpoint in checkpoints
        for place, origin in enumerate(checkpoint.origins[:-1])
        if origin.nbytes
    }
    return [each for each in objects_of(checkpoints) if each in used]


def some(objects: list[Identity]) -> list[Identity]:
    """Some of the objects, at even distances, with the first and the last one.

    Examples
    --------
    >>> from velocpy.plot.lineage import some
    >>> [number for _, number in some([("x", number) for number in range(26)])]
    [0, 5, 10, 15, 20, 25]
    """
    if len(objects) <= OBJECTS:
        return objects
    return [objects[place * (len(objects) - 1) // (OBJECTS - 1)] for place in range(OBJECTS)]


def _source(identity: Identity, key: int | str | None) -> str:
    return f"dropped, number {identity[1]}" if key is None else f"from {key!r:.12}"
