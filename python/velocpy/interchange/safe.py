"""safetensors: a header that says where the elements of each tensor lie in the file, in one file or in several."""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from velocpy.arrays import dtype_from_text
from velocpy.errors import InvalidArgument, InvalidType, TierIOError
from velocpy.quantity import exact
from velocpy.replacing import sync_directory

from .content import Content, Facts, Outgoing, elements_in
from .placing import open_ordinary, place, require_ordinary, unreadable

SUFFIX = ".safetensors"
#: How the file ends that says which of several files has a tensor.
INDEX = ".safetensors.index.json"

#: The name of the metadata in a header, and those of the meta and of the library's mark among them.
_METADATA = "__metadata__"
_META = "velocpy.meta"
_FORMAT = "format"

#: Most bytes of a header: the format's limit.
_LONGEST = 100_000_000
#: Most bytes of an index that is read.
_LONGEST_INDEX = 1 << 30

#: The format's names of dtypes as texts of ours, with the bytes of an element.
_DTYPES = {
    "BOOL": ("|b1", 1),
    "U8": ("|u1", 1),
    "I8": ("|i1", 1),
    "F8_E4M3": ("=float8_e4m3fn", 1),
    "F8_E5M2": ("=float8_e5m2", 1),
    "F8_E8M0": ("=float8_e8m0fnu", 1),
    "U16": ("<u2", 2),
    "I16": ("<i2", 2),
    "F16": ("<f2", 2),
    "BF16": ("=bfloat16", 2),
    "U32": ("<u4", 4),
    "I32": ("<i4", 4),
    "F32": ("<f4", 4),
    "U64": ("<u8", 8),
    "I64": ("<i8", 8),
    "F64": ("<f8", 8),
    "C64": ("<c8", 8),
}
_NAMES = {text: (name, nbytes) for name, (text, nbytes) in _DTYPES.items()}


@dataclass
class _Shard:
    """The tensors of one file."""

    names: list[str] = field(default_factory=list)
    nbytes: int = 0


def write(file: Path, outgoing: Outgoing, *, max_shard: int | None, copies: bool) -> list[Path]:
    """Writes a checkpoint, as one file or as several with an index; returns the files.

    Parameters
    ----------
    max_shard
        Most bytes of tensors in one file; a tensor that is larger has a file of its own. None: one file.
    copies
        Whether tied tensors are written under each of their names; otherwise the metadata name them.
    """
    tensors = {name: _known(name, facts) for name, facts in outgoing.regions.items()}
    sources = {name: name for name in tensors}
    if copies:
        for tied, kept in outgoing.ties.items():
            tensors[tied], sources[tied] = tensors[kept], kept
    if _METADATA in tensors:
        raise InvalidType(f"safetensors keeps the name {_METADATA!r} for itself; npz takes this region.")
    # Larger elements first, so that each lies at a multiple of its size.
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    shards = _split(order, tensors, max_shard)
    ties = {} if copies else outgoing.ties
    headers = [_header(shard, tensors, _metadata(shard, outgoing.meta, ties)) for shard in shards]

    def writer(shard: _Shard, header: bytes) -> Any:
        return lambda beside: _write(beside, header, shard, tensors, sources, outgoing)

    if len(shards) == 1:
        place(file, writer(shards[0], headers[0]))
        return [file]
    stem = file.name.removesuffix(SUFFIX)
    parts = [file.with_name(f"{stem}-{n:05}-of-{len(shards):05}{SUFFIX}") for n in range(1, len(shards) + 1)]
    index = file.with_name(f"{stem}{INDEX}")
    for each in (*parts, index):
        require_ordinary(each)
    staged = [each.with_name(f".{each.name}.new") for each in parts]
    try:
        # An earlier set of files of the same names stays whole until all of the new ones are written.
        for each, shard, header in zip(staged, shards, headers, strict=True):
            place(each, writer(shard, header))
        for each, final in zip(staged, parts, strict=True):
            each.replace(final)
        sync_directory(file.parent)
    except OSError as error:
        if isinstance(error, TierIOError):
            raise
        failure = TierIOError(f"{file} cannot be written: {error.strerror}.")
        failure.errno, failure.strerror = error.errno, error.strerror
        raise failure from error
    finally:
        for each in staged:
            with suppress(OSError):
                each.unlink()
    places = {name: part.name for part, shard in zip(parts, shards, strict=True) for name in shard.names}
    said = {
        "metadata": {"total_size": sum(shard.nbytes for shard in shards)},
        "weight_map": dict(sorted(places.items())),
    }
    place(index, lambda beside: beside.write_text(json.dumps(said, indent=2, ensure_ascii=False) + "\n", "utf-8"))
    return [*parts, index]


