"""The small file that stands for a checkpoint where Lightning expects a file.

It is JSON: where the store lies, from the folder of the file and from the root, the history and the key. A file that
replaces another one also has the key of that one, which counts until the new checkpoint is durable.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velocpy.errors import CorruptCheckpoint, FormatTooNew, InvalidArgument, TierIOError
from velocpy.replacing import replace, sync_directory

VERSION = 1
_FORMAT = "velocpy.lightning"
_BEGIN = json.dumps({"format": _FORMAT}).removesuffix("}").encode()

#: Most bytes of a marker.
_LIMIT = 1 << 20


@dataclass(frozen=True)
class Marker:
    """What a marker says."""

    #: The directory of the store.
    store: Path
    history: str
    key: str
    #: Keys of the checkpoints that the file stood for earlier and that may be there, the latest first.
    before: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the checkpoints that the file stands for: the first one that is durable counts."""
        return self.key, *self.before

    def write(self, file: Path) -> None:
        """Writes the marker in place of what is there: after a crash the file is the former one or this one.

        Raises
        ------
        TierIOError
            What was there is there still.
        """
        said = {
            "format": _FORMAT,
            "version": VERSION,
            "store": os.path.relpath(self.store, file.parent.resolve()),
            "absolute": str(self.store),
            "history": self.history,
            "key": self.key,
            "before": self.before,
        }
        try:
            _make_folder(file.parent)
            content = json.dumps(said, indent=1, separators=(",", ": ")).encode()
            replace(file, lambda beside: beside.write_bytes(content))
        except OSError as error:
            raise _failed(file, error) from error

    @classmethod
    def read(cls, file: Path) -> Marker | None:
        """What a marker says; None: there is no file, or it is another one.

        Raises
        ------
        CorruptCheckpoint, FormatTooNew
            It is a marker, and cannot be understood.
        """
        raw = _begin(file)
        if not raw.translate(None, b" \n").startswith(_BEGIN.replace(b" ", b"")):
            return None
        try:
            said = json.loads(raw)
            version = said["version"]
            if version == VERSION:
                return cls(_place(said, file), said["history"], said["key"], tuple(said["before"]))
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptCheckpoint(f"{file} is the marker of a checkpoint, and is damaged: {error!r}.") from error
        raise FormatTooNew(
            f"{file} is the marker of a checkpoint in version {version!r:.20}, and this velocpy reads version "
            f"{VERSION}. Nothing was changed; install a newer velocpy."
        )


def local(path: Any) -> Path:
    """The path of a file, from the root; links are not followed.

    Raises
    ------
    InvalidArgument
        It is the address of a remote file.
    """
    text = os.fspath(path)
    if "://" in text and not text.startswith("file://"):
        raise InvalidArgument(f"{text} is a remote file; VelocCheckpointIO saves checkpoints to local files.")
    return Path(text.removeprefix("file://")).absolute()


def local_or_none(path: Any) -> Path | None:
    """The same; None for a remote file."""
    with contextlib.suppress(InvalidArgument):
        return local(path)
    return None


def _begin(file: Path) -> bytes:
    """The first bytes of a file; none where there is no file."""
    try:
        with file.open("rb") as opened:
            return opened.read(_LIMIT) if opened.read(1) == b"{" and not opened.seek(0) else b""
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return b""
    except OSError as error:
        raise _failed(file, error) from error


def _place(said: dict[str, Any], file: Path) -> Path:
    """The directory of the store: beside the marker, as folders are moved together, or else where it was."""
    beside = Path(os.path.normpath(file.resolve().parent / said["store"]))
    return beside if beside.is_dir() else Path(said["absolute"])


def _make_folder(folder: Path) -> None:
    """Makes a folder, which then is there after a crash."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync_directory(made.parent)


def _failed(file: Path, error: OSError) -> TierIOError:
    failure = TierIOError(f"the marker {file} cannot be used: {error.strerror}. What was there before is there still.")
    failure.errno, failure.strerror = error.errno, error.strerror
    return failure
