"""The form of a result: rows, and the bars that they are held to."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click


@dataclasses.dataclass
class Bar:
    """One promise: a measured value and its bound."""

    what: str
    value: float
    bound: float
    at_least: bool  # the value has to reach the bound; otherwise it must not exceed it
    measured: bool = True  # a figure, for which much has to be done; otherwise whether something is right

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound


@dataclasses.dataclass
class Report:
    """What one benchmark found."""

    name: str
    settings: dict[str, Any]
    rows: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    bars: list[Bar] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    #: Names of the settings that were measured, and the notes that say what was not played: see `measure`, `remark`.
    measured: set[str] = dataclasses.field(default_factory=set)
    remarks: list[str] = dataclasses.field(default_factory=list)

    def measure(self, figures: dict[str, Any]) -> None:
        """Adds figures that this run has measured, such as ceilings, to the settings."""
        self.settings |= figures
        self.measured |= figures.keys()

    def remark(self, *texts: str) -> None:
        """Adds notes on what was not played, and why, which are worth telling of a quick run too."""
        self.notes += texts
        self.remarks += texts

    def bar(self, what: str, value: float, bound: float, *, at_least: bool) -> None:
        """Adds a promise of a figure."""
        self.bars.append(Bar(what, value, bound, at_least))

    def never(self, what: str, found: int) -> None:
        """Adds the promise that something does not happen, with how often it has."""
        self.bars.append(Bar(what, found, 0, at_least=False, measured=False))

    def drop_measured(self) -> None:
        """Takes back the promises of figures: this machine lacks what they are about."""
        self.bars = [bar for bar in self.bars if not bar.measured]

    def only_tried(self) -> None:
        """Takes back all figures: too little was done for one to mean anything."""
        self.drop_measured()
        self.settings = {name: value for name, value in self.settings.items() if name not in self.measured}
        self.rows = []
        self.notes = [
            *self.remarks,
            "it runs, and gives back what it was given; --quick measures too little for figures.",
        ]

    def show(self) -> None:
        """Prints the report to standard output."""
        click.secho(f"\n{self.name}", bold=True)
        click.echo("  " + ", ".join(f"{k} {v}" for k, v in self.settings.items()))
        if self.rows:
            for line in _table(self.rows):
                click.echo("  " + line)
        for b in self.bars:
            sign = "≥" if b.at_least else "≤"
            verdict = click.style("holds", fg="green") if b.holds else click.style("misses", fg="red")
            click.echo(f"  {verdict}: {b.what}: {b.value:.4g} (bar {sign} {b.bound:g})")
        for note in self.notes:
            click.echo(f"  note: {note}")

    def facts(self, machine: dict[str, Any]) -> dict[str, Any]:
        """The report, and the machine that it was made on, as JSON-able values."""
        return {
            "benchmark": self.name,
            "machine": machine,
            "settings": self.settings,
            "bars": [dataclasses.asdict(b) | {"holds": b.holds} for b in self.bars],
            "rows": self.rows,
            "notes": self.notes,
        }

    def save(self, folder: Path, machine: dict[str, Any]) -> Path:
        """Writes the report as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(self.facts(machine), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path


def _table(rows: list[dict[str, Any]]) -> list[str]:
    columns = list(dict.fromkeys(key for row in rows for key in row if not isinstance(row[key], list)))
    cells = [columns] + [[_cell(row.get(c, "")) for c in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    return ["  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in cells]


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
