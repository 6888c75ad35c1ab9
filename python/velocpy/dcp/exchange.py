"""Checkpoints of DCP's own file format into stores, and back, item by item."""

from __future__ import annotations

import io
import os
import pickle
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult

from velocpy.choices import Size
from velocpy.errors import CheckpointNotFound, CorruptCheckpoint, InvalidArgument, InvalidType, TierIOError, VelocError
from velocpy.replacing import sync_directory

from .reader import Reader
from .writer import Writer

#: Bytes of tensors that are in memory at once, and in one file.
BATCH = 256 << 20

_METADATA = ".metadata"

_Id = str | os.PathLike[str]


def to_files(path: _Id, checkpoint_id: _Id | None, folder: _Id) -> None:
    """Writes a checkpoint of a `Writer` as files that DCP's ``FileSystemReader`` reads.

    Every item is compared with its checksum. Chunks of tensors stay the chunks that they are; DCP puts them together
    for any number of ranks. Memory holds 256 MiB of tensors, or the largest one. The folder is there as a whole or not
    at all.

    Parameters
    ----------
    path, checkpoint_id
        Those of the writer. A checkpoint that was saved with ``use_collectives=False`` has no common metadata, and is
        not found.
    folder
        Is made, or is an empty folder.

    Raises
    ------
    CheckpointNotFound, CorruptCheckpoint, TierIOError
        Nothing was written.
    InvalidArgument
        There is something in the folder.

    Examples
    --------
    >>> import tempfile, torch, warnings
    >>> import torch.distributed.checkpoint as dcp
    >>> from velocpy.dcp import Writer, to_files
    >>> warnings.simplefilter("ignore", UserWarning)  # DCP warns of one process alone
    >>> with tempfile.TemporaryDirectory() as path:
    ...     with Writer(path + "/run", host="16MiB") as writer:
    ...         _ = dcp.save({"w": torch.ones(2)}, storage_writer=writer, checkpoint_id="a", no_dist=True)
    ...     to_files(path + "/run", "a", path + "/files")
    ...     state = {"w": torch.zeros(2)}
    ...     dcp.load(state, checkpoint_id=path + "/files", no_dist=True)
    >>> state
    {'w': tensor([1., 1.])}
    """
    to = Path(folder)
    if to.is_symlink() or (to.exists() and (not to.is_dir() or any(to.iterdir()))):
        raise InvalidArgument(f"{to} is there already, and is no empty folder; give a new name.")
    with Reader(path) as reader:
        reader.reset(checkpoint_id)
        metadata = reader.read_metadata()
        reader.set_up_storage_reader(metadata, True)
        ranks = {index: place.rank for index, place in metadata.storage_data.items()}
        items = sorted(_items(metadata), key=lambda item: ranks[item.index])
        beside = to.with_name(f".{to.name}.{secrets.token_hex(4)}")
        try:
            beside.mkdir(parents=True)
            _copy(reader, items, _FileWriter(beside, to), metadata)
            sync_directory(beside)
            beside.replace(to)
            sync_directory(to.parent)
        except OSError as error:
            if isinstance(error, VelocError):
                raise
            raise _failed(to, "written", error) from error
        finally:
            if beside.exists():
                shutil.rmtree(beside, ignore_errors=True)


def from_files(
    folder: _Id,
    path: _Id,
    checkpoint_id: _Id | None,
    *,
    host: Size | None = "64MiB",
    disk: Size | None = "auto",
) -> None:
    """Writes the files of DCP's ``FileSystemWriter`` into the store of rank 0, and returns when they are durable there.

    A `Reader` loads it from there on any number of ranks. Memory holds 256 MiB of tensors, or the largest one. Objects
    other than tensors are copied as the bytes that they are. Nothing that is pickled in the folder is made but DCP's
    metadata.

    Parameters
    ----------
    folder
        Where the files are, with ".metadata" among them: saved with ``use_collectives=True``, the default.
    path, checkpoint_id
        As for a `Writer`; a checkpoint of this identifier is replaced.
    host, disk
        As for a `Writer`.

    Raises
    ------
    CheckpointNotFound
        There is no complete checkpoint in the folder.
    InvalidType
        The metadata hold objects other than those of DCP; the text names the first one.
    InvalidArgument
        The metadata name a file that does not lie in the folder, or contradict themselves.
    CorruptCheckpoint
        A file does not have what the metadata say; the text names the entry.
    StoreLocked, TierFull, TierIOError
        As for a `Writer`.

    In each case a checkpoint of this identifier is what it was.

    Examples
    --------
    >>> import tempfile, torch, warnings
    >>> import torch.distributed.checkpoint as dcp
    >>> from velocpy.dcp import Reader, from_files
    >>> warnings.simplefilter("ignore", UserWarning)  # DCP warns of one process alone
    >>> with tempfile.TemporaryDirectory() as path:
    ...     _ = dcp.save({"w": torch.ones(2)}, checkpoint_id=path + "/files", no_dist=True)
    ...     from_files(path + "/files", path + "/run", "a")
    ...     state = {"w": torch.zeros(2)}
    ...     with Reader(path + "/run") as reader:
    ...         dcp.load(state, storage_reader=reader, checkpoint_id="a", no_dist=True)
    >>> state
    {'w': tensor([1., 1.])}
    """
    reader = _FileReader(folder)
    metadata = reader.read_metadata()
    reader.set_up_storage_reader(metadata, True)
    with Writer(path, host=host, disk=disk) as writer:
        writer.reset(checkpoint_id)
        _copy(reader, _items(metadata), writer, metadata)


