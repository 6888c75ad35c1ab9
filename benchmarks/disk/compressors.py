"""Checkpoints as compressed files, one for each: what an application does that has a compressor and no store."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.data.series import Series, State, flat, same, width


class Compressor(NamedTuple):
    """A way to make bytes smaller, and back."""

    compress: Callable[[Any], Any]
    expand: Callable[[Any], Any]
    #: Whether the bytes of elements are brought together first: all first bytes, then all second ones, as Blosc does.
    shuffles: bool = False


def compressors() -> dict[str, Compressor]:
    """Those that are installed, and none at all."""
    found = {"file": Compressor(lambda plain: plain, lambda packed: packed)}
    try:
        zstd = importlib.import_module("zstandard")
    except ImportError:
        return found | _lz4()
    for level in (1, 3):
        packer, unpacker = zstd.ZstdCompressor(level=level), zstd.ZstdDecompressor()
        found[f"zstd-{level}"] = Compressor(packer.compress, unpacker.decompress)
    return found | {"shuffle, zstd-1": found["zstd-1"]._replace(shuffles=True)} | _lz4()


def _lz4() -> dict[str, Compressor]:
    try:
        frame = importlib.import_module("lz4.frame")
    except ImportError:
        return {}
    plain = Compressor(frame.compress, frame.decompress)
    return {"lz4": plain, "shuffle, lz4": plain._replace(shuffles=True)}


def shuffled(plain: np.ndarray, element: int) -> np.ndarray:
    """The first bytes of all elements, then the second ones, and so on."""
    return np.ascontiguousarray(plain.reshape(-1, element).T).reshape(-1)


def unshuffled(planes: np.ndarray, element: int) -> np.ndarray:
    """The elements of `shuffled`."""
    return np.ascontiguousarray(planes.reshape(element, -1).T).reshape(-1)


def forget(folder: Path) -> None:
    """Lets the system forget what it has cached of the files in a folder, so that they are read from the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def play(folder: Path, compressor: Compressor, series: Series) -> dict[str, Any]:
    """Writes the files, each synced, and reads them back in reverse; seconds, and bytes in the files."""
    wrote, sizes = 0.0, []
    for number in range(series.count):
        state = series.state(number)
        began = time.perf_counter()
        with (folder / str(number)).open("wb") as file:
            for array in state.values():
                plain = flat(array)
                packed = compressor.compress(shuffled(plain, width(array)) if compressor.shuffles else plain)
                file.write(len(packed).to_bytes(8, "little"))
                file.write(packed)
            file.flush()
            os.fdatasync(file.fileno())
            sizes.append(file.tell())
        wrote += time.perf_counter() - began
    forget(folder)
    restored, differ = 0.0, 0
    for number in reversed(range(series.count)):
        state = series.state(number)
        began = time.perf_counter()
        back = _read(folder / str(number), compressor, state)
        restored += time.perf_counter() - began
        differ += same(back, state)
    return {"seconds": wrote, "restored": restored, "used": sum(sizes), "first": sizes[0], "differ": differ}


def _read(path: Path, compressor: Compressor, like: State) -> dict[str, np.ndarray]:
    back = {}
    with path.open("rb") as file:
        for name, array in like.items():
            length = int.from_bytes(file.read(8), "little")
            plain = np.frombuffer(compressor.expand(file.read(length)), np.uint8)
            back[name] = unshuffled(plain, width(array)) if compressor.shuffles else plain
    return back
