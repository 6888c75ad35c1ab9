"""Element types as texts, as the shim and the files of a store have them, and back."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np

from .errors import CorruptCheckpoint, InvalidType


def dtype_text(dtype: np.dtype[Any]) -> str:
    """A dtype as text, from which `dtype_from_text` makes an equal one.

    Examples
    --------
    >>> import numpy as np
    >>> from velocpy.dtypes import dtype_text
    >>> dtype_text(np.dtype("complex64")), dtype_text(np.dtype("datetime64[ms]"))
    ('<c8', '<M8[ms]')
    """
    if dtype.hasobject or dtype.kind == "T":
        raise InvalidType(
            f"arrays of dtype {dtype} hold references, not bytes; store numbers or fixed-length texts, or pickle them."
        )
    if dtype.kind in "mM" and "[0" in dtype.str:
        raise InvalidType(f"arrays of dtype {dtype} count in units of no length; store them as numbers.")
    if dtype.names is not None:
        return json.dumps(_structure(dtype), sort_keys=True, ensure_ascii=True)
    if dtype.subdtype is not None:
        return json.dumps(_subarray(dtype))
    if dtype.type.__module__.partition(".")[0] != "numpy":
        return "=" + dtype.name
    return dtype.str


def dtype_of_region(dtype: np.dtype[Any], label: Any) -> str:
    """The same text for the shim; an error names the region."""
    try:
        return dtype_text(dtype)
    except InvalidType as error:
        raise InvalidType(f"region {label!r}: {error}") from None


def dtype_from_text(text: str, itemsize: int | None = None) -> np.dtype[Any]:
    """The dtype that `dtype_text` wrote.

    Raises
    ------
    CorruptCheckpoint
        When the text means none, or one of references, or one whose elements have not ``itemsize`` bytes.
    InvalidType
        When a library is missing that knows it.
    """
    try:
        dtype = _dtype(text)
    except InvalidType:
        raise
    except _NO_DTYPE as error:
        raise CorruptCheckpoint(f"a region has the dtype {text!r:.80}, which NumPy does not know: {error}.") from error
    if dtype.hasobject or (itemsize is not None and dtype.itemsize != itemsize):
        raise unlike(text, itemsize)
    return dtype


#: Whatever NumPy and JSON raise for a text that is no dtype.
_NO_DTYPE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    SystemError,
    TypeError,
    ValueError,
)

#: How the byte order of this machine is written.
NATIVE = np.dtype("f8").str[0]


def _dtype(text: str) -> np.dtype[Any]:
    if text.startswith("="):
        return _extension(text[1:])
    if text.startswith(("{", "[")):
        return _from_json(json.loads(text))
    return np.dtype(text)


def unlike(text: str, itemsize: int | None) -> CorruptCheckpoint:
    """The exception for a text whose elements hold references or have not ``itemsize`` bytes."""
    return CorruptCheckpoint(
        f"a region has the dtype {text!r:.80}, whose elements hold references or have not {itemsize} bytes: its "
        "description is damaged. Other checkpoints are not affected; write this one again."
    )


def same_dtype(one: str, other: str) -> bool:
    """Whether two texts mean equal dtypes."""
    if one.startswith("=") or other.startswith("="):
        return one == other
    return bool(dtype_from_text(one) == dtype_from_text(other))


def _structure(dtype: np.dtype[Any]) -> dict[str, Any]:
    assert dtype.names is not None
    assert dtype.fields is not None
    fields = [dtype.fields[name] for name in dtype.names]
    return {
        "names": list(dtype.names),
        "formats": [dtype_text(field[0]) for field in fields],
        "offsets": [field[1] for field in fields],
        "titles": [_title(field[2]) if len(field) > 2 else None for field in fields],
        "itemsize": dtype.itemsize,
        "aligned": dtype.isalignedstruct,
    }


def _title(title: Any) -> str | int | None:
    plain = type(title) is int and 0 <= title < 1 << 31
    if title is None or type(title) is str or plain:
        return title  # type: ignore[no-any-return]
    raise InvalidType(
        f"a field has the title {title!r:.80}; titles that can be stored are texts and numbers from 0 up."
    )


def _subarray(dtype: np.dtype[Any]) -> list[Any]:
    assert dtype.subdtype is not None
    return [dtype_text(dtype.subdtype[0]), list(dtype.subdtype[1])]


def _from_json(described: Any) -> np.dtype[Any]:
    if isinstance(described, list):
        base, shape = described
        return np.dtype((dtype_from_text(base), tuple(shape)))
    aligned = described.pop("aligned")
    if not isinstance(aligned, bool):
        raise TypeError(f"aligned is {aligned!r:.80}")
    if all(title is None for title in described["titles"]):
        del described["titles"]
    described["formats"] = [dtype_from_text(text) for text in described["formats"]]
    try:
        dtype: np.dtype[Any] = np.dtype(described, align=aligned)
    except ValueError:  # aligned where it was written: other machines align otherwise, and the offsets say it all
        dtype = np.dtype(described)
    return dtype


def _extension(name: str) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except (ImportError, AttributeError, TypeError) as error:
        raise InvalidType(
            f"a region has the dtype {name}, which NumPy knows through the package ml_dtypes only."
        ) from error
    return dtype
