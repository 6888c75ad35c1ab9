"""Which line of the application had called: for errors that come later, by a wait or from the background.

A place is taken at each call of `History.checkpoint`: the code object and the instruction, in half a microsecond. The
line is looked up when an error tells it. A place holds no frame, and so none of its variables.
"""

from __future__ import annotations

import os
import sys
from types import CodeType
from typing import Any, NamedTuple, TypeVar

from .errors import BelatedCorruption, VelocError
from .interfaces import Key

#: A code object, and the position of an instruction in it.
Place = tuple[CodeType, int]

Noted = TypeVar("Noted")

#: Beginning of the file names of this package, whose frames are not the application's.
_OURS = os.path.dirname(__file__) + os.sep  # noqa: PTH120
#: Calls that are remembered for each history; earlier ones are forgotten.
_MOST = 100_000

_frame = sys._getframe


def place() -> Place | None:
    """Where the application has called the method of this package that calls this; None: nowhere that is known."""
    try:
        frame = _frame(2)  # Python makes an object of each frame that is looked at: not of the method's own
    except ValueError:  # nothing in Python has called: a thread, or the end of the interpreter
        return None
    code = frame.f_code
    while code.co_filename.startswith(_OURS):
        if frame.f_back is None:
            return None
        frame = frame.f_back
        code = frame.f_code
    return code, frame.f_lasti


def told(where: Place) -> str:
    """A place for people: ``sweep.py:12``, or the cell of a notebook and the line in it.

    Examples
    --------
    >>> from velocpy.callers import place, told
    >>> def method_of_the_package():
    ...     return place()
    >>> told(method_of_the_package())
    '<doctest velocpy.callers.told[2]>:1'
    """
    code, position = where
    lines = (line for begin, end, line in code.co_lines() if begin <= position < end)
    line = next(lines, None) or code.co_firstlineno
    return f"{_cell(code.co_filename) or code.co_filename + ':'}{line}"


def _cell(file: str) -> str | None:
    """What IPython calls a cell, up to the number of the line; None for any other file."""
    ipython: Any = sys.modules.get("IPython")
    try:
        shell: Any = ipython.get_ipython()
        kind, name = shell.compile.format_code_name(file)
    except (AttributeError, TypeError):  # no shell, or no cell of it
        return None
    return f"{kind} {name}, line "


def name_call(error: VelocError, where: Place | None, call: str = "checkpoint()") -> None:
    """Lets an error tell where the application had called for the checkpoint that it is about; once."""
    if where is None or error.called is not None:
        return
    error.called = told(where)
    if error.args:
        error.args = (f"{error.args[0]} {call} was called at {error.called}.", *error.args[1:])


class Capture(NamedTuple):
    """A call that has captured a checkpoint, and the number of its ticket."""

    place: Place
    ticket: int


class Calls:
    """The last calls for each checkpoint of a history, of a store that is opened with ``debug``."""

    def __init__(self) -> None:
        self._captured: dict[Key, Capture] = {}
        self._restored: dict[Key, Place] = {}

    def captured(self, key: Key, where: Place | None, ticket: int) -> None:
        """Notes the call that has captured a checkpoint."""
        if where is not None:
            _note(self._captured, key, Capture(where, ticket))

    def restored(self, key: Key, where: Place | None) -> None:
        """Notes the call that restores a checkpoint."""
        if where is not None:
            _note(self._restored, key, where)

    def captures(self) -> list[tuple[Key, Capture]]:
        """The calls that have captured checkpoints, in their order."""
        return list(self._captured.items())

    def name(self, error: VelocError) -> None:
        """Lets an error about a checkpoint tell the call that it is about."""
        if error.key is None:
            return
        if isinstance(error, BelatedCorruption):
            name_call(error, self._restored.get(error.key), "restore()")
        captured = self._captured.get(error.key)
        name_call(error, None if captured is None else captured.place)


def _note(calls: dict[Key, Noted], key: Key, noted: Noted) -> None:
    """Notes it as the last call of all."""
    calls.pop(key, None)
    calls[key] = noted
    while len(calls) > _MOST:
        try:
            del calls[next(iter(calls))]
        except (KeyError, RuntimeError, StopIteration):  # another thread was faster
            break
