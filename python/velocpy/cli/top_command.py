"""``velocpy top``: stores at work, as the processes that have them open publish them."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from velocpy.errors import NotAStore
from velocpy.extra import MissingLibrary

from .output import examples, json_option, message

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from velocpy.live.change import Change
    from velocpy.live.channel import Published

#: Tells a store from all others: its process, and its number there.
Place = tuple[int, int]


class Shown(NamedTuple):
    """A store and its process."""

    process: Published
    change: Change


@click.command(
    epilog=examples(
        "velocpy top",
        "velocpy top /scratch/run",
        "velocpy top 4711 --interval 0.5",
        "velocpy top /scratch/run --count 10 --json",
    )
)
@click.argument("which", metavar="[PATH|PID]", required=False)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1, max=3600),
    default=1.0,
    show_default=True,
    help="Seconds between two looks.",
)
@click.option("--count", type=click.IntRange(min=1), help="End after so many looks.  [default: with the stores]")
@json_option
def top(which: str | None, interval: float, count: int | None, as_json: bool) -> None:
    """Watch stores at work: tiers, rates, prefetch distance, and time blocked by reason.

    The stores in the directory PATH, those of the process PID, or all of them. A process shows its stores if it was
    started with VELOCPY_WATCH=1, to processes of the same user on the same machine (in the same container).

    A process that does not answer is left out until it does. Ends with Ctrl-C, or when the last of the stores is
    closed. Output that goes to no terminal has one block for each look.
    """
    console = None if as_json else _console()
    with contextlib.suppress(KeyboardInterrupt):  # the way to end it
        if console is not None and console.is_terminal:
            _renew(console, looks(which, interval, count))
            return
        for shown in looks(which, interval, count):
            if console is not None:
                console.print(_screen(shown))
                continue
            for each in shown:
                click.echo(message("store", facts_of(each)))


def _renew(console: Console, views: Iterator[list[Shown]]) -> None:
    """One view, in place of the former one."""
    from rich.live import Live

    with Live(console=console, auto_refresh=False) as live:
        for shown in views:
            live.update(_screen(shown), refresh=True)


def looks(which: str | None, interval: float, count: int | None) -> Iterator[list[Shown]]:
    """The stores, again and again, until there are none any more.

    The first look is after an interval, so that all have rates.

    Raises
    ------
    NotAStore
        No process shows such a store.
    """
    from velocpy.live.change import change

    before = samples(which)
    if not before:
        raise NotAStore(_none(which))
    done = 0
    while count is None or done < count:
        time.sleep(interval)
        now = samples(which)
        if not now:
            return
        shown = []
        for place, (process, sample) in now.items():
            former = before.get(place)
            shown.append(Shown(process, change(None if former is None else former[1], sample)))
        yield shown
        before, done = now, done + 1


def samples(which: str | None) -> dict[Place, Any]:
    """The stores that were asked for, by their places, with their processes."""
    from velocpy.live.channel import published

    processes = published()
    if which is not None and which.isdecimal() and not Path(which).exists():
        processes = [process for process in processes if process.pid == int(which)]
        which = None
    for process in processes:
        if process.other_version is not None and which is None:
            click.echo(f"velocpy: process {process.pid} runs velocpy {process.other_version}: use that one", err=True)
    return {
        (process.pid, sample.number): (process, sample)
        for process in processes
        for sample in process.stores
        if which is None or _is_at(sample.path, which)
    }


def _is_at(path: str | None, which: str) -> bool:
    """Whether two names are those of one directory."""
    try:
        return path is not None and Path(path).samefile(which)
    except OSError:
        return False


def _none(which: str | None) -> str:
    """Why there is nothing to show, and what helps."""
    if which is None:
        what = "no process shows a store"
    elif which.isdecimal() and not Path(which).exists():
        what = f"no process {which} shows a store"
    else:
        what = f'no process shows a store in "{which}"'
    return f"{what}. Set VELOCPY_WATCH=1 in the environment of the one to watch, before it opens the store."


def facts_of(shown: Shown) -> dict[str, Any]:
    """What a message tells of a store. Rates are in bytes per second, times in seconds."""
    change, sample = shown.change, shown.change.now
    restores = sample.stats["restores"]
    return {
        "pid": shown.process.pid,
        "command": shown.process.command,
        "number": sample.number,
        "path": sample.path,
        "durable": sample.durable,
        "mode": "r" if sample.read_only else "a",
        "seconds": change.seconds,
        "histories": sample.histories,
        "checkpoints": sample.checkpoints,
        "captured_bytes_per_s": change.captured,
        "restored_bytes_per_s": change.restored,
        "restores": change.restores,
        "hits": change.hits,
        "prefetch_distance": restores["prefetch_distance_last"],
        "prefetch_distance_mean": restores["prefetch_distance_mean"],
        "tiers": {
            tier.name: {
                "capacity": tier.now["capacity"],
                "used": tier.now["used"],
                **{state: tier.now[state] for state in ("held", "promised", "dirty", "flushing", "evictable")},
                "written_bytes_per_s": tier.written,
                "read_bytes_per_s": tier.read,
                "evicted_bytes_per_s": tier.evicted,
                "stalled_seconds": tier.now["stalled_ns"] / 1e9,
            }
            for tier in change.tiers
        },
        "waits": {
            wait.name: {"share": wait.share, "seconds": wait.seconds, "cause": wait.cause} for wait in change.waits
        },
    }


def _console() -> Console:
    """Standard output.

    Raises
    ------
    MissingLibrary
        Without rich.
    """
    try:
        from rich.console import Console
    except ImportError:
        raise MissingLibrary("rich", "velocpy top", "pip install rich, or give --json") from None
    width = shutil.get_terminal_size((100, 40)).columns
    return Console(highlight=False, width=None if sys.stdout.isatty() else max(width, 100))


def _screen(shown: list[Shown]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from velocpy.live.screen import legible, screen

    parts: list[RenderableType] = []
    for each in shown:
        parts.append(Text(f"process {each.process.pid}  {legible(each.process.command)}", style="dim", no_wrap=True))
        parts.append(screen(each.change))
    return Group(*parts)
