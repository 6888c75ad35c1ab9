"""``python -m benchmarks.report.plots RESULTS``: results as pictures, of shot and coldstart like the papers'."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from velocpy.extra import MissingExtra

LEAST = 1e-3  # seconds; less is noise
Rows = list[dict[str, Any]]


def draw(folder: Path) -> list[Path]:
    """Draws every result in the folder that has a figure, beside it; returns the pictures."""
    try:
        plt = importlib.import_module("matplotlib.pyplot")
        matplotlib = importlib.import_module("matplotlib")
    except ImportError as error:
        raise MissingExtra("matplotlib", "demo", "drawing results") from error
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "velocpy"  # the same picture of the same numbers
    pictures: list[Path] = []
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        name = str(result["benchmark"])
        if not result["rows"]:
            continue
        if name.startswith("shot"):
            pictures += _shot(plt, path, result["rows"])
        elif name.startswith("coldstart"):
            pictures += _coldstart(plt, path, result["rows"])
        elif name == "durable":
            pictures.append(_durable(plt, path, result["rows"]))
    return pictures


def _shot(plt: Any, path: Path, rows: Rows) -> list[Path]:
    pictures = [_throughput(plt, path, rows)]
    traced = [row for row in rows if row.get("distances") and row["who"] == "velocpy"]
    if traced:
        pictures.append(_distance(plt, path, traced))
    return pictures


def _throughput(plt: Any, path: Path, rows: Rows) -> Path:
    """Bytes by blocked time, writing and reading, as figures 5, 6 and 8 of Maurya et al., HPDC'23, show them."""
    figure, axes = plt.subplots(2, 1, figsize=(max(6.0, 1.1 * len(categories(rows))), 7), sharex=True)
    for axis, phase in zip(axes, ("writing s", "reading s"), strict=True):
        _bars(axis, rows, lambda row, phase=phase: row["about"][0]["bytes"] / max(row[phase], LEAST) / 1e9)
        axis.set_ylabel(f"{phase.split()[0]}, GB/s of blocked time")
    axes[0].legend(fontsize="small", ncols=3)
    return _saved(plt, figure, path.with_suffix(".svg"))


def _distance(plt: Any, path: Path, rows: Rows) -> Path:
    """How many of the next restores were ready at each restore, as figure 7 of Maurya et al., HPDC'23."""
    figure, axis = plt.subplots(figsize=(7, 4))
    for row in rows:
        about = row["about"][0]
        axis.plot(row["distances"][0], label=f"{about['order']}, hints {about['hints']}", linewidth=1)
    axis.set_xlabel("restore")
    axis.set_ylabel("checkpoints ready ahead")
    axis.legend(fontsize="small")
    return _saved(plt, figure, path.with_suffix(".distance.svg"))


def _coldstart(plt: Any, path: Path, rows: Rows) -> list[Path]:
    """Blocked seconds of the first checkpoints, as figures 3 to 6 of Maurya et al., HiPC'22."""
    figure, axis = plt.subplots(figsize=(max(6.0, 1.3 * len(categories(rows))), 4))
    _bars(axis, rows, lambda row: max(row["blocked s"], LEAST))
    axis.set_ylabel("blocked, s")
    axis.legend(fontsize="small", ncols=2)
    return [_saved(plt, figure, path.with_suffix(".svg"))]


def _durable(plt: Any, path: Path, rows: Rows) -> Path:
    """What everybody makes durable in a second."""
    figure, axis = plt.subplots(figsize=(max(7.0, 3.5 * len(categories(rows))), 5))
    _bars(axis, rows, lambda row: row["GB/s"])
    axis.set_ylabel("durable, GB/s")
    axis.legend(fontsize="small", ncols=2)
    return _saved(plt, figure, path.with_suffix(".svg"))


def _bars(axis: Any, rows: Rows, height: Any) -> None:
    """Groups of bars on a logarithmic axis: one group for each cell, one colour for each contender."""
    groups = categories(rows)
    contenders = list(dict.fromkeys(row["who"] for row in rows))
    width = 0.8 / len(contenders)
    for number, who in enumerate(contenders):
        values = {label: height(row) for label, row in zip(_labels(rows), rows, strict=True) if row["who"] == who}
        places = [place for place, label in enumerate(groups) if label in values]
        at = [place + (number - (len(contenders) - 1) / 2) * width for place in places]
        axis.bar(at, [values[groups[place]] for place in places], width, label=who)
    axis.set_yscale("log")
    axis.set_xticks(range(len(groups)), groups, fontsize="small")


def categories(rows: Rows) -> list[str]:
    """The cells by what distinguishes them from each other, in the order of the rows."""
    return list(dict.fromkeys(_labels(rows)))


def _labels(rows: Rows) -> list[str]:
    abouts: list[Mapping[str, Any]] = [row["about"][0] for row in rows]
    differing = [key for key in abouts[0] if _several(about.get(key) for about in abouts) and key != "bytes"]
    return ["\n".join(_said(key, about[key]) for key in differing) or "all" for about in abouts]


def _several(values: Iterable[Any]) -> bool:
    return len(set(values)) > 1


def _said(key: str, value: Any) -> str:
    if key in ("device", "host", "disk"):
        return f"{key} {value / (1 << 30):.3g} GiB"
    if isinstance(value, bool):
        return key if value else f"not {key}"
    if key == "interval ms":
        return f"{value:g} ms"
    return f"hints {value}" if key == "hints" else str(value) if isinstance(value, str) else f"{value} {key}"


def _saved(plt: Any, figure: Any, path: Path) -> Path:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Draw the results in FOLDER, as SVG beside them."""
    for picture in draw(folder):
        click.echo(picture)


if __name__ == "__main__":
    main()
