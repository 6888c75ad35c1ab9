"""Checks of arguments, with errors that say what may be given instead."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, get_args

from .errors import InvalidArgument, InvalidType

_LONGEST = 366 * 24 * 3600.0  # seconds


def require_choice(name: str, value: Any, choice: Any) -> None:
    """Refuses a value that is none of those of a Literal.

    Raises
    ------
    InvalidArgument
    """
    values = get_args(choice)
    if value not in values:
        raise InvalidArgument(f"{name} is {value!r}; it is one of {', '.join(values)}.")


def require_whole(name: str, value: Any, least: int) -> int:
    """The value, a whole number from ``least`` up that has 31 bits.

    Raises
    ------
    InvalidType, InvalidArgument
    """
    if isinstance(value, bool) or not isinstance(value, Integral):  # those of NumPy among them
        raise InvalidType(f"{name} is {value!r}; give a whole number.")
    whole = int(value)
    if not least <= whole < 1 << 31:
        raise InvalidArgument(f"{name} is {whole}; give a number from {least} up.")
    return whole


def require_seconds(name: str, value: object) -> float:
    """The value as seconds above 0, and not above a year.

    Raises
    ------
    InvalidType, InvalidArgument
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidType(f"{name} is {value!r}; give seconds, as a number.")
    if not 0 < float(value) <= _LONGEST:
        raise InvalidArgument(f"{name} is {value!r}; give seconds above 0 and up to {_LONGEST:.0f}, or None.")
    return float(value)
