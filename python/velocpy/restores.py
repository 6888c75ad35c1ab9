"""Loops over the restores of a plan, for threads and for tasks of asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from . import _core
from .interfaces import Key, LoopOwner


class Restores(_core.Loop):
    """What `History.restore_iter` returns: for ``for``, and in tasks of asyncio for ``async for``."""

    __slots__ = ("_arguments", "_history")

    def __init__(self, history: LoopOwner, arguments: dict[str, Any]) -> None:
        super().__init__(**arguments)
        self._history = history
        self._arguments = arguments

    def __aiter__(self) -> AsyncIterator[tuple[Key, Any]]:
        """A loop of its own over the same plan."""
        from .tasks import TaskRestores  # it imports asyncio, which programs without tasks do not need

        return TaskRestores(self._history, self._arguments)
