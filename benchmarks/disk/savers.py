"""What others do to keep a checkpoint: one file or folder each, which is there as a whole after a crash."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from velocpy.bench.stamped import Bytes

Save = Callable[[Path, Bytes], None]
Load = Callable[[Path], Any]


def publish(written: Path, final: Path) -> None:
    """Makes a complete file durable, then its name: until then there is none, or what had the name before."""
    _sync(written)
    written.rename(final)
    _sync(final.parent)


def available() -> tuple[dict[str, tuple[Save, Load]], list[str]]:
    """The savers that this environment has, by name, and a sentence for each that it lacks."""
    there: dict[str, tuple[Save, Load]] = {}
    absent = []
    for name, (module, make) in _MAKERS.items():
        try:
            importlib.import_module(module)
        except ImportError:
            absent.append(f"Left out: {name}, {module.partition('.')[0]} is not installed.")
        else:
            there[name] = make()
    return there, absent


def _torch_save() -> tuple[Save, Load]:
    import torch

    def save(path: Path, array: Bytes) -> None:
        torch.save({"u": torch.from_numpy(array)}, being := path.with_suffix(".new"))
        publish(being, path)

    def load(path: Path) -> Any:
        return torch.load(path, weights_only=True)["u"].numpy()

    return save, load


def _dcp() -> tuple[Save, Load]:
    import torch
    from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
    from torch.distributed.checkpoint.state_dict_loader import load as load_state
    from torch.distributed.checkpoint.state_dict_saver import save as save_state

    # That it works without a process group is what is meant here.
    warnings.filterwarnings("ignore", "torch.distributed is disabled", UserWarning)

    def save(path: Path, array: Bytes) -> None:
        writer = FileSystemWriter(path, sync_files=True)
        save_state({"u": torch.from_numpy(array)}, storage_writer=writer, no_dist=True)

    def load(path: Path) -> Any:
        reader = FileSystemReader(path)
        shape = reader.read_metadata().state_dict_metadata["u"].size  # type: ignore[union-attr]
        state = {"u": torch.empty(shape, dtype=torch.uint8)}
        load_state(state, storage_reader=reader, no_dist=True)
        return state["u"].numpy()

    return save, load


def _safetensors() -> tuple[Save, Load]:
    from safetensors import numpy as safetensors

    def save(path: Path, array: Bytes) -> None:
        safetensors.save_file({"u": array}, being := path.with_suffix(".new"))
        publish(being, path)

    def load(path: Path) -> Any:
        return safetensors.load_file(path)["u"]

    return save, load


def _hdf5() -> tuple[Save, Load]:
    import h5py

    def save(path: Path, array: Bytes) -> None:
        with h5py.File(being := path.with_suffix(".new"), "w") as file:
            file.create_dataset("u", data=array)
            file.flush()
        publish(being, path)

    def load(path: Path) -> Any:
        with h5py.File(path, "r") as file:
            return np.asarray(file["u"])

    return save, load


_MAKERS: dict[str, tuple[str, Callable[[], tuple[Save, Load]]]] = {
    "torch.save": ("torch", _torch_save),
    "DCP": ("torch.distributed.checkpoint", _dcp),
    "safetensors": ("safetensors.numpy", _safetensors),
    "HDF5": ("h5py", _hdf5),
}


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
