"""Names of regions that are given as keywords, and names of options beside which they stand.

Every keyword of `History.checkpoint` that is no option names a region. So that no option is taken for a region,
keywords that look like a misspelt option are refused. A mapping takes regions of any name:
``checkpoint(key, {"timout": a})``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from . import tree
from .errors import InvalidArgument, InvalidType

#: Options of `History.checkpoint`.
OPTIONS = ("copy", "meta", "tier", "timeout", "stream")

#: Its arguments that are given by position only.
BY_POSITION = ("key", "regions")

#: In names from this length on one wrong letter is a misspelling. Shorter ones resemble names of fields: meta and beta.
_LONG = 6

#: How alike (0 to 1) a keyword without an array is to an option that was probably meant: time and timeout, not step
#: and stream.
_ALIKE = 0.65


@lru_cache(maxsize=1024)
def require_regions(*names: str) -> None:
    """Refuses keywords that are an argument of `History.checkpoint` given by position, or resemble an option.

    Raises
    ------
    InvalidArgument
        Names the keyword, what was probably meant, and how a region of that name is kept.

    Examples
    --------
    >>> from velocpy import arguments
    >>> arguments.require_regions("u", "eta")
    >>> try:
    ...     arguments.require_regions("u", "timout")
    ... except ValueError as error:
    ...     print(error)
    'timout' is no option of checkpoint(): timeout= is probably meant. Nothing was captured. A region called 'timout'
    goes into a mapping: checkpoint(key, {'timout': …}).
    """
    for name in names:
        meant = next((known for known in (*OPTIONS, *BY_POSITION) if _resembles(name, known)), None)
        if meant is None:
            continue
        if meant in BY_POSITION:
            why = f"{meant} is probably meant, which goes by position: checkpoint(key, …) or checkpoint(key, regions)"
        else:
            why = f"{meant}= is probably meant"
        raise InvalidArgument(f"{name!r} is no option of checkpoint(): {why}. Nothing was captured. {_mapped(name)}")


def require_no_options(named: Mapping[str, Any]) -> None:
    """Refuses keywords of a tree that resemble an option and hold no array; `hint` has the option.

    Raises
    ------
    InvalidType
        Names the keyword, and how a part of that name is kept.

    Examples
    --------
    >>> from velocpy import arguments
    >>> arguments.require_no_options({"model": {"w": b"bytes"}, "step": 3})
    >>> try:
    ...     arguments.require_no_options({"model": {"w": b"bytes"}, "cpoyy": False})
    ... except TypeError as error:
    ...     print(error)
    'cpoyy' holds no array, and resembles an option. Nothing was captured. A part of a tree that is called 'cpoyy' goes
    into a mapping: checkpoint(key, {'cpoyy': …}).
    """
    for name, value in named.items():
        if _alike(name) is not None and not tree.flatten({name: value}).regions:
            raise InvalidType(
                f"{name!r} holds no array, and resembles an option. Nothing was captured. A part of a tree that is "
                f"called {name!r} goes into a mapping: checkpoint(key, {{{name!r}: …}})."
            )


def hint(options: Mapping[str, Any], named: Mapping[str, Any]) -> str:
    """A sentence for the error of a refused `History.checkpoint`, or nothing.

    Parameters
    ----------
    options
        What was given as options. An array among them was meant as a region.
    named
        What was given as other keywords. A plain value among them was meant as an option, if its name is like one.

    Examples
    --------
    >>> import numpy
    >>> from velocpy import arguments
    >>> arguments.hint({"stream": numpy.zeros(3)}, {})
    "A region called 'stream' goes into a mapping: checkpoint(key, {'stream': …})."
    >>> arguments.hint({}, {"cpoyy": False})
    "Is copy= meant by 'cpoyy'?"
    """
    for name, value in options.items():
        if _is_array(value):
            return _mapped(name)
    for name, value in named.items():
        alike = None if _is_array(value) else _alike(name)
        if alike is not None:
            return f"Is {alike}= meant by {name!r}?"
    return ""


def _alike(name: str) -> str | None:
    """The option that a name is most like, if any."""
    import difflib

    found = difflib.get_close_matches(name, OPTIONS, 1, _ALIKE)
    return found[0] if found else None


def _mapped(name: str) -> str:
    return f"A region called {name!r} goes into a mapping: checkpoint(key, {{{name!r}: …}})."


def _is_array(value: Any) -> bool:
    return any(hasattr(value, shown) for shown in ("__array__", "__dlpack__", "__cuda_array_interface__"))


def _resembles(name: str, known: str) -> bool:
    """Whether a name is another one, in other case, with other underscores, or misspelt."""
    plain = name.replace("_", "").lower()
    if plain == known or plain == known + "s" or plain + "s" == known:
        return True
    if abs(len(plain) - len(known)) > 1:
        return False
    differ = [i for i, (one, other) in enumerate(zip(plain, known, strict=False)) if one != other]
    at = differ[0] if differ else min(len(plain), len(known))
    if plain[at : at + 2] == known[at : at + 2][::-1] and plain[at + 2 :] == known[at + 2 :]:
        return len(plain) == len(known)
    if len(known) < _LONG:
        return False
    left_out, added, replaced = (
        plain[at:] == known[at + 1 :],
        plain[at + 1 :] == known[at:],
        plain[at + 1 :] == known[at + 1 :],
    )
    return left_out or added or replaced