def _copy(reader: StorageReader, items: Iterable[WriteItem], writer: StorageWriter, metadata: Metadata) -> None:
    """Writes the items that a reader has, batch by batch, and then the metadata."""
    batches = list(_batches(items))
    writer.set_up_storage_writer(True, rank=0, use_collectives=True)
    plans = writer.prepare_global_plan([writer.prepare_local_plan(SavePlan(batch)) for batch in batches])
    results: list[WriteResult] = []
    for plan in plans:
        results += writer.write_data(plan, _Handing(reader)).wait()
    writer.finish(metadata, [results])


def _batches(items: Iterable[WriteItem]) -> Iterator[list[WriteItem]]:
    batch: list[WriteItem] = []
    total = 0
    for item in items:
        nbytes = _nbytes(item)
        if batch and total + nbytes > BATCH:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += nbytes
    yield batch


def _nbytes(item: WriteItem) -> int:
    data = item.tensor_data
    return 0 if data is None else data.chunk.sizes.numel() * data.properties.dtype.itemsize


def _items(metadata: Metadata) -> list[WriteItem]:
    """Everything that the metadata say to be stored.

    Raises
    ------
    InvalidArgument
        What is stored is not what they say of the state.
    """
    items = []
    for index in metadata.storage_data:
        said = metadata.state_dict_metadata.get(index.fqn)
        if isinstance(said, BytesStorageMetadata):
            items.append(WriteItem(index=index, type=WriteItemType.BYTE_IO))
            continue
        chunk = _chunk(said, index) if isinstance(said, TensorStorageMetadata) else None
        if said is None or chunk is None:
            raise InvalidArgument(f"the metadata of the checkpoint do not say what {index.fqn!r:.80} is.")
        data = TensorWriteData(chunk=chunk, properties=said.properties, size=said.size)
        items.append(WriteItem(index=index, type=WriteItemType.SHARD, tensor_data=data))
    stored = {(index.fqn, index.offset) for index in metadata.storage_data} | {(item.index.fqn, None) for item in items}
    for fqn, said in metadata.state_dict_metadata.items():
        offsets = [chunk.offsets for chunk in said.chunks] if isinstance(said, TensorStorageMetadata) else [None]
        whole = len(offsets) == 1 and (fqn, None) in stored
        if not whole and any((fqn, offset) not in stored for offset in offsets):
            raise InvalidArgument(f"the metadata of the checkpoint do not say where {fqn!r:.80} is stored.")
    return items


def _chunk(said: TensorStorageMetadata, index: MetadataIndex) -> ChunkStorageMetadata | None:
    if index.offset is None:
        return said.chunks[0] if len(said.chunks) == 1 else None
    hint = index.index
    if hint is not None and 0 <= hint < len(said.chunks) and said.chunks[hint].offsets == index.offset:
        return said.chunks[hint]
    return next((chunk for chunk in said.chunks if chunk.offsets == index.offset), None)