@dataclass(frozen=True)
class _Tensor:
    dtype: str
    #: As a text of ours.
    text: str
    itemsize: int
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return elements_in(self.shape) * self.itemsize


def _known(name: str, facts: Facts) -> _Tensor:
    text = facts.dtype.replace(">", "<")
    if text not in _NAMES:
        raise InvalidType(f"safetensors knows no dtype {facts.dtype} (region {name!r}); npz does.")
    dtype, itemsize = _NAMES[text]
    return _Tensor(dtype, text, itemsize, facts.shape)


def _split(names: Iterable[str], tensors: Mapping[str, _Tensor], most: int | None) -> list[_Shard]:
    shards = [_Shard()]
    for name in names:
        nbytes = tensors[name].nbytes
        if most is not None and shards[-1].names and shards[-1].nbytes + nbytes > most:
            shards.append(_Shard())
        shards[-1].names.append(name)
        shards[-1].nbytes += nbytes
    return shards


def _metadata(shard: _Shard, meta: str | None, ties: Mapping[str, str]) -> dict[str, str]:
    """The metadata of one file, with what is tied to its tensors, as ``safetensors.torch.save_model`` writes them."""
    own = set(shard.names)
    said = {tied: kept for tied, kept in ties.items() if kept in own}
    return {_FORMAT: "pt", **said, **({} if meta is None else {_META: meta})}


def _header(shard: _Shard, tensors: Mapping[str, _Tensor], metadata: dict[str, str]) -> bytes:
    header: dict[str, Any] = {_METADATA: metadata}
    offset = 0
    for name in shard.names:
        tensor = tensors[name]
        end = offset + tensor.nbytes
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    raw = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    raw += b" " * (-len(raw) % 8)
    if len(raw) > _LONGEST:
        raise InvalidType(
            f"safetensors has room for a header of {exact(_LONGEST)}, and this one has {exact(len(raw))}."
        )
    return struct.pack("<Q", len(raw)) + raw


def _write(
    beside: Path,
    header: bytes,
    shard: _Shard,
    tensors: Mapping[str, _Tensor],
    sources: Mapping[str, str],
    outgoing: Outgoing,
) -> None:
    wanted = [sources[name] for name in shard.names]
    with beside.open("xb") as to:
        to.write(header)
        for name, (_, array) in zip(shard.names, outgoing.arrays(wanted), strict=True):
            elements = array.elements
            if tensors[name].text != array.dtype:  # the bytes of an element the other way round
                elements = elements.view(dtype_from_text(array.dtype)).astype(dtype_from_text(tensors[name].text))
            to.write(elements.reshape(-1).view(np.uint8).data if elements.size else b"")


def read(file: Path) -> Content:
    """The tensors of a file, of the files of an index, or of those in a folder, which are mapped and not read yet."""
    if file.is_dir():
        file = _in_folder(file)
    if file.name.endswith(".json"):
        return _indexed(file)
    tensors, metadata = _mapped(file)
    return Content(_with_ties(tensors, metadata), metadata.get(_META), _bytes_of(tensors), file.stat().st_size)


def _in_folder(folder: Path) -> Path:
    """The file or the index that a folder has, by the names that others look for first."""
    for name in (f"model{SUFFIX}", f"model{INDEX}"):
        if (folder / name).is_file():
            return folder / name
    for pattern in (f"*{INDEX}", f"*{SUFFIX}"):
        found = sorted(folder.glob(pattern))
        if len(found) == 1:
            return found[0]
        if found:
            raise InvalidArgument(
                f"{folder} has {len(found)} files {pattern}, and no index says what belongs together; give one of them."
            )
    raise InvalidArgument(f"{folder} has no safetensors file.")


def _indexed(index: Path) -> Content:
    """The tensors that an index lists; its files lie beside it."""
    places = _places(index)
    found: dict[str, tuple[dict[str, np.ndarray[Any, Any]], dict[str, str]]] = {}
    for name in dict.fromkeys(places.values()):
        found[name] = _mapped(index.with_name(name))
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    ties: dict[str, str] = {}
    metas: dict[str, str] = {}
    for name, place_ in places.items():
        if name not in found[place_][0]:
            raise InvalidArgument(f"{index} says that {place_} has a tensor {name!r:.80}, which it has not.")
        tensors[name] = found[place_][0][name]
    for file, (there, metadata) in found.items():
        for name in there:
            if name not in places:
                raise InvalidArgument(f"{file} has a tensor {name!r:.80} that {index} does not list.")
        ties.update({key: value for key, value in metadata.items() if key != _META})
        if _META in metadata:
            metas[_META] = metadata[_META]
    return Content(
        _with_ties(tensors, ties),
        metas.get(_META),
        _bytes_of(tensors),
        sum(index.with_name(each).stat().st_size for each in found),
    )


