"""Which store a path names, and which file in it."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import NamedTuple

from velocpy.errors import InvalidArgument

#: A directory whose name ends like this holds the stores of a file system.
SUFFIX = ".velocpy"


class Location(NamedTuple):
    """A file or directory: the directory of its stores, and its name inside, which is empty for the root."""

    directory: str
    name: str

    def path(self) -> str:
        """The path that names it."""
        return f"{self.directory}/{self.name}" if self.name else self.directory


def absolute(path: str) -> str:
    """The path from the root on, without empty parts, ``.`` and ``..``.

    Examples
    --------
    >>> absolute("/scratch//a/../run.velocpy/x/")
    '/scratch/run.velocpy/x'
    """
    whole = path if path.startswith("/") else posixpath.join(Path.cwd().as_posix(), path)
    return "/" + posixpath.normpath(whole).lstrip("/")


def located(path: str) -> Location:
    """The location that an absolute path names.

    Raises
    ------
    InvalidArgument
        No part of it ends in ``.velocpy``.

    Examples
    --------
    >>> located("/scratch/run.velocpy/step-100/.metadata")
    Location(directory='/scratch/run.velocpy', name='step-100/.metadata')
    """
    parts = path.split("/")
    for number, part in enumerate(parts):
        if part.endswith(SUFFIX) and part != SUFFIX:
            return Location("/".join(parts[: number + 1]), "/".join(parts[number + 1 :]))
    raise InvalidArgument(
        f"the path {path!r} names no store: a part of it ends in {SUFFIX}, as in "
        f"velocpy:///scratch/run{SUFFIX}/step-100. Nothing was changed."
    )


def parent(name: str) -> str:
    """The directory that a name lies in.

    Examples
    --------
    >>> parent("a/b"), parent("a")
    ('a', '')
    """
    return name.rpartition("/")[0]


def ancestors(name: str) -> list[str]:
    """The directories above a name, the root left out, the nearest first.

    Examples
    --------
    >>> ancestors("a/b/c")
    ['a/b', 'a']
    """
    found = []
    while name := parent(name):
        found.append(name)
    return found
