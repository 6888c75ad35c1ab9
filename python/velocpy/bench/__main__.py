"""``velocpy bench``: what can be measured on a user's machine, by name."""

from __future__ import annotations

import inspect
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from velocpy.budget import parse_size
from velocpy.cli.output import colour, examples, json_option, message
from velocpy.cli.terms import in_terms_of_commands

from . import disk, link, machine, memory
from .report import Report

BENCHMARKS: dict[str, Callable[..., Report]] = {"memory": memory.run, "disk": disk.run, "link": link.run}

#: Enough to see whether it runs and gives bytes back; too little for figures.
QUICK: dict[str, dict[str, Any]] = {
    "memory": {"size": 256 << 10, "ring": 1 << 20, "rounds": 1},
    "disk": {"size": 4 << 20, "total": 16 << 20, "rounds": 1},
    "link": {"size": 256 << 10, "rounds": 1},
}

#: Names that ``velocpy bench`` had until its evaluation moved to the checkout.
MOVED = frozenset(
    (
        *("capture", "coldstart", "commits", "decision", "device", "durable", "lease", "opening", "scale", "shot"),
        *("small", "storages", "sweep", "verification"),
    )
)

EXAMPLES = ("velocpy bench", "velocpy bench disk --folder /scratch/run --json", "velocpy bench --quick")


class _Measurement(click.Command):
    """A command that remembers its arguments as they were given, for the results."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["velocpy.arguments"] = list(args)
        return super().parse_args(ctx, args)


def _known(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, if all of them are benchmarks of this command."""
    for name in names:
        if name in MOVED:
            raise click.BadParameter(f"'{name}' is measured by `python -m benchmarks {name}` from a checkout")
        if name not in BENCHMARKS:
            raise click.BadParameter(f"'{name}' is none of {', '.join(BENCHMARKS)}")
    return names


def _size(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    try:
        return None if text is None else parse_size(text, param.name or "size")
    except ValueError as error:
        raise click.BadParameter(in_terms_of_commands(str(error))) from None


def _moved(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.BadParameter("these options belong to `python -m benchmarks` from a checkout")


@click.command(
    cls=_Measurement,
    epilog=f"NAMES: {', '.join(BENCHMARKS)}.\n\n{examples(*EXAMPLES)}",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("names", nargs=-1, metavar="[NAMES]...", callback=_known)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="A directory on the disk that is measured; default: that of temporary files.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Write one JSON file for each benchmark here."
)
@click.option("--quick", is_flag=True, help="Tiny sizes, one round: tells whether it runs, not how fast.")
@click.option("--rounds", type=click.IntRange(min=1), help="How often everything is measured; the medians are shown.")
@click.option(
    "--total", callback=_size, metavar="SIZE", help="How much disk writes.  [default: by the rate of the disk]"
)
@click.option("--cells", "--count", "--limit", "--streams", "moved", hidden=True, expose_value=False, callback=_moved)
@json_option
def main(
    names: tuple[str, ...], folder: Path | None, out: Path | None, quick: bool, as_json: bool, **options: Any
) -> None:
    """Measure memory, disk and GPU link, by plain copies and by velocpy in turns.

    Bytes that come back are compared. It takes less than two minutes.
    """
    asked = {name: value for name, value in options.items() if value is not None}
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    for name in names or [name for name in BENCHMARKS if name != "link" or link.available()]:
        report = _run(name, folder, quick, asked)
        facts = machine.describe(
            shlex.join(["velocpy", "bench", *click.get_current_context().meta["velocpy.arguments"]])
        )
        if as_json:
            click.echo(message("benchmark", report.facts(facts)))
        else:
            report.show()
        if out is not None:
            click.echo(f"  written: {report.save(out, facts)}", err=as_json)
    if not names and not as_json and not link.available():
        click.echo("\nlink: left out; PyTorch finds no GPU here.")


def _run(name: str, folder: Path | None, quick: bool, asked: dict[str, Any]) -> Report:
    if name == "link" and not link.available():
        raise click.ClickException("link needs PyTorch, and a GPU that it finds")
    run = BENCHMARKS[name]
    known = inspect.signature(run).parameters
    settings = (QUICK[name] if quick else {}) | {option: value for option, value in asked.items() if option in known}
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        report = run(**settings, **({"folder": Path(scratch)} if "folder" in known else {}))
    if quick:
        report.only_tried()
    return report


if __name__ == "__main__":
    main(prog_name="velocpy bench", color=colour())
