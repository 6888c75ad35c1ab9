"""``velocpy bench link`` on the driver's double, for processes whose core was built with it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from board import LEGACY, Board
from stream_scenarios import Array

from velocpy.bench import link


class Tensor(Array):
    """The methods of a tensor that the benchmark calls."""

    def __init__(self, board: Board, nbytes: int) -> None:
        super().__init__(board, nbytes)
        self._board = board

    def copy_(self, source: Tensor, non_blocking: bool) -> None:
        assert non_blocking
        self._board.copy(self.address, source.address, self.nbytes, LEGACY)

    def fill_(self, value: int) -> None:
        self._board.fill(self.address, bytes([value]) * self.nbytes, LEGACY)

    def __eq__(self, value: object) -> npt.NDArray[np.bool_]:  # type: ignore[override]
        return np.frombuffer(self._board.look(self.address, self.nbytes), np.uint8) == value


def main(wrong: str = "") -> None:
    """Run it with a few checkpoints; with an argument, all tensors that are captured after the first are wrong."""
    board = Board()
    cuda = SimpleNamespace(synchronize=board.settle, get_device_name=lambda: "double")
    torch: Any = SimpleNamespace(uint8=None, cuda=cuda, empty=lambda nbytes, **_: Tensor(board, nbytes))
    link.importlib = SimpleNamespace(import_module=lambda name: torch)  # type: ignore[assignment]
    if wrong:
        fill = Tensor.fill_
        Tensor.fill_ = lambda self, value: fill(self, min(value, 30))  # type: ignore[method-assign]
    report = link.run(size=256 << 10, rounds=1)
    assert [row["what"] for row in report.rows] == ["capture on the device", "device to host", "host to device"]
    assert all(row["ratio"] > 0 for row in report.rows)
    assert [bar.value for bar in report.bars] == [1 if wrong else 0]
    assert board.misuse() == []
    print("done")
