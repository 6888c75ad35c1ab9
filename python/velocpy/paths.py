"""The directory that a store is opened in: what names one, and which one a store may be made in."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .budget import reads_as_size
from .errors import ForeignDirectory, InvalidArgument, InvalidType, VelocError, from_os

log = logging.getLogger("velocpy")

#: File systems, by their devices' numbers, of which the log has told that they lie in memory.
_told: set[int] = set()

#: A directory with one of these is a store, or what damage has left of one; see docs/format.md.
_OF_A_STORE = re.compile(r"velocpy\.(store|copy)|(catalog|data)-[0-9a-f]{16}")

#: Names that velocpy, mkfs, file systems and version control make. They say nothing of a directory's use.
_OF_NOBODY = re.compile(
    r"lock|ballast|\.velocpy-.*|lost\+found|\.nfs.*|\.fuse_hidden.*|\.snapshots?|\.zfs|\.Trash.*|\.DS_Store"
    r"|\.git(keep|ignore)"
)

#: So many other files are counted, and so many of them are named.
_COUNTED, _NAMED = 1000, 3


def directory_of(path: Any, *, make: bool) -> Path | None:
    """The directory that a path names, absolute; None without a path.

    Parameters
    ----------
    make
        Whether it is made when it is missing.

    Raises
    ------
    InvalidArgument, InvalidType
        The path names no directory, or is a budget.
    AccessDenied, TierIOError
        The system refuses it.
    """
    if path is None:
        return None
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidType(
            f"path is a {type(path).__name__}; give the name of a directory. Budgets go by keyword: open(host=…)."
        )
    name = os.fspath(path)
    if not isinstance(name, str) or "\0" in name or name == "":
        raise InvalidArgument(f"path is {path!r}, which names no directory.")
    directory = Path(name).absolute()  # messages name it so that it is found from elsewhere too
    with using(directory):
        _require_directory(directory, path)
        if make:
            _make(directory, name)
    return directory


@contextlib.contextmanager
def using(directory: Path | None) -> Iterator[None]:
    """Turns what the system says of a directory into an exception of velocpy."""
    try:
        yield
    except OSError as error:
        if isinstance(error, VelocError):
            raise
        raise from_os(error, str(directory)) from error


def _require_directory(directory: Path, path: str | os.PathLike[str]) -> None:
    if isinstance(path, str) and reads_as_size(path) and not (directory / "velocpy.store").exists():
        tier = "device" if "%" in path else "host"
        raise InvalidArgument(
            f"path is {path!r}, which reads as a size. Nothing was made. Budgets go by keyword: open({tier}={path!r}); "
            f"a directory of that name is {'./' + path!r}."
        )
    if directory.exists() and not directory.is_dir():
        raise InvalidArgument(f"path {os.fspath(path)!r} is a file; give a directory.")


def _make(directory: Path, name: str) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            raise
        raise InvalidArgument(f"the directory {name!r} cannot be made: {error.strerror}.") from error


def identity_of(path: str) -> tuple[int, int] | None:
    """By what the kernel knows a directory, whatever its name; None where there is none."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def require_own(directory: Path) -> None:
    """Refuses to make a store among the files of others.

    Raises
    ------
    ForeignDirectory
        The directory has other files, and nothing of a store.
    """
    others: list[str] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if _OF_A_STORE.fullmatch(entry.name):
                return
            if len(others) <= _COUNTED and not _OF_NOBODY.fullmatch(entry.name):
                others.append(entry.name)
    if not others:
        return
    count = f"more than {_COUNTED}" if len(others) > _COUNTED else str(len(others))
    named = ", ".join(f"{name!r:.60}" for name in sorted(others)[:_NAMED])
    raise ForeignDirectory(
        f"the directory {str(directory)!r} has no store, and {count} files or folders of others: "
        f"{named}{', …' if len(others) > _NAMED else ''}. Nothing was changed there. Give the store a directory of its "
        f"own, as {str(directory / 'velocpy')!r}; files that go with the process (durable=False) may lie among others."
    )


def tell_of_memory(directory: Path, lasting: bool) -> None:
    """Logs a warning, once for each file system, when the files of a disk tier lie in memory (tmpfs)."""
    from .trial import filesystem, system  # opening a store in memory alone does without them

    try:
        device, kind = directory.stat().st_dev, system.magic(directory)
    except OSError:
        return  # the core tells what is wrong with it
    if kind not in filesystem.MEMORY or device in _told:
        return
    _told.add(device)
    log.warning(
        "the disk tier in %s lies in memory (%s): what goes there takes memory beside host=%s. Give a path on a disk%s",
        directory,
        filesystem.KINDS[kind].name,
        ", and is gone when the machine restarts" if lasting else "",
        "" if lasting else ", or set TMPDIR",
    )


def numbered(path: Path, word: str, number: int) -> Path:
    """The directory of one of several stores that lie beside each other: ``word-00003``."""
    return path / f"{word}-{number:05d}"


def numbers(path: Path, word: str) -> list[int]:
    """The numbers of the directories that `numbered` names and that are there, ascending.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from velocpy.paths import numbered, numbers
    >>> with tempfile.TemporaryDirectory() as path:
    ...     for number in (12, 3):
    ...         numbered(Path(path), "rank", number).mkdir()
    ...     numbers(Path(path), "rank"), numbers(Path(path, "none"), "rank")
    ([3, 12], [])
    """
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(f"{word}-") and entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    told = (name.removeprefix(f"{word}-") for name in names)
    return sorted(int(number) for number in told if len(number) >= 5 and number.isascii() and number.isdecimal())
