"""The CUDA streams that are current in one thread, made current in another.

torch and CuPy keep their current streams by thread. A call that is made in another thread for a task has to use those
of the task's thread.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from . import devices


class CurrentStreams:
    """The current streams of the thread that makes it, on the devices of these places."""

    __slots__ = ("_cupy", "_torch")

    def __init__(self, places: Iterable[int]) -> None:
        ordinals = [place - 1 for place in places]
        self._torch: list[Any] = []
        self._cupy: list[tuple[int, Any]] = []
        if ordinals and devices.torch_is_in_use():
            self._torch = [sys.modules["torch"].cuda.current_stream(ordinal) for ordinal in ordinals]
        if ordinals and "cupy" in sys.modules:
            self._cupy = [(ordinal, _current_of_cupy(ordinal)) for ordinal in ordinals]

    def adopt(self) -> None:
        """Makes them current in the calling thread, which may change its current device."""
        for stream in self._torch:
            sys.modules["torch"].cuda.set_stream(stream)
        for ordinal, stream in self._cupy:
            with sys.modules["cupy"].cuda.Device(ordinal):
                stream.use()


def _current_of_cupy(ordinal: int) -> Any:
    cuda = sys.modules["cupy"].cuda
    with cuda.Device(ordinal):
        return cuda.get_current_stream()
