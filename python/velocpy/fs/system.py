"""The file system."""

from __future__ import annotations

import errno
import os
import shutil
from collections import defaultdict
from datetime import datetime
from glob import has_magic
from typing import TYPE_CHECKING, Any

import fsspec
import numpy as np
from fsspec.utils import stringify_path

from velocpy.errors import InvalidArgument, InvalidType
from velocpy.times import from_nanoseconds

from .directory import Array, Change, Directory, Options, close_all, directory_at, sync_all
from .entries import Entry, Names
from .location import Location, absolute, ancestors, located, parent
from .reading import BLOCK, RawFile, ReadFile
from .writing import WriteFile

if TYPE_CHECKING:
    from velocpy.choices import Reduction, Size

_PROTOCOL = "velocpy"


class VelocFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Files in stores of velocpy, for everything that takes a URL of fsspec; `velocpy.fs` says how they lie there.

    A process opens the stores of a directory once, when they are needed first, and writes to one of them from its first
    write on. They are closed when Python exits, by `close` and by `clear_instance_cache`. A process that is forked from
    one that has used a store cannot use any (`ForkedProcessError`); start workers with "spawn" or "forkserver".

    Parameters
    ----------
    host
        Host memory, as for `velocpy.open`, of each store that is open. None: "auto" for the store that this process
        writes to, 64 MiB for those that it reads. Files may be larger.
    disk
        Disk, as for `velocpy.open`, of the store that this process writes to. None: "auto".
    reduce
        How files become smaller, as for `Store.history`; with ``"tree"`` those that repeat parts of others. Files that
        the host tier has no room for stay as they are. None: not at all.
    durable
        Whether closing a file waits until it is on disk. False: it is written in the background; `sync` waits.
        Removing, renaming and making directories always wait.

    Options are those of a directory: the first file system that opens it says which, and others give the same or none.

    Examples
    --------
    >>> import tempfile
    >>> from velocpy.fs import VelocFileSystem
    >>> fs = VelocFileSystem(host="16MiB", disk="1GiB")
    >>> with tempfile.TemporaryDirectory() as scratch:
    ...     run = f"velocpy://{scratch}/run.velocpy"
    ...     with fs.open(f"{run}/step-100/losses.txt", "w") as file:
    ...         _ = file.write("0.9 0.5")
    ...     fs.mv(f"{run}/step-100/losses.txt", f"{run}/losses.txt")
    ...     print([name.rpartition("/")[2] for name in fs.ls(run, detail=False)])
    ...     print(fs.cat_file(f"{run}/losses.txt", start=-3))
    ...     fs.close()
    ['losses.txt']
    b'0.5'

    A checkpoint of torch.distributed, by its path alone; installing velocpy tells fsspec of ``velocpy://``, here it is
    told so:

    >>> import fsspec, torch, warnings
    >>> import torch.distributed.checkpoint as dcp
    >>> fsspec.register_implementation("velocpy", VelocFileSystem, clobber=True)
    >>> warnings.simplefilter("ignore", UserWarning)  # DCP warns of one process alone, and that it cannot call fsync
    >>> with tempfile.TemporaryDirectory() as scratch:
    ...     step = f"velocpy://{scratch}/run.velocpy/step-100"
    ...     _ = dcp.save({"w": torch.arange(4.0), "step": 100}, checkpoint_id=step, no_dist=True)
    ...     state = {"w": torch.zeros(4), "step": 0}
    ...     dcp.load(state, checkpoint_id=step, no_dist=True)
    ...     VelocFileSystem.clear_instance_cache()
    >>> state
    {'w': tensor([0., 1., 2., 3.]), 'step': 100}
    """

    protocol = _PROTOCOL
    root_marker = "/"

    def __init__(
        self,
        *args: Any,
        host: Size | None = None,
        disk: Size | None = None,
        reduce: Reduction | None = None,
        durable: bool = True,
        **storage_options: Any,
    ) -> None:
        super().__init__(*args, **storage_options)
        if not isinstance(durable, bool):
            raise InvalidType(f"durable is True or False, not of type {type(durable).__name__}.")
        self._options = Options(host, disk, reduce)
        self._durable = durable

    # --- paths ---

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        path = stringify_path(path)
        for prefix in (f"{_PROTOCOL}://", f"{_PROTOCOL}::"):
            path = path.removeprefix(prefix)
        return absolute(path) if path else cls.root_marker

    def _at(self, path: Any) -> tuple[Directory, Location]:
        location = located(self._strip_protocol(path))
        return directory_at(location.directory, self._options), location

    # --- what is there ---

    def info(self, path: Any, **kwargs: Any) -> dict[str, Any]:
        """Name, size, type and time of writing of a file; of a directory, size 0."""
        directory, location = self._at(path)
        names = directory.names()
        if not location.name and not directory.exists():
            raise _missing(location.path())
        return _info(names, location)

    def ls(self, path: Any, detail: bool = True, **kwargs: Any) -> list[Any]:
        """What is in a directory, or the file itself, in the order of the names."""
        directory, location = self._at(path)
        names = directory.names()
        if names.is_file(location.name):
            found = [location]
        elif names.is_directory(location.name) and (location.name or directory.exists()):
            below = f"{location.name}/" if location.name else ""
            found = [Location(location.directory, below + child) for child in names.children(location.name)]
        else:
            raise _missing(location.path())
        return [_info(names, each) for each in found] if detail else [each.path() for each in found]

    def created(self, path: Any) -> datetime:
        """When the file was written, in UTC; a file that takes the place of another is a new one."""
        return self._file(path)[2]["created"]  # type: ignore[no-any-return]

    def modified(self, path: Any) -> datetime:
        """As `created`: files do not change."""
        return self.created(path)

    def _file(self, path: Any) -> tuple[Directory, Location, dict[str, Any], Entry]:
        """A file that is there."""
        directory, location = self._at(path)
        names = directory.names()
        entry = names.get(location.name)
        if entry is not None and entry.kind == "file":
            return directory, location, _info(names, location), entry
        if names.is_directory(location.name):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), location.path())
        raise _missing(location.path())

    # --- bytes ---

    def cat_file(self, path: Any, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        """The bytes of a file from ``start`` to ``end``, which count as in a slice; no others are read."""
        directory, location, _, entry = self._file(path)
        begin, stop, _ = slice(start, end).indices(entry.size)
        into: Array = np.empty(max(0, stop - begin), np.uint8)
        directory.read(location.name, entry, begin, into)
        return into.tobytes()

    def _open(
        self,
        path: Any,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Opens a file: "rb", "wb", "xb" (only where there is none) or "ab" (reads the former file into memory)."""
        if mode == "rb":
            directory, location, _, entry = self._file(path)
            return ReadFile(self, location.path(), RawFile(directory, location.name, entry), block_size)
        if mode not in ("wb", "xb", "ab"):
            raise InvalidArgument(f'the mode is {mode!r}; a file of velocpy:// is opened as "rb", "wb", "xb" or "ab".')
        return self._opened_to_write(path, mode, autocommit)

    def _opened_to_write(self, path: Any, mode: str, autocommit: bool) -> WriteFile:
        directory, location = self._at(path)
        exclusive = mode == "xb"
        _require_writable(directory.names(), location, exclusive)

        def commit(data: Array) -> None:
            _require_writable(directory.names(), location, exclusive)
            directory.write([Change(location.name, "file", data)], durable=self._durable)

        file = WriteFile(self, location.path(), mode, commit, autocommit=autocommit)
        if mode == "ab" and directory.names().is_file(location.name):
            with self._open(path) as former:
                shutil.copyfileobj(former, file, BLOCK)
        return file

    def cp_file(self, path1: Any, path2: Any, **kwargs: Any) -> None:
        """Copies a file, through memory, or makes a directory as another one."""
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
            return
        with self._open(path1) as former, self._open(path2, "wb") as file:
            shutil.copyfileobj(former, file, BLOCK)

    # --- changes of names ---

    def mkdir(self, path: Any, create_parents: bool = True, **kwargs: Any) -> None:
        """Makes a directory, which stays when it is empty, and those above it."""
        directory, location = self._at(path)
        names = directory.names()
        if names.is_directory(location.name) and (location.name or directory.exists()):
            raise _there(location.path())
        _require_no_file(names, location)
        if not create_parents and not names.is_directory(parent(location.name)):
            raise _missing(Location(location.directory, parent(location.name)).path())
        wanted = [name for name in (location.name, *ancestors(location.name)) if name and names.get(name) is None]
        directory.write([Change(name, "directory") for name in reversed(wanted)])

    def makedirs(self, path: Any, exist_ok: bool = False) -> None:
        """Makes a directory and those above it."""
        try:
            self.mkdir(path)
        except FileExistsError:
            if not exist_ok or not self.isdir(path):
                raise

    def rmdir(self, path: Any) -> None:
        """Removes an empty directory."""
        if not self.isdir(path):
            raise _missing(self._strip_protocol(path))
        self.rm(path)

    def rm_file(self, path: Any) -> None:
        """Removes a file."""
        directory, location, _, _ = self._file(path)
        directory.remove([location.name])

    _rm = rm_file

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Removes files and directories, these with all that is in them if ``recursive``.

        They are gone for all processes, durably, when it returns. The directory of the stores stays.
        """
        chosen: dict[str, set[Location]] = defaultdict(set)
        for each in self.expand_path(path, recursive=recursive, maxdepth=maxdepth):
            location = located(each)
            chosen[location.directory].add(location)
        for name, locations in chosen.items():
            directory = directory_at(name, self._options)
            wanted = {location.name for location in locations}
            names = directory.names()
            for location in sorted(locations):
                _require_removable(names, location, wanted)
            directory.remove(sorted(name for name in wanted if names.get(name) is not None))

    def mv(self, path1: Any, path2: Any, recursive: bool = False, maxdepth: int | None = None, **kwargs: Any) -> None:
        """Moves files: the new ones are durable before the old ones are removed. A crash may leave both."""
        if isinstance(path1, str) and isinstance(path2, str) and not has_magic(path1):
            recursive = recursive or self.isdir(path1)
            if self._stays(path1, path2):
                return
        self.copy(path1, path2, recursive=recursive, maxdepth=maxdepth, on_error="raise")
        if not self._durable:
            self.sync()
        self.rm(path1, recursive=recursive, maxdepth=maxdepth)

    def rename(self, path1: Any, path2: Any, **kwargs: Any) -> None:
        """As `mv`."""
        self.mv(path1, path2, **kwargs)

    def _stays(self, path1: str, path2: str) -> bool:
        """Whether a file or directory would move to where it is.

        Raises
        ------
        InvalidArgument
            A directory would move into itself.
        """
        old, new = self._strip_protocol(path1), self._strip_protocol(path2)
        info = self.info(old)
        if old != new and self.isdir(new):
            new = f"{new}/{old.rpartition('/')[2]}"
        if info["type"] == "directory" and new.startswith(f"{old}/"):
            raise InvalidArgument(f"the directory {old!r} cannot move into itself, to {new!r}. Nothing was changed.")
        return bool(old == new)

    # --- stores ---

    def sync(self) -> None:
        """Waits until all files that this process has closed are durable; needed with ``durable=False`` alone."""
        sync_all()

    def sweep(self, path: Any) -> None:
        """Frees the bytes of files that other processes have removed or replaced, in stores that none has open."""
        self._at(path)[0].sweep()

    def close(self) -> None:
        """Closes all stores of this process that file systems have opened; a later call opens them again."""
        close_all()

    @classmethod
    def clear_instance_cache(cls) -> None:
        """Forgets the file systems that fsspec keeps, and closes their stores."""
        close_all()
        super().clear_instance_cache()


def _info(names: Names, location: Location) -> dict[str, Any]:
    entry = names.get(location.name)
    if entry is not None and entry.kind == "file":
        written = from_nanoseconds(entry.stamp)
        return {"name": location.path(), "size": entry.size, "type": "file", "created": written, "mtime": written}
    if names.is_directory(location.name):
        return {"name": location.path(), "size": 0, "type": "directory"}
    raise _missing(location.path())


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _there(path: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)


def _require_no_file(names: Names, location: Location) -> None:
    """Refuses a new directory where there is a file, or below one."""
    if names.is_file(location.name):
        raise _there(location.path())
    for name in ancestors(location.name):
        if names.is_file(name):
            path = Location(location.directory, name).path()
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)


def _require_writable(names: Names, location: Location, exclusive: bool) -> None:
    """Refuses a file where there is a directory, or below a file; with ``exclusive`` also where there is a file."""
    if not location.name or names.is_directory(location.name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), location.path())
    if exclusive or not names.is_file(location.name):
        _require_no_file(names, location)


def _require_removable(names: Names, location: Location, wanted: set[str]) -> None:
    """Refuses what is not there, and a directory in which something stays."""
    if names.is_file(location.name):
        return
    if not names.is_directory(location.name):
        raise _missing(location.path())
    below = f"{location.name}/" if location.name else ""
    if any(below + child not in wanted for child in names.children(location.name)):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), location.path())
