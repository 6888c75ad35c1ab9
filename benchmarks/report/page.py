"""``python -m benchmarks.report.page RESULTS DOCS``: the results as two pages, so that no figure is copied by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from .claims import ROUNDS, judge, missed, table

METHOD = f"""
Claims that are missed come first. A figure is the median of all runs of a bar, and that of a run the median of its
rounds. Where a claim has several bars, the table shows the least and the most of their figures. If one has fewer than
{ROUNDS} rounds, all runs together, their number is told. Of bytes that differ, and of checkpoints that are missing, the
most of any run counts. Without a peer and a ceiling the bar is a fixed number. What begins with *simulated* was played
on a virtual clock, and not measured.

`python -m benchmarks NAME --out benchmarks/results`, from a checkout, measures anew. Every benchmark runs its baselines
in turns with velocpy in the same process, and compares the bytes that come back. Machines are shared and noisy.
`make generate` writes this page and [its tables](results-tables.md) from the files in `benchmarks/results`, which hold
the raw numbers. [gpu-benchmarks.md](gpu-benchmarks.md) says how shots are measured, and more on the bars that are
missed.
"""

TABLES = """# Tables of the results

One section for each file in `benchmarks/results`; [results.md](results.md) sums them up. Names that end in a number are
runs of the same benchmark. Commands and commits are those of the run; what was `python -m velocpy.bench` is
`python -m benchmarks` now. Papers: "seed 000" is Maurya et al., HPDC'23. Sizes are in KiB, MiB and GiB, rates in GB/s
of 10^9 bytes a second.

"""

#: Results of one kind begin with the same name; the page shows the first picture of each.
PICTURES = {
    "shot-link": "Shots that fit device and host memory: bytes by blocked time, writing and reading",
    "shot-disk": "Shots that need the disk: bytes by blocked time, writing and reading",
    "shot-paper": "The setting of Maurya et al., HPDC'23: bytes by blocked time, writing and reading",
    "coldstart": "The first checkpoints of a process: blocked seconds",
    "durable": "Durable checkpoints: rates of velocpy, of the disk itself, and of other libraries",
}


def page(folder: Path) -> str:
    """The results in one page: claims, pictures, and why bars are missed."""
    judged = judge(_results(folder).values())
    lines = ["# Measured results", "", *table(judged), METHOD, "## Missed, and why", "", *missed(judged), ""]
    for kind, caption in PICTURES.items():
        picture = next(iter(sorted(folder.glob(f"{kind}*.svg"))), None)
        if picture is not None:
            lines += [f"## {caption}", "", _shown(picture), ""]
    return "\n".join(lines).rstrip() + "\n"


def tables(folder: Path) -> str:
    """All rows, bars, notes and pictures of the results in a folder."""
    sections = []
    for path, result in _results(folder).items():
        # Those of benchmarks.report.plots: NAME.svg, and NAME.WHAT.svg for what else there is to see.
        pictures = sorted((*folder.glob(f"{path.stem}.svg"), *folder.glob(f"{path.stem}.*.svg")))
        sections.append(_section(path.stem, result, pictures))
    return TABLES + "\n".join(sections)


def _results(folder: Path) -> dict[Path, dict[str, Any]]:
    return {path: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def _shown(picture: Path) -> str:
    return f"![{picture.stem}](../benchmarks/results/{picture.name})"


def _section(name: str, result: dict[str, Any], pictures: list[Path]) -> str:
    machine = result["machine"]
    lines = [
        f"## {name}",
        "",
        f"`{machine['command']}`, {machine['date']}, commit {machine['commit'] or 'unknown'}; "
        f"{machine['cores']} × {machine['cpu']}, {machine['memory_gib']} GiB, Linux {machine['kernel']}, "
        f"Python {machine['python']}, NumPy {machine['numpy']}, {machine['go']}; load before: {machine['load'][0]}.",
        "",
        ", ".join(f"{name} {value}" for name, value in result["settings"].items()) + ".",
        "",
    ]
    lines += _rows(result["rows"])
    if result["bars"]:
        lines += ["", "| bar | measured | bound | |", "| --- | ---: | ---: | --- |"]
        for bar in result["bars"]:
            sign = "≥" if bar["at_least"] else "≤"
            verdict = "holds" if bar["holds"] else "**misses**"
            lines.append(f"| {bar['what']} | {bar['value']:.4g} | {sign} {bar['bound']:.4g} | {verdict} |")
    lines += [""] + [f"{note}" for note in result["notes"]]
    for picture in pictures:
        lines += ["", _shown(picture)]
    return "\n".join(lines).rstrip() + "\n"


def _rows(rows: list[dict[str, Any]]) -> list[str]:
    columns = list(dict.fromkeys(key for row in rows for key in row if not isinstance(row[key], list)))
    lines = ["| " + " | ".join(columns) + " |", "|" + " ---: |" * len(columns)]
    return lines + ["| " + " | ".join(_cell(row.get(column, "")) for column in columns) + " |" for row in rows]


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("docs", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path, docs: Path) -> None:
    """Write results.md and results-tables.md of the results in FOLDER into DOCS."""
    texts = {"results.md": page(folder), "results-tables.md": tables(folder)}  # both, before either is written
    for name, text in texts.items():
        (docs / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
