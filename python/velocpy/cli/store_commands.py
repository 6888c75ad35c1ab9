"""The commands that look into stores and put them in order; `velocpy.cli` has the others."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import click

from velocpy.errors import DamagedStore, InvalidArgument, NotAStore
from velocpy.quantity import counted, sized
from velocpy.times import for_json, shown

from .exits import Exit
from .output import examples, json_option, message

directory = click.argument("path")

#: What a listing can be sorted by: the names in `velocpy.cli.listing.ORDERS`, which need the core.
SORTS = ("name", "key", "size", "disk", "checkpoints", "regions", "meta", "version", "captured", "latest")

#: Characters of a number that has 64 bits, and a few zeros before it.
_LONGEST_NUMBER = 100

#: Characters of a tree's structure that are shown.
_LONGEST_TREE = 200


def key_of(text: str) -> int | str:
    """A key as it stands on a command line.

    Examples
    --------
    >>> from velocpy.cli.store_commands import key_of
    >>> key_of("-7"), key_of("wave"), key_of('"7"'), key_of("1_0")
    (-7, 'wave', '7', '1_0')
    """
    if re.fullmatch("-?[0-9]+", text):
        if len(text) > _LONGEST_NUMBER:
            raise InvalidArgument(f"key is {text[:_LONGEST_NUMBER]}…, which has more than 64 bits.")
        return int(text)
    if text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            pass
    return text


@click.command(
    epilog=examples(
        "velocpy ls /scratch/run",
        "velocpy ls /scratch/run forward --json",
        "velocpy ls /scratch/run forward --sort size --reverse --meta",
    )
)
@directory
@click.argument("history", required=False)
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    help="By what.  [default: histories by name; checkpoints as they became durable]",
)
@click.option("--reverse", is_flag=True, help="The last line first.")
@click.option("--meta", "with_meta", is_flag=True, help="Show what checkpoints were given as meta.")
@json_option
def ls(path: str, history: str | None, sort: str | None, reverse: bool, with_meta: bool, as_json: bool) -> None:
    """List the histories of a store, or the checkpoints of one.

    Histories with the number of their checkpoints and the bytes that these take, with those of dropped ones that they
    still need; checkpoints with the bytes of their regions, those that each takes by itself in the data files, how many
    regions there are, the bytes of their meta, the version, which grows with every checkpoint that is written, and when
    checkpoint() was called for it, in UTC; "-" where an older velocpy, which kept no times, wrote it.
    Of a history "latest" is that time of its latest version. It may run beside a process that writes.
    """
    from .listing import ORDERS, listing

    if sort is not None and sort not in (orders := ORDERS["histories" if history is None else "rows"]):
        what = "histories are" if history is None else "checkpoints are"
        raise click.UsageError(f"{what} not sorted by {sort}, but by {', '.join(orders)}.")
    if with_meta and history is None:
        raise click.UsageError("--meta wants a HISTORY: histories have no meta.")
    for text in listing(path, history, as_json=as_json, sort=sort, reverse=reverse, with_meta=with_meta):
        click.echo(text, nl=False)


@click.command(
    epilog=examples(
        "velocpy show /scratch/run forward 7",
        "velocpy show /scratch/run forward 7 --lineage",
        "velocpy show /scratch/run forward 7 --json",
    )
)
@directory
@click.argument("history")
@click.argument("key")
@click.option("--lineage", "with_lineage", is_flag=True, help="Show which checkpoints have written its bytes.")
@json_option
def show(path: str, history: str, key: str, with_lineage: bool, as_json: bool) -> None:
    """Show what a checkpoint consists of, and where it lies.

    KEY is a whole number, or else a text; a text that looks like a number goes into quotes of its own: '"7"'.

    With --lineage, a row of characters stands for the bytes of the checkpoint, and of each that it needs and that is
    there: from left to right, which checkpoint has written them.
    """
    from velocpy.ondisk import describe

    found = describe(path, history, key_of(key))
    traced = lineage_of(path, history, key_of(key)) if with_lineage else None
    if as_json:
        facts = asdict(found) | {"captured": for_json(found.captured)}
        if traced is not None:
            facts["origins"] = [asdict(origin) for origin in traced.checkpoints[-1].origins]
        click.echo(message("checkpoint_detail", facts))
        return
    for line in described(found):
        click.echo(line)
    if traced is not None:
        click.echo()
        for line in traced.lines():
            click.echo(line)


def lineage_of(path: str, history: str, key: int | str) -> Any:
    """The lineage of a checkpoint and, before it, of those which are there and whose objects it needs."""
    from velocpy.lineage import lineage

    (last,) = lineage(path, history, [key]).checkpoints
    needed = [origin.key for origin in last.origins[:-1] if origin.key is not None and origin.nbytes]
    return lineage(path, history, [*needed, key])


def described(found: Any) -> Iterator[str]:
    """The lines for people of a checkpoint: what it is, where it lies, and a table of its regions."""
    yield f"history   {quoted(found.history)}"
    yield f"key       {quoted(found.key)}"
    yield f"version   {found.serial}"
    yield f"captured  {shown(found.captured)}"
    yield f"size      {sized(found.nbytes)}"
    if found.form != "raw":
        yield f"on disk   {sized(found.stored_nbytes)}, {found.form}, 1 : {found.nbytes / found.stored_nbytes:.2f}"
    if found.sources:
        objects = "1 object" if found.sources == 1 else f"{found.sources} objects"
        yield f"needs     {objects} of earlier checkpoints, {sized(found.source_nbytes)}"
    if found.meta_nbytes and (found.meta is not None or found.structure is None):  # a tree has its values there, too
        yield f"meta      {f'{sized(found.meta_nbytes)} that are no JSON' if found.meta is None else told(found.meta)}"
    for extent in found.extents:
        yield f"place     {extent.file}, {extent.nbytes} bytes from {extent.offset} on"
    rows = [("region", "dtype", "shape", "size", "checksum")]
    for region in found.regions:
        shape = "x".join(map(str, region.shape)) or "scalar"
        rows.append(
            (quoted(region.name), told(region.dtype)[1:-1], shape, sized(region.nbytes), region.checksum or "-")
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield ""
    for name, dtype, shape, size, checksum in rows:
        yield f"{name:<{widths[0]}}  {dtype:<{widths[1]}}  {shape:<{widths[2]}}  {size:>{widths[3]}}  {checksum}"
    if found.structure is not None:
        yield ""
        yield f"tree      {textwrap.shorten(json.dumps(found.structure), _LONGEST_TREE, placeholder=' …')}"


def told(value: Any) -> str:
    """A value as JSON, which has no character that a terminal might obey."""
    return json.dumps(value)


def quoted(name: int | str) -> str:
    r"""A name or a key as it may be typed, with what cannot be printed spelt out.

    Examples
    --------
    >>> from velocpy.cli.store_commands import quoted
    >>> print(quoted(7), quoted("7"), quoted("größe"), quoted("\x1b[2J"))
    7 "7" "größe" "\u001b[2J"
    """
    if not isinstance(name, str):
        return str(name)
    spelt = (letter if letter.isprintable() and letter not in '"\\' else json.dumps(letter)[1:-1] for letter in name)
    return f'"{"".join(spelt)}"'


@click.command(
    epilog=examples(
        "velocpy check /scratch/run",
        "velocpy check /scratch/run --read-data --json",
        "velocpy check /scratch/run --subset 3/30",
        "velocpy check /scratch/run --subset 5% --repair",
        "velocpy check /scratch/run --repair --rebuild",
    )
)
@directory
@click.option("--read-data", is_flag=True, help="Read all bytes and compare them with their checksums.")
@click.option("--subset", metavar="n/t|x%", help="Read the n-th of t parts of the checkpoints, or x percent at random.")
@click.option("--repair", "repairs", is_flag=True, help="Put identity and catalog in order; checkpoints stay.")
@click.option(
    "--drop-damaged", is_flag=True, help="With --repair: drop the checkpoints that are damaged when read again."
)
@click.option(
    "--rebuild",
    is_flag=True,
    help="With --repair: find in the data files what identity and catalog do not say any more.",
)
@click.option("--keep-unproven", is_flag=True, help="With --rebuild: checkpoints without checksums too.")
@json_option
def check(
    path: str,
    read_data: bool,
    subset: str | None,
    repairs: bool,
    drop_damaged: bool,
    rebuild: bool,
    keep_unproven: bool,
    as_json: bool,
) -> None:
    """Look for damage in a store.

    Identity, catalog, and the places and files of all checkpoints; with --read-data or --subset their bytes too. Each
    fault is told with checkpoint, region and bytes. Without --repair nothing is changed, and it may run beside a
    process that writes.

    Exits with 3 when there is damage, also when that was repaired. A last batch of the catalog that is not whole is
    told, and is no damage: a killed writer leaves that. Damage to the last batch looks the same.
    """
    from velocpy import ondisk

    if drop_damaged and not repairs:
        raise click.UsageError("--drop-damaged wants --repair.")
    if rebuild and not repairs:
        raise click.UsageError("--rebuild wants --repair.")
    if keep_unproven and not rebuild:
        raise click.UsageError("--keep-unproven wants --rebuild.")
    if read_data and subset is not None:
        raise click.UsageError("--read-data and --subset exclude each other.")
    if subset is not None and not ondisk.is_subset(subset):
        raise click.UsageError(f"--subset is {subset!r}; give n/t with n from 1 to t, or x% with x up to 100.")
    done, lost = None, []
    try:
        report = _checked(path, read_data, subset)
    except (DamagedStore, NotAStore) as error:
        if not rebuild:
            raise
        lost = [ondisk.Fault("catalog", "", 0, 0, False, False, str(error))]
        done = ondisk.repair(path, rebuild=True, keep_unproven=keep_unproven)
        report = _checked(path, read_data, subset)
        if drop_damaged and report.faults:
            dropped = ondisk.repair(path, drop=report.faults)
            done = replace(done, dropped=dropped.dropped, spared=dropped.spared)
    for fault in (*lost, *report.faults):
        click.echo(message("fault", asdict(fault)) if as_json else str(fault))
    if repairs and done is None and report.faults:
        drop = report.faults if drop_damaged else ()
        done = ondisk.repair(path, drop=drop, rebuild=rebuild, keep_unproven=keep_unproven)
    if as_json:
        sound = report.sound and not lost
        facts = asdict(report) | {"faults": len(lost) + len(report.faults), "sound": sound}
        click.echo(message("check", facts | {"repaired": None if done is None else asdict(done)}))
    else:
        click.echo(summary(report))
        if done is not None:
            click.echo(repairs_made(done))
    if lost or not report.sound:
        sys.exit(Exit.PARTIAL)


def _checked(path: str, read_data: bool, subset: str | None) -> Any:
    from velocpy import ondisk

    with progress(f"reading {path}") as told:
        return ondisk.check(path, read_data=read_data, subset=subset, progress=told)


def summary(report: Any) -> str:
    """What a check has found, in one line."""
    read = f", {report.read} of them read ({sized(report.read_nbytes)})" if report.read else ""
    found = f"{counted(len(report.faults), 'fault')}, {counted(report.damaged, 'checkpoint')} damaged"
    found = "no damage" if report.sound else found
    text = f"{counted(report.checkpoints, 'checkpoint')} ({sized(report.nbytes)}){read}: {found}"
    for number, what in (
        (report.without_checksums, "without checksums"),
        (report.unknown, "of a later version"),
        (report.superseded, "dropped or replaced meanwhile"),
    ):
        if number:
            text += f"; {number} {what}"
    if report.torn_nbytes:
        text += (
            f"; the catalog ends in {sized(report.torn_nbytes)} that are no whole batch: the writer has not ended it, "
            "as when it was killed, or the last batch is damaged"
        )
    if report.unused:
        nbytes = sum(file.nbytes for file in report.unused)
        text += f"; {counted(len(report.unused), 'unused data file')} ({sized(nbytes)})"
    return text


def repairs_made(done: Any) -> str:
    """What a repair has done, in one line."""
    made = [
        *(["the identity was written again"] if done.identity else []),
        *_made(done.heads, "head of a data file was", "heads of data files were", "written again"),
        *_made(done.indexes, "index of a data file was", "indexes of data files were", "written again"),
        *_made(done.found, "checkpoint was", "checkpoints were", "found in the data files"),
        *_made(done.changed, "version there is", "versions there are", "not what was written, or written over since"),
        *_made(done.unproven, "has", "have", "no checksums: --keep-unproven takes them too"),
        *(["the catalog was written anew"] if done.catalog else []),
        *_made(done.dropped, "checkpoint was", "checkpoints were", "dropped"),
        *_made(done.spared, "checkpoint stays", "checkpoints stay", "as the bytes were right or could not be read"),
    ]
    return f"repaired: {', '.join(made) or 'nothing that could be'}"


def _made(number: int, one: str, more: str, what: str) -> list[str]:
    """What was done with so many things; nothing with none."""
    return [f"{counted(number, one, more)} {what}"] if number else []


@click.command(epilog=examples("velocpy gc /scratch/run", "velocpy gc /scratch/run --dry-run --json"))
@directory
@click.option("--dry-run", is_flag=True, help="Say what would be given back, and change nothing.")
@json_option
def gc(path: str, dry_run: bool, as_json: bool) -> None:
    """Give room back that a store does not need.

    Drops what the retention of each history does not keep, removes data files in which nothing lies, gives the file
    system back what is free in the others, and writes the catalog anew. No other process may have the store open for
    writing.
    """
    from velocpy.ondisk import collect

    got = collect(path, dry_run=dry_run)
    if as_json:
        click.echo(message("gc", {"dry_run": dry_run} | asdict(got)))
        return
    would = "would be " if dry_run else ""
    click.echo(
        f"{sized(got.file_nbytes)} of data files and {sized(got.catalog_nbytes)} of the catalog {would}given back; "
        f"{got.dropped} checkpoints {would}dropped, {got.removed_files} files {would}removed"
    )


@click.command(epilog=examples("velocpy backup /scratch/run /archive/run", "velocpy backup run copy --json"))
@directory
@click.argument("to", type=click.Path(file_okay=False))
@json_option
def backup(path: str, to: str, as_json: bool) -> None:
    """Copy a store into a new directory, also while a process writes to it.

    The copy holds what the catalog listed at one moment, and is compared with its checksums. A store that is written to
    must not be copied file by file. Exits with 3 when checkpoints in it are damaged.
    """
    from velocpy.backup import backup as copy

    got = copy(path, to)
    if as_json:
        click.echo(message("backup", asdict(got)))
    else:
        click.echo(f"{got.checkpoints} checkpoints, {sized(got.nbytes)}, in {to}")
        if got.older:
            click.echo(f"of {got.older} of them the store has a newer version by now")
        if got.damaged:
            click.echo(f"{got.damaged} of them are damaged in the store too: velocpy check --read-data {path}")
    if got.damaged:
        sys.exit(Exit.PARTIAL)


@click.command(
    name="export",
    epilog=examples(
        "velocpy export /scratch/run forward 7 state.npz",
        "velocpy export /scratch/run forward 7 state.safetensors --json",
        "velocpy export run training 9 model.safetensors --max-shard-size 5GB",
    ),
)
@directory
@click.argument("history")
@click.argument("key")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--format", "format_", type=click.Choice(["safetensors", "npz"]), help="[default: as FILE ends]")
@click.option(
    "--max-shard-size", "max_shard", metavar="SIZE", help="safetensors: several files of at most SIZE, and an index."
)
@click.option(
    "--ties",
    type=click.Choice(["alias", "copy"]),
    default="alias",
    show_default=True,
    help="safetensors: tied weights once, with their other names as metadata, or once for each name.",
)
@json_option
def export_(
    path: str,
    history: str,
    key: str,
    file: Path,
    format_: str | None,
    max_shard: str | None,
    ties: Literal["alias", "copy"],
    as_json: bool,
) -> None:
    """Write a checkpoint into a file of another format.

    Its bytes are verified before. KEY is as for "velocpy show".
    """
    from velocpy.interchange import export

    files = export(path, history, key_of(key), file, format_, max_shard=max_shard, ties=ties)
    _told("export", history, key, file, sum(each.stat().st_size for each in files), as_json)


@click.command(
    name="import",
    epilog=examples(
        "velocpy import state.npz /scratch/run forward 7",
        "velocpy import state.safetensors /scratch/run forward first --json",
        "velocpy import model.safetensors.index.json /scratch/run pretrained 0",
        "velocpy import checkpoint.pt /scratch/run training 1000",
    ),
)
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@directory
@click.argument("history")
@click.argument("key")
@click.option("--format", "format_", type=click.Choice(["safetensors", "npz", "torch"]), help="[default: as FILE ends]")
@json_option
def import_(file: Path, path: str, history: str, key: str, format_: str | None, as_json: bool) -> None:
    """Write what a file has into a store, as one checkpoint.

    FILE is of safetensors (also a folder, or an index of several files), npz, or torch: the zip file of torch.save, of
    which tensors and plain values are read, and no other objects. The store is made when there is none. It ends when
    the checkpoint is durable. KEY is as for "velocpy show".
    """
    from velocpy.interchange import import_ as take

    nbytes = take(file, path, history, key_of(key), format_)
    _told("import", history, key, file, nbytes, as_json)


def _told(kind: str, history: str, key: str, file: Path, nbytes: int, as_json: bool) -> None:
    if as_json:
        facts = {"history": history, "key": key_of(key), "file": str(file), "bytes": nbytes}
        click.echo(message(kind, facts))


@contextmanager
def progress(text: str) -> Iterator[Callable[[int, int], Any] | None]:
    """Shows on a terminal how far it is, on standard error; None elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from velocpy.extra import MissingLibrary
    from velocpy.progress import bar

    try:
        shown = bar(text)
    except MissingLibrary:
        yield None
        return
    with shown as told:
        yield told


COMMANDS = (ls, show, check, gc, backup, export_, import_)
