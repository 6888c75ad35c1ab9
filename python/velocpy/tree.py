"""Trees: nested dicts, lists and tuples of arrays and small values, as the regions of a checkpoint and back.

A tree consists of containers (dict, `collections.OrderedDict`, list, tuple), arrays, and values (None, bool, int, float
and str). Each array is a region, which is named by its path: keys and numbers of list items, joined by dots. The
structure says how arrays and values are put together again; checkpoints of one structure share it. The values stand
beside the meta of each checkpoint. docs/format.md defines both texts.

Examples
--------
>>> import numpy
>>> from velocpy import tree
>>> flat = tree.flatten({"model": {"w": numpy.ones(2)}, "betas": (0.9, 0.99)})
>>> list(flat.regions), flat.structure, flat.values
(['model.w'], b'["dict","model",["dict","w","array"],"betas",["tuple","value","value"]]', [0.9, 0.99])
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from . import _core
from .errors import InvalidArgument, InvalidType
from .quantity import exact

#: How deep containers may be nested.
DEPTH = 100

#: Most bits of a number that is a key: Python reads no numbers of more digits.
KEY_BITS = 14_000

#: Most bytes of a structure.
STRUCTURE_LIMIT = 4 << 20

#: Most bytes of the values of one checkpoint, as JSON: they lie in memory for as long as their checkpoint lives in any
#: tier.
VALUES_LIMIT = 256 << 10

_DICTS: dict[type, str] = {dict: "dict", OrderedDict: "ordered"}
_LISTS: dict[type, str] = {list: "list", tuple: "tuple"}
#: Types of what a tree holds beside arrays and containers.
VALUES = frozenset((type(None), bool, int, float, str))
#: NumPy's scalars that are values, if Python has the same value. Others are arrays without axes.
_SCALARS = (np.bool_, np.integer, np.floating, np.str_)

#: The keys and the numbers of items on the way from the root to a node.
_Path = tuple[Any, ...]


class Flat(NamedTuple):
    """A tree in parts."""

    #: Its arrays, by name.
    regions: dict[str, Any]
    #: JSON in ASCII.
    structure: bytes
    #: Its values, in their order.
    values: list[Any]


def is_nested(regions: Any) -> bool:
    """Whether regions are a tree rather than a mapping of names to arrays, or a sequence of arrays.

    A tuple of two or three ints is raw memory where regions stand, and makes no tree.

    Examples
    --------
    >>> from velocpy import tree
    >>> tree.is_nested({"u": (0, 8)}), tree.is_nested({"u": (0, 8), "step": 3}), tree.is_nested({0: b"bytes"})
    (False, True, True)
    """
    if is_raw(regions):
        return False
    return holds_more(regions) or (isinstance(regions, Mapping) and any(type(key) is int for key in regions))


def holds_more(regions: Any) -> bool:
    """Whether a mapping or a sequence holds something else than regions: containers or values."""
    if isinstance(regions, Mapping):
        return any(_is_no_region(node) for node in regions.values())
    return type(regions) in _LISTS and any(_is_no_region(node) for node in regions)


def is_raw(node: Any) -> bool:
    """Whether this is a tuple of two or three ints, as raw memory is given.

    Examples
    --------
    >>> from velocpy import tree
    >>> tree.is_raw((4096, 8)), tree.is_raw((True, False)), tree.is_raw([4096, 8])
    (True, False, False)
    """
    return (
        type(node) is tuple
        and len(node) in (2, 3)
        and all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in node)
    )


def _is_no_region(node: Any) -> bool:
    if type(node) is tuple:
        return not is_raw(node)
    return type(node) in VALUES or type(node) is list or type(node) in _DICTS


def flatten(tree: Any) -> Flat:
    """The regions, the structure and the values of a tree; a mapping of any type may be its root.

    Raises
    ------
    InvalidType
        Names the path of a key or of a container that a tree cannot have. Arrays are not looked at.
    InvalidArgument
        It is nested too deep, or too large.
    """
    found = _core.flatten(tree)
    return _flattened(tree) if found is None else Flat(*found)


def _flattened(tree: Any) -> Flat:
    walk = _Walk()
    structure = json.dumps(walk.node(_root(tree), ()), separators=(",", ":")).encode()
    if len(structure) > STRUCTURE_LIMIT:
        raise InvalidArgument(
            f"the structure of the tree takes {exact(len(structure))} as JSON; at most {exact(STRUCTURE_LIMIT)} fit. "
            "Make arrays of long lists, or several checkpoints."
        )
    return Flat(dict(zip(names(walk.paths), walk.arrays, strict=True)), structure, walk.values)


def destinations(tree: Any) -> dict[str, Any]:
    """The arrays of a tree by their names; ... at the names of its containers and values.

    Raises
    ------
    InvalidArgument
        There is no array in it; as `flatten` otherwise.
    """
    walk = _Walk()
    walk.node(_root(tree), ())
    if not walk.arrays:
        raise InvalidArgument("into= holds no array that could be filled.")
    found: dict[str, Any] = dict.fromkeys(map(name, walk.others), ...)
    found.update(zip(names(walk.paths), walk.arrays, strict=True))
    return found


def _root(tree: Any) -> Any:
    return dict(tree) if type(tree) not in _DICTS and isinstance(tree, Mapping) else tree


class _Walk:
    """A walk over a tree, which collects its leaves."""

    def __init__(self) -> None:
        self.paths: list[_Path] = []
        self.arrays: list[Any] = []
        self.others: list[_Path] = []  # of containers and values, but for the root
        self.values: list[Any] = []

    def node(self, node: Any, path: _Path) -> Any:
        """The structure of a node."""
        kind: Any = type(node)
        if kind in _DICTS:
            self._within(path)
            structure: list[Any] = [_DICTS[kind]]
            for key, child in node.items():
                if type(key) is not str and type(key) is not int:
                    raise InvalidType(
                        f"{_told(path)} has the key {key!r:.80} of type {type(key).__name__}; keys of a tree are str "
                        "or int."
                    )
                if type(key) is int and key.bit_length() > KEY_BITS:
                    raise InvalidType(f"{_told(path)} has an int of {key.bit_length()} bits as a key; make it a str.")
                if type(key) is str:
                    _require_same(key, path)
                structure += (key, self.node(child, (*path, key)))
            return structure
        if kind in _LISTS:
            self._within(path)
            return [_LISTS[kind], *(self.node(child, (*path, number)) for number, child in enumerate(node))]
        if kind in VALUES:
            return self._value(node, path)
        if not _is_array_type(kind):
            plain = _plain(node, path)
            if type(plain) in VALUES:
                return self._value(plain, path)
        self.paths.append(path)
        self.arrays.append(node)
        return "array"

    def _within(self, path: _Path) -> None:
        if len(path) >= DEPTH:
            raise InvalidArgument(
                f"{_told(path[:3])}… is nested more than {DEPTH} deep, or holds itself; make the tree flatter."
            )
        if path:
            self.others.append(path)

    def _value(self, value: Any, path: _Path) -> str:
        if type(value) is str:
            _require_same(value, path)
        self.others.append(path)
        self.values.append(value)
        return "value"


def _require_same(text: str, path: _Path) -> None:
    """Refuses halves of a character side by side: JSON reads them as the character."""
    if not text.isascii() and json.loads(json.dumps(text)) != text:
        raise InvalidType(f"{_told(path)} has a text with two surrogates side by side, which JSON cannot say.")


@lru_cache(maxsize=256)
def _is_array_type(kind: type) -> bool:
    """Whether what is of this type is an array, or is refused where arrays are looked at."""
    return not issubclass(kind, (Mapping, list, tuple, set, frozenset, str, int, float, np.generic))


def _plain(node: Any, path: _Path) -> Any:
    """The value of Python that a scalar of NumPy is, or else the scalar, which is an array.

    Refuses what would come back as another type, and tuples that would be taken for raw memory.
    """
    if isinstance(node, np.generic):
        return node.item() if isinstance(node, _SCALARS) and not isinstance(node, np.timedelta64) else node
    raise InvalidType(
        f"{_told(path)} is of type {type(node).__name__}, which would not come back as it is; make a dict, a list, a "
        "tuple, an array or a plain value of it: dict(x), x._asdict(), tuple(x), int(x)."
    )


def _told(path: _Path) -> str:
    return f"the tree at {name(path)!r}" if path else "the tree"


def name(path: _Path) -> str:
    """The name of a region in a tree whose names are all different.

    Examples
    --------
    >>> from velocpy import tree
    >>> tree.name(("optim", "state", 0, "exp_avg")), tree.name(("model", "layer.weight"))
    ('optim.state.0.exp_avg', 'model.layer.weight')
    """
    return ".".join(map(str, path))


def names(paths: list[_Path]) -> list[str]:
    """The names of regions. Where two would be the same, all of the tree are JSON pointers (RFC 6901).

    In these, ``~2`` stands before a number, be it a key or that of an item, so that the keys 1 and "1" differ.

    Examples
    --------
    >>> from velocpy import tree
    >>> tree.names([("a", "b"), ("a.b",), ("c",)]), tree.names([(1,), ("1",)])
    (['/a/b', '/a.b', '/c'], ['/~21', '/1'])
    """
    plain = [name(path) for path in paths]
    if len(set(plain)) == len(plain):
        return plain
    return ["".join(map(_pointed, path)) for path in paths]


def _pointed(part: str | int) -> str:
    if type(part) is int:
        return f"/~2{part}"
    return "/" + str(part).replace("~", "~0").replace("/", "~1")


def unflatten(structure: bytes, values: list[Any], array: Callable[[int], Any]) -> Any:
    """The tree of a structure, whose n-th array is ``array(n)``; each call makes containers of its own.

    Raises
    ------
    ValueError, TypeError, LookupError, RecursionError
        The structure is none, or that of other values.
    """
    left = iter(values)
    numbers = iter(range(len(structure)))
    tree = _built(json.loads(structure), left, numbers, array)
    if next(left, ...) is not ...:
        raise ValueError("there are more values than the structure has")
    return tree


def _built(node: Any, values: Iterator[Any], numbers: Iterator[int], array: Callable[[int], Any]) -> Any:
    if node == "array":
        return array(next(numbers))
    if node == "value":
        value = next(values, ...)
        if value is ...:
            raise ValueError("there are fewer values than the structure has")
        if type(value) not in VALUES:
            raise ValueError(f"a {type(value).__name__} stands where a value does")
        return value
    kind, *items = node
    if kind in ("list", "tuple"):
        built = [_built(item, values, numbers, array) for item in items]
        return tuple(built) if kind == "tuple" else built
    if kind not in ("dict", "ordered"):
        raise ValueError(f"{kind!r:.80} is no container")
    pairs = ((key, _built(item, values, numbers, array)) for key, item in zip(items[::2], items[1::2], strict=True))
    return dict(pairs) if kind == "dict" else OrderedDict(pairs)


def annotation(values: list[Any], meta: bytes | None) -> bytes:
    """What stands as the meta of a tree: its values, and beside them the meta proper.

    Raises
    ------
    InvalidType
        A value is something JSON cannot say: an int of more than 4300 digits.
    InvalidArgument
        The values are too large.
    """
    try:
        raw = json.dumps(values, separators=(",", ":")).encode()
    except ValueError as error:
        raise InvalidType(f"a value of the tree is something JSON cannot say: {error}. Make it a str.") from error
    if len(raw) > VALUES_LIMIT:
        raise InvalidArgument(
            f"the values of the tree that are no arrays take {exact(len(raw))} as JSON; at most {exact(VALUES_LIMIT)} "
            "fit. Make arrays of long lists and texts."
        )
    return b"[" + raw + b"," + (b"null" if meta is None else meta) + b"]"
