"""Checkpoints as files of other formats, and back: safetensors and NumPy's npz.

Examples
--------
>>> import numpy, tempfile, velocpy
>>> from velocpy import interchange
>>> with tempfile.TemporaryDirectory() as directory:
...     with velocpy.open(directory + "/store", host="16MiB", disk="1GiB") as store:
...         _ = store.history("run").checkpoint(7, u=numpy.arange(3.0))
...     interchange.export(directory + "/store", "run", 7, directory + "/state.npz")
...     numpy.load(directory + "/state.npz")["u"]
array([0., 1., 2.])
"""

from __future__ import annotations

import json
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _core, replacing
from .arrays import dtype_from_text
from .errors import InvalidArgument, InvalidType, TierIOError, VelocError
from .extra import MissingExtra
from .ondisk import Checkpoint, Key, describe
from .opening import open as open_store
from .quantity import exact

__all__ = ["FORMATS", "export", "import_"]

#: What a file may be, by the end of its name too.
FORMATS = ("safetensors", "npz")

Place = str | os.PathLike[str]
#: The arrays of a file, and the meta as JSON, or None.
_Content = tuple[dict[str, np.ndarray[Any, Any]], str | None]


def export(path: Place, history: str, key: Key, file: Place, format: str | None = None) -> None:  # noqa: A002
    """Writes a checkpoint into a file; the bytes are verified before.

    The file is there as a whole or not at all. It takes memory for the checkpoint. The meta goes along: in safetensors
    as the metadata "velocpy.meta", in npz as the archive's comment, where others do not mind it.

    Parameters
    ----------
    path
        The store; nothing in it is changed.
    history, key
        The checkpoint. Regions of a sequence are named "0", "1" and so on in the file. Of a tree the arrays are in it,
        named by their paths; its structure and its values are not.
    file
        Where it goes; an ordinary file of this name is replaced, and nothing else is: no link, device, pipe or folder.
    format
        "safetensors" or "npz"; None: as the name ends.

    Raises
    ------
    CheckpointNotFound, CorruptCheckpoint, NotAStore, TierIOError
        Nothing was written.
    InvalidArgument
        Something that is no ordinary file has this name.
    InvalidType
        The format does not know a region's dtype, cannot have its name, or has no room for the meta (npz: 65535 bytes).
    MissingExtra
        The library of the format is not installed.
    """
    write = _WRITERS[_format(file, format)]
    _require_ordinary(Path(file))
    known = describe(path, history, key)
    room = known.slot_nbytes + (2 << 20)
    with open_store(path, mode="r", host=room, verify="always") as store, store.history(history).restore(key) as lease:
        arrays = _arrays(known, lease._held())
        meta = _meta_text(lease.meta)
        _replace(Path(file), lambda beside: write(beside, arrays, meta))
        arrays.clear()


def import_(file: Place, path: Place, history: str, key: Key, format: str | None = None) -> None:  # noqa: A002
    """Writes what a file has into a store, as one checkpoint, and returns when that is durable.

    The meta that `export` has written along is the checkpoint's.

    Parameters
    ----------
    file
        What `export` has written, or another library.
    path
        The store, made when there is none; a checkpoint of this key is replaced.
    history, key
        Where it goes.
    format
        "safetensors" or "npz"; None: as the name ends.

    Raises
    ------
    StoreLocked
        While a process writes to the store.
    InvalidArgument
        The file is not what it ought to be. Pickled objects are never read.
    TierFull, TierIOError
        There is no room, or the disk fails.

    Examples
    --------
    >>> import numpy, tempfile, velocpy
    >>> from velocpy import interchange
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     numpy.savez(directory + "/state.npz", u=numpy.ones(2))
    ...     interchange.import_(directory + "/state.npz", directory + "/store", "run", "first")
    ...     with velocpy.open(directory + "/store", mode="r", host="16MiB") as store:
    ...         print(store.history("run").restore("first")["u"])
    [1. 1.]
    """
    arrays, meta = _READERS[_format(file, format)](Path(file))
    if not arrays:
        raise InvalidArgument(f"{os.fspath(file)} has no arrays.")
    room = sum(array.nbytes + 4096 for array in arrays.values()) + (2 << 20)
    with open_store(path, host=room, disk="auto") as store:
        store.history(history).checkpoint(key, arrays, meta=_meta(file, meta)).wait("disk")


