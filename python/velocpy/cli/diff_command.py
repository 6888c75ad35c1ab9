"""``velocpy diff``: in what two stores differ, as text for people or as messages."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from velocpy.errors import REMEDIES, CheckpointNotFound, Status
from velocpy.quantity import counted, sized

from .exits import Exit
from .output import examples, json_option, message
from .store_commands import key_of, quoted, told

if TYPE_CHECKING:
    from velocpy.comparing import Options
    from velocpy.comparison import Comparison, RegionDifference
    from velocpy.store import History, Store

#: Letters of a value that are shown.
_LETTERS = 60


@click.command(
    epilog=examples(
        "velocpy diff /scratch/run /scratch/rerun",
        "velocpy diff /scratch/run /scratch/rerun --history forward --all --json",
        "velocpy diff run run --history forward --history-b backward",
        "velocpy diff run run --history forward --key 3 --key-b 4",
        "velocpy diff run rerun --rtol 1e-5 --atol 1e-8",
    )
)
@click.argument("a")
@click.argument("b")
@click.option("--history", metavar="NAME", help="Compare this history.  [default: all]")
@click.option("--history-b", metavar="NAME", help="Its name in B.  [default: the same]")
@click.option("--key", metavar="KEY", help="Compare this checkpoint.  [default: all]")
@click.option("--key-b", metavar="KEY", help="Its key in B.  [default: the same]")
@click.option("--all", "everything", is_flag=True, help="Go on behind the first checkpoint of a history that differs.")
@click.option("--rtol", type=click.FloatRange(min=0), metavar="X", help="Numbers may differ by X times that of B.")
@click.option("--atol", type=click.FloatRange(min=0), metavar="X", help="Numbers may differ by X.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="List N ranges of elements for each region, and N keys that only one has.",
)
@json_option
def diff(
    a: str,
    b: str,
    history: str | None,
    history_b: str | None,
    key: str | None,
    key_b: str | None,
    everything: bool,
    rtol: float | None,
    atol: float | None,
    limit: int,
    as_json: bool,
) -> None:
    """Say in what the checkpoints of the stores A and B differ.

    Histories of one name are compared, or those that are named, checkpoint by checkpoint in the order in which those of
    A were written, up to the first that differs: its regions, the ranges of elements, the first values. Every bit
    counts, unless a tolerance is given; the meta does not. Only leaves of 256 KiB are read whose hashes differ.

    Nothing is changed. It may run beside processes that write to the stores, and A and B may be one store. A KEY is as
    for "velocpy show".

    Exits with 0 when there is no difference, with 1 when there is one, and with 2 or another code when it failed.
    """
    from velocpy.comparing import options_of

    if history_b is not None and history is None:
        raise click.UsageError("--history-b wants --history.")
    if key is not None and history is None:
        raise click.UsageError("--key wants --history.")
    if key_b is not None and key is None:
        raise click.UsageError("--key-b wants --key.")
    options = options_of(limit, rtol, atol, None)
    out = _Messages(limit) if as_json else _Lines(limit)
    with ExitStack() as opened:
        pair = _opened(a, b, opened)
        if history is None:
            _diff_stores(pair, options, everything, out)
        else:
            names = history, history if history_b is None else history_b
            one, other = (_history(store, name) for store, name in zip(pair, names, strict=True))
            if key is None:
                _diff_histories(one, other, options, everything, out)
            else:
                from velocpy.comparing import compare

                keys = key_of(key), key_of(key if key_b is None else key_b)
                found = compare(one, keys[0], other, keys[1], options)
                out.checkpoint(found)
                out.count(1, found.read_nbytes)
    out.end()
    if not out.equal:
        sys.exit(Exit.FAILED)


def _opened(a: str, b: str, opened: ExitStack) -> tuple[Store, Store]:
    from velocpy.opening import open as open_store

    return opened.enter_context(open_store(a, mode="r", host=None)), opened.enter_context(
        open_store(b, mode="r", host=None)
    )


def _history(store: Store, name: str) -> History:
    found = {history.name: history for history in store.histories}.get(name)
    if found is None:
        raise CheckpointNotFound(
            f"there is no history {told(name)} in {told(str(store.path))}. {REMEDIES[Status.NOT_FOUND]}", history=name
        )
    return found


def _diff_stores(pair: tuple[Store, Store], options: Options, everything: bool, out: _Output) -> None:
    """Compares the histories of two stores by their names."""
    named = [{history.name: history for history in store.histories} for store in pair]
    for name in sorted(named[0].keys() | named[1].keys()):
        one, other = named[0].get(name), named[1].get(name)
        if one is not None and other is not None:
            _diff_histories(one, other, options, everything, out)
        elif len((one or other) or ()):  # one that has no checkpoints is as good as none
            out.history_only(name, 0 if other is None else 1)


def _diff_histories(one: History, other: History, options: Options, everything: bool, out: _Output) -> None:
    from velocpy.comparing import Walk

    walk = Walk(one, other, options)
    complete = True
    for found in walk:
        out.checkpoint(found)
        if not everything:
            complete = False
            break
    out.history((one.name, other.name), walk.compared, walk.only, complete, walk.read_nbytes)


@dataclass
class _Output:
    """What is told of a comparison, and what came of it."""

    limit: int
    equal: bool = True
    histories: int = 0
    checkpoints: int = 0
    differing: int = 0
    read_nbytes: int = 0

    def checkpoint(self, found: Comparison) -> None:
        """Of a checkpoint that was compared by its key alone, or that differs."""
        if not found.equal:
            self.equal = False
            self.differing += 1

    def count(self, checkpoints: int, read_nbytes: int) -> None:
        """So many checkpoints were compared, and bytes of either store read."""
        self.checkpoints += checkpoints
        self.read_nbytes += read_nbytes

    def history(
        self, names: tuple[str, str], compared: int, only: Sequence[Sequence[Any]], complete: bool, read: int
    ) -> None:
        """Of two histories that were compared."""
        self.histories += 1
        self.count(compared, read)
        if any(only):
            self.equal = False

    def history_only(self, name: str, side: int) -> None:
        """Of a history that only one store has."""
        self.equal = False

    def end(self) -> None:
        """Of all."""


class _Messages(_Output):
    """Tells it in JSON."""

    def checkpoint(self, found: Comparison) -> None:
        super().checkpoint(found)
        facts = {
            "history": found.histories[0],
            "history_b": found.histories[1],
            "key": found.keys[0],
            "key_b": found.keys[1],
            "equal": found.equal,
            "regions": [_region_facts(region) for region in found.regions],
            "values": [{"name": each.name, "why": each.why, "texts": each.texts} for each in found.values],
            "more_values": found.more_values,
            "same_meta": found.same_meta,
            "nbytes": found.nbytes,
            "read_nbytes": found.read_nbytes,
        }
        click.echo(message("checkpoint_diff", facts))

    def history(
        self, names: tuple[str, str], compared: int, only: Sequence[Sequence[Any]], complete: bool, read: int
    ) -> None:
        super().history(names, compared, only, complete, read)
        facts: dict[str, Any] = {"history": names[0], "history_b": names[1], "checkpoints": compared}
        for side, keys in zip("ab", only, strict=True):
            facts |= {f"only_in_{side}": keys[: self.limit], f"more_only_in_{side}": max(0, len(keys) - self.limit)}
        click.echo(message("history_diff", facts | {"complete": complete, "read_nbytes": read}))

    def history_only(self, name: str, side: int) -> None:
        super().history_only(name, side)
        click.echo(message("history_only", {"history": name, "in": "ab"[side]}))

    def end(self) -> None:
        facts = {
            "equal": self.equal,
            "histories": self.histories,
            "checkpoints": self.checkpoints,
            "differing": self.differing,
            "read_nbytes": self.read_nbytes,
        }
        click.echo(message("diff", facts))


def _region_facts(region: RegionDifference) -> dict[str, Any]:
    return {
        "region": region.name,
        "why": region.why,
        "dtypes": region.dtypes,
        "shapes": region.shapes,
        "elements": region.elements,
        "differing": region.count,
        "ranges": region.ranges,
        "more_ranges": region.more_ranges,
        "bounds": region.bounds,
        "first": region.first,
        "values": None if region.values is None else [str(value) for value in region.values],
        "raw": None if region.raw is None else [raw.hex() for raw in region.raw],
        "max_difference": region.max_difference,
        "nan_payloads": region.nan_payloads,
        "same_values": region.same_values,
    }


class _Lines(_Output):
    """Tells it to people."""

    def checkpoint(self, found: Comparison) -> None:
        super().checkpoint(found)
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for line in lines(found):
            click.echo("\n".join(_broken(line, width)))

    def history(
        self, names: tuple[str, str], compared: int, only: Sequence[Sequence[Any]], complete: bool, read: int
    ) -> None:
        super().history(names, compared, only, complete, read)
        for side, keys in zip("AB", only, strict=True):
            if keys:
                more = f" and {len(keys) - self.limit} more" if len(keys) > self.limit else ""
                some = ", ".join(map(quoted, keys[: self.limit]))
                click.echo(f"history {_both(names)}: only {side} has {some}{more}")

    def history_only(self, name: str, side: int) -> None:
        super().history_only(name, side)
        click.echo(f"history {quoted(name)}: only {'AB'[side]} has it")

    def end(self) -> None:
        found = f"{self.differing or 'none'} of them {'differ' if self.differing > 1 else 'differs'}"
        found = "no difference" if self.equal else found
        number = counted(self.checkpoints, "checkpoint")
        click.echo(f"{number} compared, {sized(self.read_nbytes)} of either store read: {found}")


def _both(names: Iterable[Any]) -> str:
    """One name, or two that are not the same."""
    return " and ".join(dict.fromkeys(map(quoted, names)))


def lines(found: Comparison) -> Iterator[str]:
    """What two checkpoints differ in, for people."""
    verdict = "differ" if len(set(found.keys)) + len(set(found.histories)) > 2 else "differs"
    if found.equal:
        verdict = "equal" if found.same_meta else "equal, but for the meta"
    yield f"history {_both(found.histories)}, key {_both(found.keys)}: {verdict}"
    for region in found.regions:
        yield from _region_lines(region)
    for value in found.values:
        one, other = ("nothing" if text is None else _cut(text) for text in value.texts)
        yield f"  value {quoted(value.name)}: {one} in A, {other} in B"
    if found.more_values:
        yield f"  and {found.more_values} values more"


def _region_lines(region: RegionDifference) -> Iterator[str]:
    from velocpy.comparison import index_text

    head = f"  region {quoted(region.name)}"
    if region.why == "only in one":
        yield f"{head}: only in {'A' if region.dtypes[1] is None else 'B'}"
        return
    if region.why != "bytes":
        one, other = (
            f"{told(dtype)[1:-1]} {_shape(shape)}" for dtype, shape in zip(region.dtypes, region.shapes, strict=True)
        )
        yield f"{head}: {one} in A, {other} in B"
        return
    within = f", within {index_text(region.bounds)}" if region.bounds else ""
    kind = f"{told(region.dtypes[0])[1:-1]} {_shape(region.shapes[0])}"
    yield f"{head}: {kind}, {region.count} of {region.elements} elements differ{within}"
    yield f"    first    {_first(region)}"
    if region.max_difference is not None:
        yield f"    largest  {region.max_difference:.6g}"
    if region.nan_payloads:
        yield f"    NaN      {region.nan_payloads} differ in the payload or the sign of a NaN alone"
    if region.same_values:
        yield f"    bits     {region.same_values} have the same value in other bits"
    if len(region.ranges) + region.more_ranges > 1:
        yield f"    ranges   {_ranges(region)}"


def _ranges(region: RegionDifference) -> str:
    listed = ", ".join(f"{begin}:{end}" for begin, end in region.ranges)
    if not region.more_ranges:
        return listed
    return f"{listed} and {region.more_ranges} ranges more" if listed else f"{region.more_ranges} ranges"


def _first(region: RegionDifference) -> str:
    """Where the first element lies, its values, and its bytes where these look the same."""
    place = f"{list(region.first)}: " if region.first else ""
    raw = "" if region.raw is None else f"{region.raw[0].hex()} in A, {region.raw[1].hex()} in B"
    if region.values is None:
        return f"{place}bytes {raw}"
    one, other = (_cut(quoted(str(value))[1:-1]) for value in region.values)
    return f"{place}{one} in A, {other} in B" + (f" (bytes {raw})" if one == other else "")


def _cut(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"


def _shape(shape: tuple[int, ...] | None) -> str:
    return "x".join(map(str, shape or ())) or "scalar"


def _broken(line: str, width: int | None) -> list[str]:
    """A line for a terminal of so many columns; what does not fit is indented below."""
    if width is None or len(line) <= width:
        return [line]
    indent = len(line) - len(line.lstrip())
    below = " " * (13 if indent == 4 else indent + 2)
    return textwrap.wrap(line, max(width, 40), subsequent_indent=below, break_long_words=False, break_on_hyphens=False)
