"""The commands that bring the stores of ranks into an archive, and out of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from velocpy.quantity import sized

from .exits import Exit
from .output import examples, json_option, message


def ranks_of(stores: Sequence[str]) -> dict[int, str]:
    """The stores by the numbers of their ranks: those at the ends of their names, where these all differ.

    Examples
    --------
    >>> from velocpy.cli.archive_commands import ranks_of
    >>> ranks_of(["run/rank-10", "run/rank-9"]), ranks_of(["a", "b"])
    ({10: 'run/rank-10', 9: 'run/rank-9'}, {0: 'a', 1: 'b'})
    """
    found = [re.search("[0-9]+$", Path(store).name) for store in stores]
    numbers = [int(digits[0]) for digits in found if digits]
    if len(numbers) == len(stores) == len(set(numbers)):
        return dict(zip(numbers, stores, strict=True))
    return dict(enumerate(stores))


@click.command(
    epilog=examples(
        "velocpy push /scratch/run/rank-* /shared/run --files 4",
        "velocpy push node-a node-b archive --history forward --json",
        "velocpy push /scratch/run/rank-* s3://bucket/run",
    )
)
@click.argument("stores", nargs=-1, required=True, type=click.Path(file_okay=False))
@click.argument("archive", type=click.Path(file_okay=False))
@click.option("--files", type=click.IntRange(min=1), help="Append to N files.  [default: those there are, or 1]")
@click.option("--history", "histories", multiple=True, metavar="NAME", help="Of this history alone; may be repeated.")
@click.option("--partial", is_flag=True, help="Also keys that not all ranks have.")
@click.option("--stripe", metavar="SIZE", help="Of the file system: begin at its multiples.  [default: 1MiB]")
@json_option
def push(
    stores: tuple[str, ...], archive: str, files: int | None, histories: tuple[str, ...], partial: bool,
    stripe: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Bring what the STORES of all ranks have, and an ARCHIVE lacks, into it.

    ARCHIVE is a directory, or s3://bucket/prefix. The number at the end of a store's name is its rank; where these are
    not all different, the stores are ranks 0, 1, … in their order. The stores may be written to meanwhile. Exits with 3
    when checkpoints in them are damaged.
    """
    from velocpy.archive import push as bring

    ranks = ranks_of(stores)
    got = bring(ranks, archive, files=files, partial=partial, histories=histories or None, stripe=stripe)
    if as_json:
        click.echo(message("push", {"ranks": sorted(ranks)} | asdict(got)))
    else:
        where = f"in {got.files} packs of" if got.requests else f"to {got.files} files of"
        click.echo(
            f"{got.keys} keys of {len(ranks)} ranks, {sized(got.nbytes)}, {where} {archive}; {got.known} were there"
        )
        if got.requests:
            click.echo(f"{got.requests} requests, {sized(got.sent_nbytes)} sent, {sized(got.received_nbytes)} received")
        if got.incomplete:
            click.echo(f"{got.incomplete} keys were left out that not all ranks have (--partial takes them)")
        if got.changed:
            click.echo(f"{got.changed} keys were left out that a rank replaced or dropped before they were copied")
        for name in got.damaged:
            click.echo(f"damaged: {name}")
    if got.damaged:
        sys.exit(Exit.PARTIAL)


@click.command(
    epilog=examples("velocpy pull /shared/run /scratch/rank-3 --rank 3", "velocpy pull archive store --rank 0 --json")
)
@click.argument("archive", type=click.Path(file_okay=False))
@click.argument("to", type=click.Path(file_okay=False))
@click.option("--rank", type=click.IntRange(min=0), required=True, help="Whose checkpoints.")
@json_option
def pull(archive: str, to: str, rank: int, as_json: bool) -> None:
    """Make a store of one rank's checkpoints in an ARCHIVE.

    TO is a new or empty directory. Exits with 3 when checkpoints in the archive are damaged.
    """
    from velocpy.archive import pull as make

    got = make(archive, to, rank=rank)
    if as_json:
        click.echo(message("pull", {"rank": rank} | asdict(got)))
    else:
        click.echo(f"{got.checkpoints} checkpoints of rank {rank}, {sized(got.nbytes)}, in {to}")
        if got.damaged:
            click.echo(f"{got.damaged} of them are damaged in the archive too: velocpy check --read-data {archive}")
    if got.damaged:
        sys.exit(Exit.PARTIAL)