class _Handing(SavePlanner):
    """Gives a writer what a reader reads: each item when it is asked for."""

    def __init__(self, reader: StorageReader) -> None:
        self._reader = reader

    def resolve_data(self, write_item: WriteItem) -> torch.Tensor | io.BytesIO:
        index, data = write_item.index, write_item.tensor_data
        sizes = torch.Size(()) if data is None else data.chunk.sizes
        none = torch.Size([0] * len(sizes))
        item = ReadItem(
            type=LoadItemType.BYTE_IO if data is None else LoadItemType.TENSOR,
            dest_index=index,
            dest_offsets=none,
            storage_index=index,
            storage_offsets=none,
            lengths=sizes,
        )
        taking = _Taking(None if data is None else data.properties.dtype)
        try:
            self._reader.read_data(LoadPlan([item]), taking).wait()
        except (VelocError, MemoryError):
            raise
        except Exception as error:  # DCP and torch raise whatever a damaged file makes them raise
            raise CorruptCheckpoint(
                f"{index.fqn!r:.200} cannot be read: {error!s:.300}. The checkpoint was not copied.", region=index.fqn
            ) from error
        taken: torch.Tensor | io.BytesIO = taking.taken
        return taken

    def set_up_planner(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError

    def create_local_plan(self) -> SavePlan:
        raise NotImplementedError

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        raise NotImplementedError

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        raise NotImplementedError


class _Taking(LoadPlanner):
    """Takes one item from a reader."""

    taken: Any = None

    def __init__(self, dtype: torch.dtype | None) -> None:
        self._dtype = dtype

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        self.taken = value

    def resolve_tensor(self, read_item: ReadItem) -> torch.Tensor:
        return torch.empty(read_item.lengths, dtype=self._dtype)

    def commit_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> None:
        self.taken = tensor

    def set_up_planner(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError

    def create_local_plan(self) -> LoadPlan:
        raise NotImplementedError

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        raise NotImplementedError

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        raise NotImplementedError


class _FileWriter(FileSystemWriter):
    """Writes into a folder that gets another name afterwards."""

    def __init__(self, folder: Path, name: Path) -> None:
        super().__init__(folder, per_thread_copy_ahead=0)
        self._name = name

    def storage_meta(self) -> StorageMeta:
        return StorageMeta(checkpoint_id=os.fspath(self._name), save_id=self.save_id)


class _FileReader(FileSystemReader):
    """Reads files, with metadata of which nothing but DCP's own classes is made."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        folder = Path(self.path)
        try:
            with (folder / _METADATA).open("rb") as file:
                metadata: Metadata = _MetadataUnpickler(file).load()
        except FileNotFoundError as error:
            raise CheckpointNotFound(
                f"there is no complete checkpoint of DCP in {os.fspath(folder)!r}: it has no file {_METADATA!r}."
            ) from error
        except VelocError:
            raise
        except OSError as error:
            raise _failed(folder / _METADATA, "read", error) from error
        except Exception as error:  # pickle raises whatever a damaged file makes it raise
            raise CorruptCheckpoint(f"{folder / _METADATA} holds no metadata of DCP: {error!s:.200}.") from error
        try:
            _require_sound(metadata)
        except (AttributeError, TypeError) as error:
            raise InvalidArgument(f"{folder / _METADATA} holds no metadata of DCP: {error!s:.200}.") from None
        return metadata


#: The classes and functions by which metadata are pickled, by their modules.
_KNOWN = {
    "torch.distributed.checkpoint.metadata": {
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "Metadata",
        "MetadataIndex",
        "StorageMeta",
        "TensorProperties",
        "TensorStorageMetadata",
        "_MEM_FORMAT_ENCODING",
    },
    "torch.distributed.checkpoint.filesystem": {"_StorageInfo"},
    "torch": {"Size", *(name for name, value in vars(torch).items() if isinstance(value, torch.dtype))},
    "torch.serialization": {"_get_layout"},
    "collections": {"OrderedDict"},
    "pathlib": {"PosixPath", "PurePosixPath"},
    "pathlib._local": {"PosixPath", "PurePosixPath"},
}


class _MetadataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name in _KNOWN.get(module, ()):
            if module.startswith("pathlib"):
                module = "pathlib"
            return super().find_class(module, name)
        raise InvalidType(
            f"the metadata hold an object of {module}.{name}, which is none of DCP's; nothing was imported. What a "
            "planner of your own adds has to consist of containers, texts and numbers."
        )


def _require_sound(metadata: Any) -> None:
    """Refuses metadata that name other files than those of their folder, or that are of other types than DCP's."""
    if not isinstance(metadata, Metadata) or not isinstance(metadata.storage_data, dict):
        raise TypeError(f"it is a {type(metadata).__name__}")
    for index, info in metadata.storage_data.items():
        file, offset, length = info.relative_path, info.offset, info.length
        if not isinstance(index, MetadataIndex) or not isinstance(index.fqn, str):
            raise TypeError("an index is none")
        if not isinstance(file, str) or file != Path(file).name or file in ("", "..") or "\0" in file:
            raise InvalidArgument(
                f"the metadata say that {index.fqn!r:.80} lies in {file!r:.80}, which is no file of the folder."
            )
        if not all(type(number) is int and number >= 0 for number in (offset, length)):
            raise InvalidArgument(f"the metadata say that {index.fqn!r:.80} lies at {offset!r:.40}.")
    for name, said in metadata.state_dict_metadata.items():
        if isinstance(said, TensorStorageMetadata) and not isinstance(said.properties.dtype, torch.dtype):
            raise TypeError(f"{name!r:.80} has no dtype")


def _failed(file: Path, what: str, error: OSError) -> TierIOError:
    failure = TierIOError(f"{file} cannot be {what}: {error.strerror}.")
    failure.errno, failure.strerror = error.errno, error.strerror
    return failure
