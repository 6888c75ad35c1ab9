"""Where checkpoints of ranks go, and how they get there."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from velocpy.budget import parse_size, reads_as_size
from velocpy.checks import require_seconds, require_whole
from velocpy.errors import InvalidArgument, InvalidType

from . import buckets
from .alone import Options, store_path

if TYPE_CHECKING:
    from velocpy.backup import Place

__all__ = ["Destination"]

#: The most files that an archive has, the most goroutines, each with 4 MiB, that copy, and the most buffers. Then the
#: longest buffer, and the longest stripe.
_MOST_FILES, _MOST_WRITERS, _MOST_BUFFERS = 1 << 17, 1 << 10, 1 << 8
_MOST_BUFFER = 1 << 30

#: Bytes of a buffer, and how many there are for sending, and again for receiving.
_BUFFER, _BUFFERS = 4 << 20, 8


@dataclass(frozen=True)
class Destination:
    """An archive, and how checkpoints get there: for ``velocpy.open(archive=)``.

    All ranks give the same. What is wrong with it raises when the store is opened.

    A key that is captured anew gets there when all ranks have captured it as often; until then the archive has the old
    versions of all. So of a key that ranks capture at rates of their own, it may never have a new one.

    Examples
    --------
    >>> import numpy, tempfile, velocpy
    >>> from velocpy.archive import Destination
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to = Destination(folder + "/archive", every=0.1)
    ...     with velocpy.open(folder + "/rank-0", host="16MiB", disk="1GiB", archive=to) as store:
    ...         store.history("forward").checkpoint(0, u=numpy.zeros(10)).wait("archive", timeout=60)
    ...     with velocpy.open(folder + "/archive", mode="r") as archive:
    ...         print(list(archive.history("forward")))
    [0]
    """

    #: A directory, which is made if there is none, or ``"s3://bucket/prefix"``.
    path: Place
    #: As the parameters of `velocpy.archive.push`.
    files: int | None = None
    partial: bool = False
    histories: Iterable[str] | None = None
    writers: int | None = None
    leaders: int | None = None
    buffer: int | str | None = None
    buffers: int | None = None
    stripe: int | str | None = None
    #: Seconds between two looks at whether a rank has something new, at least, and as many as the last push has taken.
    #: All ranks look together.
    every: float = 1.0
    #: Seconds that a rank waits for the others, who look as often; None: as long as it takes. It has to be longer than
    #: a push of what one look finds.
    timeout: float | None = None

    def _options(self) -> Options:
        """What all ranks have to agree about."""
        if isinstance(self.path, str) and reads_as_size(self.path) and not Path(self.path).is_dir():
            raise InvalidArgument(
                f"archive is {self.path!r}, which reads as a size. Nothing was made. An archive has no budget: give a "
                f"directory; one of that name is {'./' + self.path!r}."
            )
        return Options(
            self._place(),
            None if self.files is None else _at_most("files", self.files, _MOST_FILES),
            None if self.writers is None else _at_most("writers", self.writers, _MOST_WRITERS),
            bool(self.partial),
            None if self.histories is None else tuple(sorted(set(_names(self.histories)))),
            _BUFFER if self.buffer is None else _whole_pages("buffer", self.buffer),
            _BUFFERS if self.buffers is None else _at_most("buffers", self.buffers, _MOST_BUFFERS),
            None if self.leaders is None else require_whole("leaders", self.leaders, 1),
            None if self.stripe is None else _whole_pages("stripe", self.stripe),
        )

    def _place(self) -> Path | str:
        if not buckets.is_place(self.path):
            return store_path(self.path, None, "archive")
        for name, given in ("files", self.files), ("leaders", self.leaders), ("stripe", self.stripe):
            if given is not None:
                raise InvalidArgument(
                    f"{name} is {given!r}, and an archive in a bucket has no files that ranks share. Leave it out. "
                    "Nothing was changed."
                )
        return buckets.require_place(str(self.path))

    def _pause(self) -> float:
        return require_seconds("every", self.every)

    def _patience(self) -> float | None:
        return None if self.timeout is None else require_seconds("timeout", self.timeout)


def _at_most(name: str, value: Any, most: int) -> int:
    if (number := require_whole(name, value, 1)) > most:
        raise InvalidArgument(f"{name} is {number}; give a number from 1 to {most}.")
    return number


def _whole_pages(name: str, given: int | str) -> int:
    nbytes = parse_size(given, name)
    if not mmap.PAGESIZE <= nbytes <= _MOST_BUFFER or nbytes % mmap.PAGESIZE:
        raise InvalidArgument(
            f"{name} is {given!r}; give a multiple of {mmap.PAGESIZE} bytes, at most {_MOST_BUFFER >> 30} GiB."
        )
    return nbytes


def _names(histories: Iterable[str]) -> list[str]:
    names = [histories] if isinstance(histories, str) else list(histories)
    for name in names:
        if not isinstance(name, str):
            raise InvalidType(f"histories= has {name!r}, which is no name of a history.")
    return names
