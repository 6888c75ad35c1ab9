"""Files that take the place of ordinary ones, or of none."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from velocpy import replacing
from velocpy.errors import InvalidArgument, TierIOError, VelocError


def require_ordinary(file: Path) -> None:
    """Refuses to replace what is no ordinary file."""
    try:
        mode = file.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise _failed(file, error) from error
    if not stat.S_ISREG(mode):
        kinds = ((stat.S_ISLNK, "link"), (stat.S_ISDIR, "folder"), (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"))
        kind = next((kind for is_one, kind in kinds if is_one(mode)), "device")
        raise InvalidArgument(f"{file} is a {kind}, which is not replaced; give the name of an ordinary or a new file.")


def place(file: Path, write: Callable[[Path], object]) -> None:
    """Writes a file in the place of an ordinary one, or of none.

    Raises
    ------
    TierIOError
        The former file is there still.
    """

    def written(beside: Path) -> None:
        write(beside)
        require_ordinary(file)

    try:
        replacing.replace(file, written)
    except VelocError:
        raise
    except OSError as error:
        raise _failed(file, error) from error


def _failed(file: Path, error: OSError) -> TierIOError:
    failure = TierIOError(f"{file} cannot be written: {error.strerror}. What was there before is there still.")
    failure.errno, failure.strerror = error.errno, error.strerror
    return failure


def open_ordinary(file: Path) -> BinaryIO:
    """An ordinary file, to be read.

    Raises
    ------
    InvalidArgument
        It is something else: a pipe would be waited for.
    TierIOError
    """
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise InvalidArgument(f"{file} is no ordinary file. Nothing was imported.")
        return file.open("rb")
    except OSError as error:
        raise unreadable(file, error) from error


def unreadable(file: Path, error: OSError) -> TierIOError:
    """The exception for a file that the system does not let read."""
    failure = TierIOError(f"{file} cannot be read: {error.strerror}. Nothing was imported.")
    failure.errno, failure.strerror = error.errno, error.strerror
    return failure
