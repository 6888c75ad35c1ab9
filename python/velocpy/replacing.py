"""Files that take the place of others as a whole: after a crash there is the former one or the new one."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path


def replace(file: Path, write: Callable[[Path], object]) -> None:
    """Lets ``write`` write a file beside ``file``, makes it durable, and gives it the name of ``file``.

    After an exception, of ``write`` or of the file system, there is what was there before.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from velocpy.replacing import replace
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace(Path(folder, "a"), lambda beside: beside.write_text("new"))
    ...     print(Path(folder, "a").read_text(), len(list(Path(folder).iterdir())))
    new 1
    """
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        write(beside)
        with beside.open("rb") as written:
            os.fsync(written.fileno())
        beside.replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    sync_directory(file.parent)


def sync_directory(directory: Path) -> None:
    """Makes the names in a directory durable: files that were made, renamed or removed there."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
