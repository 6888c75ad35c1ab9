"""minio-go alone: a program of `s3/alone` that moves bytes between files or memory and an object store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks import ROOT
from benchmarks.disk.objects import BUCKET

Pieces = list[tuple[Path, int, int]]
"""File, offset and length of pieces of local files."""


class Object(NamedTuple):
    """An object, and the local files that have its bytes."""

    key: str
    pieces: Pieces

    @property
    def nbytes(self) -> int:
        """Its length."""
        return sum(length for _, _, length in self.pieces)


class Way(NamedTuple):
    """One way to move objects: a task of the program, the bytes of a part, and how many parts are under way at once."""

    task: str
    part: int
    threads: int

    def __str__(self) -> str:
        return f"{self.task}, parts of {self.part / (1 << 20):g} MiB, {self.threads} threads"


class Alone:
    """The running program."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        #: Bytes of all downloads that were not those of the files.
        self.differing = 0

    def seconds(self, way: Way, objects: list[Object], folder: Path | None = None) -> float:
        """The seconds that the objects take; those of downloads to files go to a folder.

        Raises
        ------
        RuntimeError
            The program has failed.
        """
        task = {
            "op": way.task,
            "bucket": BUCKET,
            "part": way.part,
            "threads": way.threads,
            "objects": [
                {
                    "key": each.key,
                    "bytes": each.nbytes,
                    "pieces": [{"file": str(file), "from": at, "bytes": length} for file, at, length in each.pieces],
                    "to": "" if folder is None else str(folder / each.key.replace("/", "-")),
                }
                for each in objects
            ],
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(said) if said else {"error": "it has ended"}
        if "error" in answer:
            raise RuntimeError(f"minio-go alone, {way}: {answer['error']}")
        self.differing += answer["differing"]
        return float(answer["seconds"])


@contextmanager
def alone(folder: Path) -> Iterator[Alone]:
    """Builds the program into a folder, and runs it until the end of the block.

    Raises
    ------
    click.ClickException
        There is no Go.
    """
    if shutil.which("go") is None:
        raise click.ClickException("this benchmark needs Go")
    program = folder / "minio-go-alone"
    command = ["go", "build", "-C", str(ROOT / "s3"), "-trimpath", "-o", str(program.absolute()), "./alone"]
    subprocess.run(command, env={**os.environ, "CGO_ENABLED": "0"}, check=True)
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Alone(process)
    finally:
        process.kill()
        process.wait()