def _meta_text(meta: Any) -> str | None:
    try:
        return None if meta is None else json.dumps(meta, separators=(",", ":"))
    except RecursionError as error:
        raise InvalidType(f"the meta is nested too deep to be written again: {error}.") from None


def _meta(file: Place, text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{os.fspath(file)} has a meta that is no JSON: {error}.") from None


def _format(file: Place, given: str | None) -> str:
    format_ = given or Path(file).suffix.lstrip(".").lower()
    if format_ not in FORMATS:
        raise InvalidArgument(
            f"format is {format_!r}; it can be {' or '.join(FORMATS)}, by itself or as the name ends."
        )
    return format_


@dataclass(frozen=True)
class _Array:
    """The bytes of a region in C order, and what they are."""

    dtype: str
    shape: tuple[int, ...]
    elements: np.ndarray[Any, Any]  # of voids: no library has to know the dtype


def _arrays(known: Checkpoint, memory: _core.LeaseMemory) -> dict[str, _Array]:
    """The regions by their names in the file; without a copy where they lie in C order."""
    arrays = {}
    for number, region in enumerate(known.regions):
        text, itemsize, shape, strides = memory.description(number)
        if itemsize == 0 or 0 in shape:
            elements = np.zeros(0, np.uint8)
        else:
            elements = np.ndarray(shape, f"V{itemsize}", memory.raw(number), strides=strides)
        arrays[_name(region.name)] = _Array(text, shape, np.ascontiguousarray(elements))
    if len(arrays) < len(known.regions):
        raise InvalidArgument("two regions of the checkpoint would have one name in the file.")
    return arrays


def _name(label: str | int) -> str:
    """The name of a region in a file, which is UTF-8 in both formats."""
    name = str(label)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidType(f"region {name!r} has a lone surrogate in its name, which no file can have.") from None
    return name


#: What the meta is called in a file: the name of safetensors' metadata, and how an npz archive's comment begins.
_META = "velocpy.meta"
_COMMENT = _META.encode() + b"="


#: Bytes of a name in an archive, behind which ".npy" stands.
_LONGEST = 65_000


def _leads_away(name: str) -> bool:
    """Whether a program that unpacks an archive might write outside of its folder, or elsewhere in it."""
    parts = re.split(r"[/\\]", name)
    return name.startswith(("/", "\\")) or ".." in parts or "\0" in name or re.match("[A-Za-z]:", name) is not None


def _plain(name: str, array: _Array) -> np.ndarray[Any, Any]:
    """The array as npz keeps it, which needs no more memory than the region."""
    dtype = dtype_from_text(array.dtype)
    if array.elements.size:
        return np.ndarray(array.shape, dtype, array.elements)
    try:
        return np.empty(array.shape, dtype)
    except ValueError:  # without elements the other extents may still be more than NumPy counts
        raise InvalidType(
            f"npz knows no array of shape {array.shape} and dtype {array.dtype} (region {name!r}); safetensors may."
        ) from None


def _write_npz(file: Path, arrays: Mapping[str, _Array], meta: str | None) -> None:
    comment = b"" if meta is None else _COMMENT + meta.encode()
    if len(comment) > zipfile.ZIP_MAX_COMMENT:
        raise InvalidType(f"npz has room for a meta of {exact(zipfile.ZIP_MAX_COMMENT)}; safetensors takes this one.")
    plain = {}
    for name, array in arrays.items():
        if _leads_away(name) or len(name.encode()) > _LONGEST:
            raise InvalidType(
                f"npz is an archive of files, and {name!r:.80} cannot be the name of one in a folder; safetensors "
                "takes this region."
            )
        if array.dtype.startswith("="):
            raise InvalidType(f"npz knows no dtype {array.dtype[1:]} (region {name!r}); safetensors may.")
        plain[name] = _plain(name, array)
    with file.open("xb") as to, zipfile.ZipFile(to, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.comment = comment
        for name, values in plain.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, values, allow_pickle=False)


#: Whatever NumPy and the library of archives raise for a file that is none.
_NO_NPZ = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def _read_npz(file: Path) -> _Content:
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise InvalidArgument(f"{file} is no npz file, but one array.")
            comment = archive.zip.comment if archive.zip is not None else b""
            meta = comment[len(_COMMENT) :].decode() if comment.startswith(_COMMENT) else None
            return {name: _entry(file, archive, name) for name in archive.files}, meta
    except VelocError:
        raise
    except _NO_NPZ as error:
        raise InvalidArgument(f"{file} is no npz file that can be read: {error}.") from None


def _entry(file: Path, archive: Any, name: str) -> np.ndarray[Any, Any]:
    if _leads_away(name):
        raise InvalidArgument(f"{file} has an entry {name!r:.80}, which is no name in a folder; nothing was imported.")
    values = archive[name]
    if not isinstance(values, np.ndarray):
        raise InvalidArgument(f"{file} has an entry {name!r:.80} that is no array; nothing was imported.")
    return values


#: safetensors' names of dtypes as texts of ours.
_SAFE = {
    "BOOL": "|b1",
    "U8": "|u1",
    "I8": "|i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "C64": "<c8",
    "BF16": "=bfloat16",
    "F8_E4M3": "=float8_e4m3fn",
    "F8_E5M2": "=float8_e5m2",
}


def _write_safetensors(file: Path, arrays: Mapping[str, _Array], meta: str | None) -> None:
    library = _safetensors()
    tensors, held = {}, []
    for name, array in arrays.items():
        if name == "__metadata__":
            raise InvalidType(f"safetensors keeps the name {name!r} for itself; npz takes this region.")
        text = array.dtype.replace(">", "<")
        if text not in _SAFE.values():
            raise InvalidType(f"safetensors knows no dtype {array.dtype} (region {name!r}); npz does.")
        elements = array.elements
        if text != array.dtype:  # the bytes of an element the other way round
            elements = elements.view(dtype_from_text(array.dtype)).astype(dtype_from_text(text))
        known = text[1:] if text.startswith("=") else np.dtype(text).name
        held.append(elements)  # what is written is read from where it lies
        place = {"data_ptr": elements.ctypes.data, "data_len": elements.nbytes}
        tensors[name] = library.TensorSpec(dtype=known, shape=list(array.shape), **place)
    try:
        library.serialize_file(tensors, str(file), None if meta is None else {_META: meta})
    except library.SafetensorError as error:
        raise InvalidType(f"safetensors cannot write this: {error}.") from None


def _read_safetensors(file: Path) -> _Content:
    library = _safetensors()
    try:
        tensors = library.deserialize(file.read_bytes())
        with library.safe_open(file, framework="numpy") as opened:
            meta = (opened.metadata() or {}).get(_META)
    except library.SafetensorError as error:
        raise InvalidArgument(f"{file} is no safetensors file: {error}.") from None
    arrays = {}
    for name, tensor in tensors:
        if tensor["dtype"] not in _SAFE:
            raise InvalidType(f"{file} has a tensor {name!r} of dtype {tensor['dtype']}, which is not known here.")
        dtype = dtype_from_text(_SAFE[tensor["dtype"]])
        arrays[name] = np.frombuffer(tensor["data"], dtype).reshape(tensor["shape"])
    return arrays, meta


def _safetensors() -> Any:
    try:
        import safetensors
    except ImportError:
        raise MissingExtra("safetensors", "safetensors", "this format") from None
    return safetensors


_WRITERS: dict[str, Callable[[Path, Mapping[str, _Array], str | None], None]] = {
    "safetensors": _write_safetensors,
    "npz": _write_npz,
}
_READERS: dict[str, Callable[[Path], _Content]] = {
    "safetensors": _read_safetensors,
    "npz": _read_npz,
}


def _require_ordinary(file: Path) -> None:
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


def _failed(file: Path, error: OSError) -> TierIOError:
    failure = TierIOError(f"{file} cannot be written: {error.strerror}. What was there before is there still.")
    failure.errno, failure.strerror = error.errno, error.strerror
    return failure


def _replace(file: Path, write: Callable[[Path], None]) -> None:
    """Writes a file in the place of an ordinary one, or of none."""

    def written(beside: Path) -> None:
        write(beside)
        _require_ordinary(file)

    try:
        replacing.replace(file, written)
    except VelocError:
        raise
    except OSError as error:
        raise _failed(file, error) from error
