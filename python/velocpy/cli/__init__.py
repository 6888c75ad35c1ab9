"""The command ``velocpy``.

What a command finds goes to standard output, as text for people or, with ``--json``, as JSON messages; progress,
warnings and errors go to standard error. Exit codes are in `velocpy.cli.exits`; docs/command-line.md has the rest.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, get_args

import click

from velocpy._version import __version__
from velocpy.choices import Reduction
from velocpy.extra import MissingLibrary

from .archive_commands import pull, push
from .dcp_commands import dcp
from .diff_command import diff
from .exits import Exit, code_of
from .output import colour, examples, json_option, message
from .store_commands import COMMANDS
from .top_command import top


class Commands(click.Group):
    """Turns what may go wrong in any command into one line and an exit code."""

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        """The context in which all commands run."""
        return super().make_context(*arguments, **{"color": colour()} | extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command that was asked for."""
        from velocpy.errors import VelocError

        from .terms import in_terms_of_commands

        try:
            return super().invoke(ctx)
        except (MissingLibrary, VelocError) as error:
            stop(in_terms_of_commands(str(error)), failure_of(ctx, error))
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of the pipe has ended: there is nothing to tell it
                raise
            stop(str(error), failure_of(ctx, error))
        except (KeyboardInterrupt, click.Abort):
            stop("interrupted", Exit.INTERRUPTED)


def failure_of(ctx: click.Context, error: BaseException) -> Exit:
    """The code with which a command fails. That of a difference means nothing else, as with diff(1)."""
    code = code_of(error)
    return Exit.USAGE if code is Exit.FAILED and ctx.invoked_subcommand == diff.name else code


def stop(text: str, code: Exit) -> None:
    """Ends the command with one message on standard error."""
    click.echo(f"velocpy: {text}", err=True)
    sys.exit(code)


EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {code.meaning}" for code in Exit)


@click.group(cls=Commands, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="velocpy")
def main() -> None:
    """Keep the history of a computation, and bring it back in the order in which it will be needed."""


for command in (*COMMANDS, dcp, diff, pull, push, top):
    main.add_command(command)


@main.command(epilog=examples("velocpy info", "velocpy info --json"))
@json_option
def info(as_json: bool) -> None:
    """Say what this installation is made of."""
    import velocpy

    facts = velocpy.build_info()
    if as_json:
        click.echo(message("info", {"build": facts}))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        text = json.dumps(value) if isinstance(value, dict | list) else value
        if value is None:
            text = "none: this build has no GPU kernels"
        click.echo(f"{name:<{width}}  {text}")


@main.command(
    epilog=examples("velocpy doctor", "velocpy doctor /scratch/run --strict", "velocpy doctor --device 0 --json")
)
@click.argument("path", required=False)
@json_option
@click.option("--device", type=click.IntRange(min=0), metavar="N", help="One GPU.  [default: all that are visible]")
@click.option("--no-rates", is_flag=True, help="Measure no copies and no disk: for a machine that is at work.")
@click.option("--strict", is_flag=True, help="Warnings end it with 20.")
def doctor(path: str | None, as_json: bool, device: int | None, no_rates: bool, strict: bool) -> None:
    """Look at what stores find on this machine, and in the directory PATH.

    Driver, devices, links, kernels, limits, huge pages and the rates of copies, each with a verdict (ok, warning,
    failed, not there) and with what helps. It takes a second or two for each GPU.

    With PATH it tries there what a store does or wants to know: durable writes, direct I/O, locks, holes, space, the
    kind of file system, rates. It does so in a directory of its own, which it removes, and touches nothing else. What
    gives no answer is a finding after a few seconds.

    Exits with 0 when nothing failed: warnings, and a machine without a GPU, are no failure. Exits with 1 when something
    failed, and when a GPU asked for by --device cannot be used.
    """
    from .diagnosis import examine, lines

    report = examine(device, rates=not no_rates, path=path)
    if as_json:
        click.echo(message("doctor", report))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        click.echo("\n".join(lines(report, width)))
    if report["verdict"] == "failed":
        sys.exit(Exit.FAILED)
    if strict and report["verdict"] == "warning":
        sys.exit(Exit.WARNINGS)


@main.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """Measure memory, disk and GPU link; "velocpy bench --help" has the options."""
    from velocpy.bench.__main__ import main as measure

    measure.main(list(arguments), prog_name="velocpy bench", standalone_mode=False, color=colour())


@main.command(
    epilog=examples(
        "velocpy demo",
        "velocpy demo --reduce codec",
        "velocpy demo --reduce tree",
        "velocpy demo --dim 3 --json",
        "velocpy demo --device cuda --backend torch",
    )
)
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
    "--reduce",
    type=click.Choice(get_args(Reduction)),
    help="Encode or de-duplicate the wavefields on their way down, without loss, and tell what that saved.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo-out"),
    show_default=True,
    help="Folder for the pictures and the trace.",
)
@click.option(
    "--folder",
    "--path",
    "path",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the disk tier's private files.  [default: the system's for temporary files]",
)
@click.option("--quiet", is_flag=True, help="Only errors, and the message of --json.")
@json_option
def demo(dim: str, order: str, size: str | None, out: Path, quiet: bool, as_json: bool, **options: Any) -> None:
    """Migrate seismic shots whose wavefields do not fit the memory budget.

    Runs a reverse time migration twice, once with every wavefield in memory and once through velocpy with a fraction of
    that memory, compares the images bit by bit, and draws the image and a timeline. The timeline is also in
    trace.json.gz, which Perfetto opens. Exits with 1 when the images differ.

    With --device cuda both runs are the GPU's: the one keeps every wavefield in its memory, the other lets velocpy move
    them between device, host and disk.
    """
    from velocpy.demo.command import show
    from velocpy.demo.settings import Settings, shape_of

    try:
        settings = Settings(dim=int(dim), order=int(order), size=shape_of(size, int(dim)) if size else None, **options)
        settings.check()
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    make_folder(out, "--out")
    if options["path"] is not None:
        make_folder(options["path"], "--folder")
    if not show(settings, out, quiet=quiet, as_json=as_json):
        sys.exit(Exit.FAILED)


def make_folder(folder: Path, option: str) -> None:
    """Makes the folder that an option names, or refuses before anything is computed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{folder} cannot be made: {error.strerror}", param_hint=option) from None
    if not os.access(folder, os.W_OK):
        raise click.BadParameter(f"{folder} cannot be written to", param_hint=option)
