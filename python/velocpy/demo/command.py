"""The demo as a command: a progress bar, pictures, and what came out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

import velocpy
from velocpy.cli.output import message
from velocpy.extra import MissingExtra
from velocpy.plot.timeline import draw_timeline
from velocpy.quantity import sized
from velocpy.trace import write_trace

from .migration import Ticker
from .picture import draw_image
from .report import facts, memory, tables, verdict
from .run import Outcome, run, unwatched
from .settings import Settings

if TYPE_CHECKING:
    from rich.console import Console

#: Steps between two movements of the progress bar.
TICKS = 16


def show(settings: Settings, out: Path, quiet: bool, as_json: bool) -> bool:
    """Runs the demo, writes pictures and a trace into ``out``, and reports; whether the image was proven right.

    A library that is missing is missed before anything is computed.
    """
    paper, screen = _consoles()
    velocpy.build_info()
    outcome = run(settings, unwatched if quiet else partial(_stage, screen))
    pictures = _draw(outcome, out)
    trace = out / "trace.json.gz"
    write_trace(outcome.events, trace)
    if as_json:
        click.echo(message("demo", facts(outcome, pictures) | {"trace": str(trace)}))
    elif not quiet:
        for table in tables(outcome):
            paper.print(table)
        for name, path in (*pictures.items(), ("trace", str(trace))):
            paper.print(f"{name:<9} [cyan]{escape(path)}[/cyan]", soft_wrap=True)
        paper.print(f"SHA-256   {outcome.digest}", soft_wrap=True)
        paper.print(verdict(outcome))
    return outcome.proven


def _consoles() -> tuple[Console, Console]:
    """Standard output and standard error."""
    try:
        import matplotlib  # noqa: F401
        from rich.console import Console
    except ImportError as error:
        raise MissingExtra(error.name or "rich", "demo", "velocpy demo") from None
    return Console(highlight=False), Console(stderr=True)


@contextmanager
def _stage(console: Console, name: str, steps: int) -> Iterator[Ticker]:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<26}"),
        BarColumn(bar_width=40),
        TaskProgressColumn(),
        TextColumn("{task.completed:>6.0f} steps"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(name, total=steps)
        pending = 0

        def tick(done: int) -> None:
            nonlocal pending
            pending += done
            if pending >= TICKS:
                progress.advance(task, pending)
                pending = 0

        yield tick
        progress.advance(task, pending)


def escape(text: str) -> str:
    """Text that rich prints as it is."""
    from rich.markup import escape

    return escape(text)


def _draw(outcome: Outcome, out: Path) -> dict[str, str]:
    """Writes both pictures; gives their paths by name."""
    survey = outcome.survey
    shots = len(survey.sources)
    words = (
        f"{shots} {'shot' if shots == 1 else 'shots'} of {survey.steps} steps · {sized(survey.history_bytes)} of "
        f"wavefields per shot through {memory(outcome.budgets)}"
    )
    ending = " · equal to the last bit" if outcome.proven else " · NOT EQUAL"
    to_numpy = outcome.backend.numpy
    figures = {
        "image": draw_image(
            survey,
            to_numpy(outcome.image.cross),
            to_numpy(outcome.image.light),
            "Reverse time migration",
            words + ending,
        ),
        "timeline": draw_timeline(outcome.events, outcome.budgets, "What velocpy did during the migration", words),
    }
    paths = {name: out / f"{name}.png" for name in figures}
    for name, figure in figures.items():
        figure.savefig(paths[name], dpi=120)
    return {name: str(path) for name, path in paths.items()}
