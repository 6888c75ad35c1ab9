"""The directory that is looked at, and the one of the doctor's own inside it."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import time
import zlib
from pathlib import Path
from types import TracebackType

# Machine, process, any number. A stray is one whose process was killed.
_FORM = ".velocpy-doctor-{machine:08x}-{process}-{tag}"
_NAME = re.compile(r"\.velocpy-doctor-([0-9a-f]{8})-([0-9]{1,10})-[0-9a-f]{16}")

#: Seconds after which one is a stray whatever its name says: no doctor takes that long.
STRAY_AGE = 600.0


class Place:
    """A directory. The room in it is made when it is first used, and removed at the end of the ``with``.

    The room holds plain files alone.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._room: Path | None = None

    @property
    def room(self) -> Path:
        """The doctor's own directory."""
        if self._room is None:
            name = _FORM.format(machine=_machine(), process=os.getpid(), tag=secrets.token_hex(8))
            self._room = self.path / name  # known before it is there: an end in between removes it too
            try:
                self._room.mkdir(mode=0o700)
            except OSError:
                self._room = None
                raise
        return self._room

    def __enter__(self) -> Place:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._room is not None:
            remove(self._room)
            self._room = None

    def remove_strays(self) -> int:
        """Removes what killed doctors have left, as far as it is this user's; how many directories."""
        with contextlib.suppress(OSError), os.scandir(self.path) as entries:
            return sum(remove(self.path / entry.name) for entry in entries if _is_stray(entry))
        return 0


def remove(room: Path) -> bool:
    """Removes a directory of plain files; whether it has gone."""
    with contextlib.suppress(OSError):
        with os.scandir(room) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            with contextlib.suppress(OSError):
                (room / name).unlink()
        room.rmdir()
        return True
    return False


def _is_stray(entry: os.DirEntry[str]) -> bool:
    match = _NAME.fullmatch(entry.name)
    try:
        if match is None or not entry.is_dir(follow_symlinks=False):
            return False
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    if status.st_uid != os.geteuid():
        return False
    here = int(match[1], 16) == _machine()
    return (here and not _lives(int(match[2]))) or time.time() - status.st_mtime > STRAY_AGE


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _machine() -> int:
    """A number for this machine, as its network names it."""
    return zlib.crc32(socket.gethostname().encode())
