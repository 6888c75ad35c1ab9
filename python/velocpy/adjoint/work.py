"""The working memory of a schedule: what the adjoint of coming steps needs, in arrays it can use at once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from .model import Array
from .schedule import ScheduleError


class Work:
    """Arrays per step: a model's own (borrowed until it goes on), copies of such, or leases of a history."""

    def __init__(self) -> None:
        self._arrays: dict[int, Mapping[str, Array]] = {}
        self._borrowed: set[int] = set()
        self._leases: dict[int, ExitStack] = {}

    def borrow(self, step: int, arrays: Mapping[str, Array]) -> None:
        """Takes arrays that the model will overwrite when it goes on: call `secure` before it does."""
        self.clear(step)
        self._arrays[step] = arrays
        self._borrowed.add(step)

    def lease(self, step: int, lease: AbstractContextManager[Mapping[str, Array]]) -> None:
        """Takes a lease, to be released when the step is cleared."""
        self.clear(step)
        stack = ExitStack()
        self._arrays[step] = stack.enter_context(lease)
        self._leases[step] = stack

    def secure(self) -> None:
        """Copies what is borrowed; free when nothing is."""
        for step in self._borrowed:
            self._arrays[step] = {name: _copied(array) for name, array in self._arrays[step].items()}
        self._borrowed.clear()

    def of(self, step: int) -> Mapping[str, Array]:
        """What the adjoint of ``step`` needs."""
        try:
            return self._arrays[step]
        except KeyError:
            raise ScheduleError(f"the adjoint of step {step} needs data that the schedule did not bring") from None

    def clear(self, step: int) -> None:
        """Forgets a step, if it is held."""
        self._arrays.pop(step, None)
        self._borrowed.discard(step)
        if (stack := self._leases.pop(step, None)) is not None:
            stack.close()

    def close(self) -> None:
        """Forgets everything."""
        for step in list(self._arrays):
            self.clear(step)


def _copied(array: Any) -> Any:
    return array.clone() if hasattr(array, "clone") else array.copy()
