"""The command ``velocpy``.

What a command finds goes to standard output, as text for people or, with ``--json``, as one JSON document; progress,
warnings and errors go to standard error.

Exit codes:

===  =====================================================================
0    done, and what was to be shown holds
1    the command ran, and what it was to show does not hold
2    the command line is wrong
3    something that the command needs is not installed; the message says how
4    the store failed: the message names tier, cause and remedy
130  interrupted
===  =====================================================================
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from velocpy._version import __version__

from .extra import MissingExtra, MissingLibrary

NOT_PROVEN, NOT_INSTALLED, STORE_FAILED, INTERRUPTED = 1, 3, 4, 130


class Commands(click.Group):
    """Turns what may go wrong in any command into one line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command that was asked for."""
        from .errors import CoreUnavailable, VelocError

        try:
            return super().invoke(ctx)
        except (MissingLibrary, CoreUnavailable) as error:
            stop(str(error), NOT_INSTALLED)
        except VelocError as error:
            stop(str(error), STORE_FAILED)
        except KeyboardInterrupt:
            stop("interrupted", INTERRUPTED)


def stop(message: str, code: int) -> None:
    """Ends the command with one message on standard error."""
    click.echo(f"velocpy: {message}", err=True)
    sys.exit(code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="velocpy")
def main() -> None:
    """Keep the history of a computation, and bring it back in the order in which it will be needed."""


@main.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def info(as_json: bool) -> None:
    """Say what this installation is made of."""
    import velocpy

    facts = velocpy.build_info()
    if as_json:
        click.echo(json.dumps(facts, indent=2, sort_keys=True))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        text = json.dumps(value) if isinstance(value, dict | list) else value
        click.echo(f"{name:<{width}}  {text}")


@main.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("--device", type=click.IntRange(min=0), metavar="N", help="One GPU.  [default: all that are visible]")
@click.option("--no-rates", is_flag=True, help="Measure no copies: for a GPU that is at work.")
def doctor(as_json: bool, device: int | None, no_rates: bool) -> None:
    """Look at what stores find on this machine, above all for GPUs.

    Driver, devices, links, kernels, limits, huge pages and the rates of copies, each with a verdict (ok, warning,
    failed, not there) and with what helps. It takes a second or two for each GPU.

    Exits with 0 when nothing failed: warnings, and a machine without a GPU, are no failure. Exits with 1 when something
    failed, and when a GPU asked for by --device cannot be used.
    """
    from .doctor import examine, lines

    report = examine(device, rates=not no_rates)
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        click.echo("\n".join(lines(report, width)))
    if report["verdict"] == "failed":
        sys.exit(NOT_PROVEN)


@main.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """Measure velocpy beside its peers; "velocpy bench --help" says what."""
    try:
        from .bench.__main__ import main as measure
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "a module", "bench", "velocpy bench") from None
    measure.main(list(arguments), prog_name="velocpy bench")


@main.command()
@click.option("--dim", type=click.Choice(["2", "3"]), default="2", show_default=True, help="Dimensions of the earth.")
@click.option(
    "--backend",
    type=click.Choice(["numpy", "torch", "cupy"]),
    help="What computes.  [default: numpy; on a CUDA device torch]",
)
@click.option("--device", metavar="cpu|cuda|cuda:N", default="cpu", show_default=True, help="The device that computes.")
@click.option("--steps", type=click.IntRange(min=8), help="Time steps per shot.  [default: down and back up]")
@click.option(
    "--size", metavar="N[xN[xN]]", help="Cells of the earth, depth first.  [default: 216x336; 60x72x72; more on cuda]"
)
@click.option("--shots", type=click.IntRange(min=1), help="Shots.  [default: 3; in 3-D 1]")
@click.option("--order", type=click.Choice(["4", "8"]), default="8", show_default=True, help="Accuracy in space.")
@click.option(
    "--host-fraction",
    type=click.FloatRange(min=0.0, min_open=True, max=2.0),
    help="Memory budget, as a fraction of one shot's history; the rest goes to disk.  [default: 0.125; below cuda 0.5]",
)
@click.option(
    "--device-fraction",
    type=click.FloatRange(min=0.0, min_open=True, max=2.0),
    help="Budget of the CUDA device's memory, likewise.  [default: 0.125]",
)
@click.option("--pointers", is_flag=True, help="Give velocpy raw device pointers and a stream instead of arrays.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo-out"),
    show_default=True,
    help="Folder for the pictures.",
)
@click.option(
    "--folder",
    "--path",
    "path",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the disk tier's private files.  [default: the system's for temporary files]",
)
@click.option("--quiet", is_flag=True, help="Only errors, and the document of --json.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of tables.")
def demo(dim: str, order: str, size: str | None, out: Path, quiet: bool, as_json: bool, **options: Any) -> None:
    """Migrate seismic shots whose wavefields do not fit the memory budget.

    Runs a reverse time migration twice, once with every wavefield in memory and once through velocpy with a fraction of
    that memory, compares the images bit by bit, and draws the image and a timeline. Exits with 1 when they differ.

    With --device cuda both runs are the GPU's: the one keeps every wavefield in its memory, the other lets velocpy move
    them between device, host and disk.
    """
    from .demo.command import show
    from .demo.settings import Settings, shape_of

    try:
        settings = Settings(dim=int(dim), order=int(order), size=shape_of(size, int(dim)) if size else None, **options)
        settings.check()
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    make_folder(out, "--out")
    if options["path"] is not None:
        make_folder(options["path"], "--folder")
    if not show(settings, out, quiet=quiet, as_json=as_json):
        sys.exit(NOT_PROVEN)


def make_folder(folder: Path, option: str) -> None:
    """Makes the folder that an option names, or refuses before anything is computed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{folder} cannot be made: {error.strerror}", param_hint=option) from None
    if not os.access(folder, os.W_OK):
        raise click.BadParameter(f"{folder} cannot be written to", param_hint=option)
