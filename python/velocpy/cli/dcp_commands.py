"""The commands that copy checkpoints of torch.distributed between stores and DCP's own files."""

from __future__ import annotations

from pathlib import Path

import click

from .output import examples, json_option, message


@click.group(name="dcp")
def dcp() -> None:
    """Copy checkpoints of torch.distributed into DCP's own files, and back."""


@dcp.command(
    name="export",
    epilog=examples(
        "velocpy dcp export /scratch/run step-100 /scratch/files/step-100",
        "velocpy dcp export /scratch/run step-100 files --json",
    ),
)
@click.argument("path")
@click.argument("checkpoint")
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
def export_(path: str, checkpoint: str, folder: Path, as_json: bool) -> None:
    """Write a checkpoint of velocpy.dcp.Writer as files that DCP's FileSystemReader reads.

    PATH is the directory of the writer, which has a store of each rank. FOLDER is new, or empty. The bytes are verified
    before.
    """
    from velocpy.dcp import to_files

    to_files(path, checkpoint, folder)
    _told("dcp_export", checkpoint, folder, as_json)


@dcp.command(
    name="import",
    epilog=examples(
        "velocpy dcp import /scratch/files/step-100 /scratch/run step-100",
        "velocpy dcp import files /scratch/run step-100 --json",
    ),
)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("path")
@click.argument("checkpoint")
@json_option
def import_(folder: Path, path: str, checkpoint: str, as_json: bool) -> None:
    """Write a checkpoint that DCP's FileSystemWriter has written into the store of rank 0 in PATH.

    It ends when the checkpoint is durable. velocpy.dcp.Reader loads it on any number of ranks.
    """
    from velocpy.dcp import from_files

    from_files(folder, path, checkpoint)
    _told("dcp_import", checkpoint, folder, as_json)


def _told(kind: str, checkpoint: str, folder: Path, as_json: bool) -> None:
    if as_json:
        nbytes = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
        click.echo(message(kind, {"checkpoint": checkpoint, "folder": str(folder), "bytes": nbytes}))