def _places(index: Path) -> dict[str, str]:
    try:
        if index.stat().st_size > _LONGEST_INDEX:
            raise InvalidArgument(f"{index} is larger than any index.")
        said = json.loads(index.read_bytes(), object_pairs_hook=_pairs)
        places = said["weight_map"]
        if not isinstance(places, dict):
            raise TypeError("weight_map is no object")
    except OSError as error:
        raise unreadable(index, error) from error
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(f"{index} is no index of safetensors files: {error!s:.200}.") from None
    for name, place_ in places.items():
        if not _is_beside(place_):
            raise InvalidArgument(
                f"{index} says that {place_!r:.80} has the tensor {name!r:.80}; the files of an index lie beside it."
            )
    return places


def _is_beside(name: Any) -> bool:
    """Whether this is the name of a file in the folder of its index."""
    plain = isinstance(name, str) and name == Path(name).name and name not in ("", "..")
    return plain and "\0" not in name and "\\" not in name


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in it")
    return found


def _with_ties(
    tensors: dict[str, np.ndarray[Any, Any]], metadata: Mapping[str, str]
) -> dict[str, np.ndarray[Any, Any]]:
    """The tensors, and those that the metadata tie to them."""
    names = {name: kept for name, kept in metadata.items() if name not in tensors and name not in (_FORMAT, _META)}
    tied = {name: tensors[kept] for name, kept in names.items() if kept in tensors}
    return {**tensors, **tied}


def _bytes_of(tensors: Mapping[str, np.ndarray[Any, Any]]) -> int:
    return sum(tensor.nbytes for tensor in tensors.values())


def _mapped(file: Path) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, str]]:
    """The tensors of one file and its metadata."""
    try:
        with open_ordinary(file) as opened:
            nbytes = file.stat().st_size
            if nbytes < 8:
                raise _none(file, "it has less than 8 bytes")
            raw = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise unreadable(file, error) from error
    except ValueError as error:
        if isinstance(error, InvalidArgument):
            raise
        raise _none(file, str(error)) from None
    length = struct.unpack("<Q", raw[:8])[0]
    begin = 8 + length
    if length > _LONGEST or begin > len(raw):
        raise _none(file, f"its header would have {length} bytes, of {len(raw)}")
    header, metadata = _read_header(file, raw[8:begin])
    offset, tensors = 0, {}
    for name, (text, itemsize, shape, (first, end)) in sorted(header.items(), key=lambda item: item[1][3]):
        if first != offset or end < first:
            raise _none(file, f"tensor {name!r:.80} begins at {first}, where the one before ends at {offset}")
        if end > len(raw) - begin:
            raise _none(file, f"tensor {name!r:.80} ends behind the end of the file")
        count = elements_in(shape)
        if count * itemsize != end - first:
            raise _none(file, f"tensor {name!r:.80} of {count} elements has {end - first} bytes")
        offset = end
        dtype = dtype_from_text(text)
        try:
            if count:
                tensors[name] = np.frombuffer(raw, dtype, count, begin + first).reshape(shape)
            else:
                tensors[name] = np.empty(shape, dtype)
        except ValueError as error:
            raise InvalidType(
                f"{file} has a tensor {name!r:.80} of a shape that NumPy does not know: {error}."
            ) from None
    if offset != len(raw) - begin:
        raise _none(file, f"{len(raw) - begin - offset} bytes behind the last tensor belong to none")
    return {name: tensors[name] for name in header}, metadata


_Described = tuple[str, int, tuple[int, ...], tuple[int, int]]


def _read_header(file: Path, raw: bytes) -> tuple[dict[str, _Described], dict[str, str]]:
    try:
        if not raw.startswith(b"{"):
            raise ValueError("its header is no JSON object")
        header = json.loads(raw.decode(), object_pairs_hook=_pairs)
        metadata = header.pop(_METADATA, {})
        if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
            raise ValueError("its metadata are not texts")
        return {name: _described(file, name, said) for name, said in header.items()}, metadata
    except InvalidArgument:
        raise
    except (LookupError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise _none(file, f"{error!s:.200}") from None


def _described(file: Path, name: str, said: Any) -> _Described:
    if not isinstance(said, dict) or set(said) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"tensor {name!r:.80} is not described by dtype, shape and data_offsets")
    name.encode()
    dtype, shape, offsets = said["dtype"], said["shape"], said["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise InvalidType(f"{file} has a tensor {name!r:.80} of dtype {dtype!r:.40}, which is not known here.")
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n < 1 << 63 for n in numbers):
            raise ValueError(f"tensor {name!r:.80} has a shape or offsets that are none")
    first, end = offsets
    return (*_DTYPES[dtype], tuple(shape), (first, end))


def _none(file: Path, why: str) -> InvalidArgument:
    return InvalidArgument(f"{file} is no safetensors file: {why}. Nothing was imported.")
