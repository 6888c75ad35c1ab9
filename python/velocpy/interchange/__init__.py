"""Checkpoints as files of other formats, and back: safetensors, NumPy's npz, and the files of ``torch.save``.

Checkpoints of torch.distributed have functions of their own: `velocpy.dcp.to_files` and `velocpy.dcp.from_files`.

Examples
--------
>>> import numpy, tempfile, velocpy
>>> from velocpy import interchange
>>> with tempfile.TemporaryDirectory() as directory:
...     with velocpy.open(directory + "/store", host="16MiB", disk="1GiB") as store:
...         _ = store.history("run").checkpoint(7, u=numpy.arange(3.0))
...     _ = interchange.export(directory + "/store", "run", 7, directory + "/state.npz")
...     numpy.load(directory + "/state.npz")["u"]
array([0., 1., 2.])
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from velocpy.budget import parse_size
from velocpy.choices import Size
from velocpy.errors import InvalidArgument
from velocpy.ondisk import Key, describe
from velocpy.opening import open as open_store

from . import npz, safe, torch_zip
from .content import Content, Outgoing, room
from .placing import require_ordinary

__all__ = ["FORMATS", "IMPORTED", "export", "import_"]

#: What a file may be that is written, by the end of its name too.
FORMATS = ("safetensors", "npz")

#: What a file may be that is read.
IMPORTED = (*FORMATS, "torch")

Place = str | os.PathLike[str]

#: Host memory for what is imported: it goes to the disk from where it is.
_IMPORT_ROOM = 64 << 20


def export(
    path: Place,
    history: str,
    key: Key,
    file: Place,
    format: str | None = None,  # noqa: A002
    *,
    max_shard: Size | None = None,
    ties: Literal["alias", "copy"] = "alias",
) -> list[Path]:
    """Writes a checkpoint into a file; the bytes are verified before.

    The file is there as a whole or not at all. The regions are read one after the other: it takes memory for 128 MiB of
    them, or for the largest one. The meta goes along: in safetensors as the metadata "velocpy.meta", in npz as the
    archive's comment, where others do not mind it.

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
    max_shard
        safetensors: most bytes of tensors in a file, as 5_000_000_000 or "5GB". More of them go into several files,
        "model-00001-of-00003.safetensors" and so on for "model.safetensors", with "model.safetensors.index.json", which
        says which file has a tensor. The index comes last. A tensor that is larger has a file of its own. None: one
        file.
    ties
        safetensors: how a tensor is written that a `velocpy.Checkpointer` has saved once under several names, as it
        does with tied weights. "alias": once; the metadata of the file have its other names, as those of
        ``safetensors.torch.save_model`` do. "copy": once for each name.

    Returns
    -------
    list of pathlib.Path
        The file, or the files and, at the end, their index.

    Raises
    ------
    CheckpointNotFound, CorruptCheckpoint, NotAStore, TierIOError
        Nothing was written; of several files, some may have been.
    InvalidArgument
        Something that is no ordinary file has this name.
    InvalidType
        The format does not know a region's dtype, cannot have its name, or has no room for the meta (npz: 65535 bytes).
    """
    format_ = _format(file, format, FORMATS)
    if ties not in ("alias", "copy"):
        raise InvalidArgument(f"ties is {ties!r}; it can be 'alias' or 'copy'.")
    most = None if max_shard is None else parse_size(max_shard, "max_shard")
    if format_ == "npz" and most is not None:
        raise InvalidArgument("max_shard= is for safetensors; an npz file is one file.")
    require_ordinary(Path(file))
    known = describe(path, history, key)
    with open_store(path, mode="r", host=room(known), verify="always") as store:
        outgoing = Outgoing.of(store.history(history), known)
        if format_ == "npz":
            return npz.write(Path(file), outgoing)
        return safe.write(Path(file), outgoing, max_shard=most, copies=ties == "copy")


def import_(file: Place, path: Place, history: str, key: Key, format: str | None = None) -> int:  # noqa: A002
    """Writes what a file has into a store, as one checkpoint, and returns when that is durable.

    The meta that `export` has written along is the checkpoint's. Files of safetensors and of torch are mapped, and go
    to the disk from there: they may be larger than the memory. They must not be changed meanwhile. An npz file is read
    into memory.

    Parameters
    ----------
    file
        What `export` has written, or another library. For safetensors also a folder, with one such file or with an
        index, or an index ("model.safetensors.index.json") by its name: the files of one index are one checkpoint.
        A name that the metadata tie to a tensor, as `export` and ``safetensors.torch.save_model`` write them, is a
        region too.
    path
        The store, made when there is none; a checkpoint of this key is replaced.
    history, key
        Where it goes.
    format
        "safetensors", "npz" or "torch"; None: as the name ends (.safetensors, .json and folders; .npz; .pt, .pth, .bin
        and .ckpt). "torch" is the zip file of ``torch.save``. Its state becomes a tree, whose entries are named as
        those of a `velocpy.Checkpointer` ("model.layer.weight"), and which that restores: of a file
        ``{"model": …, "optimizer": …}``, ``Checkpointer(model=…, optimizer=…).restore(key, parts=["model"])``.

    Returns
    -------
    int
        Bytes of the files that were read.

    Raises
    ------
    StoreLocked
        While a process writes to the store.
    InvalidArgument
        The file is not what it ought to be, or an index names a file that does not lie beside it.
    InvalidType
        A tensor has a dtype that is not known; or a file of torch holds an object, as the text says where. Pickled
        objects are never made, and no code of a file is run.
    MissingExtra
        A file of torch, and torch is not installed.
    TierFull, TierIOError
        There is no room, or the disk fails.

    Examples
    --------
    >>> import numpy, tempfile, velocpy
    >>> from velocpy import interchange
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     numpy.savez(directory + "/state.npz", u=numpy.ones(2))
    ...     _ = interchange.import_(directory + "/state.npz", directory + "/store", "run", "first")
    ...     with velocpy.open(directory + "/store", mode="r", host="16MiB") as store:
    ...         print(store.history("run").restore("first")["u"])
    [1. 1.]
    """
    content = _READERS[_format(file, format, IMPORTED)](Path(file))
    if not content.regions:
        raise InvalidArgument(f"{os.fspath(file)} has no arrays.")
    meta = _meta(file, content.meta)
    host = min(content.nbytes, _IMPORT_ROOM) + (2 << 20)
    with open_store(path, host=host, disk="auto") as store:
        history_ = store.history(history)
        history_.checkpoint(key, content.regions, copy=False, tier="disk", meta=meta).wait("disk")
    return content.file_nbytes


def _meta(file: Place, text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{os.fspath(file)} has a meta that is no JSON: {error}.") from None


def _format(file: Place, given: str | None, formats: tuple[str, ...]) -> str:
    suffix = Path(file).suffix.lower()
    format_ = given or suffix.lstrip(".")
    if given is None and formats is IMPORTED:
        if suffix in torch_zip.SUFFIXES:
            format_ = "torch"
        elif suffix == ".json" or Path(file).is_dir():
            format_ = "safetensors"
    if format_ not in formats:
        raise InvalidArgument(
            f"format is {format_!r}; it can be {' or '.join(formats)}, by itself or as the name ends."
        )
    return format_


_READERS: dict[str, Callable[[Path], Content]] = {
    "safetensors": safe.read,
    "npz": npz.read,
    "torch": torch_zip.read,
}
