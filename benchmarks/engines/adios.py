"""ADIOS2's BP5 engine: each checkpoint a step of a file, through a pinned slot, since its wheels know no GPU."""

from __future__ import annotations

import importlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .card import Bytes, Card
from .workload import Workload


class Adios:
    """Runs where the package adios2 is installed; it buffers in host memory and writes through the page cache."""

    name = "adios2"

    def __init__(self, card: Card, workload: Workload, folder: Path) -> None:
        self._adios: Any = importlib.import_module("adios2")
        self._card, self._sizes = card, workload.sizes
        (self._slot,) = card.pinned(1, workload.largest)
        self._view = np.frombuffer(card.memory(self._slot), np.uint8)
        self._back = card.device(workload.largest)
        self._folder = Path(tempfile.mkdtemp(dir=folder))
        self._writer: Any = None
        self._reader: Any = None
        self._shots = 0
        self._path = self._folder

    def begin(self, workload: Workload) -> None:
        self._end()
        if self._shots:
            shutil.rmtree(self._path, ignore_errors=True)
        self._shots += 1
        self._path = self._folder / f"shot{self._shots}.bp"
        self._writer = self._adios.Stream(str(self._path), "w")

    def checkpoint(self, key: int, source: Bytes) -> None:
        size = self._sizes[key]
        self._card.copy(self._slot[:size], source)
        self._card.join()
        self._writer.begin_step()
        self._writer.write(f"u{key}", self._view[:size], [size], [0], [size])
        self._writer.end_step()

    def wait_flushed(self) -> None:
        self._writer.close()
        self._writer = None

    def turn(self) -> None:
        if self._writer is not None:
            self.wait_flushed()
        self._reader = self._adios.FileReader(str(self._path))

    def restore(self, key: int, following: int | None) -> Bytes:
        size = self._sizes[key]
        self._card.join()  # the slot's last copy
        self._view[:size] = self._reader.read(f"u{key}")
        self._card.copy(self._back[:size], self._slot[:size])
        return self._back[:size]

    def done(self, key: int) -> None:
        pass

    def ready(self, key: int) -> bool:
        return False

    def facts(self) -> dict[str, Any]:
        return {}

    def _end(self) -> None:
        for stream in (self._writer, self._reader):
            if stream is not None:
                stream.close()
        self._writer = self._reader = None

    def close(self) -> None:
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)
