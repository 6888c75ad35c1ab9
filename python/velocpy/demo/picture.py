"""The migrated image beside the earth it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from velocpy.extra import MissingExtra
from velocpy.plot.timeline import FAINT, INK

from .backend import Field
from .survey import Survey

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The share of the depth, from the top, where an image shows the sources more than the earth: it fades in over it.
FADED = 0.2


def reflectivity(cross: Field, light: Field) -> Field:
    """What the image says about reflectors: lit evenly, freed of its smooth part, and balanced along depth."""
    even = cross.astype(np.float64) / (light + 2e-3 * light.max())
    padded = np.pad(even, 1, mode="edge")
    inner = tuple(slice(1, -1) for _ in even.shape)
    sharp = 2.0 * even.ndim * even
    for axis in range(even.ndim):
        for by in (-1, 1):
            sharp -= np.roll(padded, by, axis)[inner]
    loudness = np.sqrt((sharp**2).mean(axis=tuple(range(1, sharp.ndim)), keepdims=True))
    rows = np.linspace(0.0, 1.0 / FADED, even.shape[0]).reshape(loudness.shape)
    fading = np.sin(0.5 * np.pi * np.minimum(rows, 1.0)) ** 4
    return np.asarray(fading * sharp / (_smooth_along_depth(loudness) + 1e-30), dtype=np.float32)


def _smooth_along_depth(loudness: Any) -> Any:
    width = max(3, loudness.shape[0] // 6)
    padded = np.pad(loudness.reshape(-1), width, mode="edge")
    window = np.hanning(2 * width + 1)
    return np.convolve(padded, window / window.sum(), mode="valid").reshape(loudness.shape)


def draw_image(survey: Survey, cross: Field, light: Field, title: str = "", subtitle: str = "") -> Figure:
    """Draws the true earth, the smooth model that the migration was given, and the image.

    In three dimensions the two upright slices through the lens and a level one are shown.

    Raises
    ------
    MissingExtra
        Without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "demo", "a picture of the image") from None

    earth, image = survey.earth, reflectivity(cross, light)
    columns = ("The true earth", earth.speed), ("What the migration is given", earth.smooth), ("The image", image)
    cuts = _cuts(earth.shape)
    heights = [earth.speed[cut].shape[0] / earth.speed[cut].shape[1] for cut, _, _ in cuts]
    body = sum(heights) * 4.4 + 0.75 * (len(cuts) - 1)
    figure = Figure(figsize=(15.6, body + 2.0), facecolor="white")
    grid = figure.subplots(len(cuts), 3, squeeze=False, height_ratios=heights)
    figure.subplots_adjust(
        left=0.05, right=0.985, bottom=0.6 / (body + 2.0), top=1.0 - 1.35 / (body + 2.0), wspace=0.14, hspace=0.2
    )
    for row, (cut, down, across) in enumerate(cuts):
        for axes, (heading, field) in zip(grid[row], columns, strict=True):
            _draw_cut(axes, survey, field[cut], field is image)
            axes.set_ylabel(down, color=FAINT)
            axes.set_xlabel(across, color=FAINT)
            if row == 0:
                axes.set_title(heading, loc="left", fontsize=11.5, fontweight="bold", color=INK, pad=8)
    for axes in grid[0][:2]:
        _draw_places(axes, survey)
    figure.text(0.05, 1.0 - 0.42 / (body + 2.0), title, fontsize=17, fontweight="bold", color=INK)
    figure.text(0.05, 1.0 - 0.74 / (body + 2.0), subtitle, fontsize=10.5, color=FAINT)
    return figure


def _cuts(shape: tuple[int, ...]) -> list[tuple[Any, str, str]]:
    """Slices to show, with the names of their axes."""
    if len(shape) == 2:
        return [((slice(None), slice(None)), "depth, km", "distance, km")]
    middle = [n // 2 for n in shape]
    return [
        ((slice(None), slice(None), middle[2]), "depth, km", "x, km"),
        ((slice(None), middle[1], slice(None)), "depth, km", "y, km"),
        ((middle[0], slice(None), slice(None)), "x, km", "y, km"),
    ]


def _draw_cut(axes: Axes, survey: Survey, field: Field, is_image: bool) -> None:
    down, across = (n * survey.earth.spacing / 1000.0 for n in field.shape)
    if is_image:
        limit = float(np.percentile(np.abs(field), 99.0)) or 1.0
        style: dict[str, Any] = {"cmap": "gray", "vmin": -limit, "vmax": limit}
    else:
        speed = survey.earth.speed
        style = {"cmap": "YlGnBu", "vmin": 0.85 * float(speed.min()), "vmax": 1.05 * float(speed.max())}
    axes.imshow(field, extent=(0.0, across, down, 0.0), interpolation="bilinear", aspect="equal", **style)
    axes.tick_params(colors=FAINT, length=0, labelsize=9)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_places(axes: Axes, survey: Survey) -> None:
    """Sources as stars, receivers as a line."""
    scale = survey.earth.spacing / 1000.0
    depth = survey.sources[0][0] * scale
    axes.plot([0.0, survey.earth.shape[1] * scale], [depth, depth], color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.scatter(
        [source[1] * scale for source in survey.sources], [depth] * len(survey.sources), marker="*", s=110,
        color="#f28e2b", edgecolors=INK, linewidths=0.6, zorder=5, clip_on=False,
    )  # fmt: skip
