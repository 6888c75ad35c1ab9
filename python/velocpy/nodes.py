"""The nodes of trees beside their arrays: what two checkpoints have there, and in what they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from . import tree
from .comparison import ValueDifference

#: A way from the root of a tree to a node. Keys 1 and "1" differ, as do 1 and True.
_Path = tuple[str | int, ...]


class Note(NamedTuple):
    """What stands beside the arrays of a checkpoint."""

    #: Of a tree: the kind of each container, "array", or the JSON of a value. None: it is no tree.
    nodes: dict[_Path, str] | None
    #: JSON of the meta with its names sorted; None without.
    meta: str | None


def note_of(structure: bytes | None, raw: bytes | None) -> Note:
    """What a checkpoint has beside its arrays, of the structure of its tree, if it is one, and the bytes of its meta.

    Raises
    ------
    ValueError
        They are not what a checkpoint has.

    Examples
    --------
    >>> from velocpy.nodes import note_of
    >>> note_of(b'["dict","lr","value","w","array"]', b'[[0.5],{"b":1,"a":2}]')
    Note(nodes={(): 'dict', ('lr',): '0.5', ('w',): 'array'}, meta='{"a": 2, "b": 1}')
    """
    try:
        read = None if raw is None else json.loads(raw.decode("utf-8", "surrogatepass"))
        if structure is None:
            return Note(None, _canonical(read))
        if not (isinstance(read, list) and len(read) == 2 and isinstance(read[0], list)):
            raise ValueError("the values of its tree are missing")
        values = iter(read[0])
        nodes = dict(_walk(json.loads(structure), (), values))
        if next(values, ...) is not ...:
            raise ValueError("its tree has too many values")
        return Note(nodes, _canonical(read[1]))
    except (LookupError, RecursionError, TypeError) as error:
        raise ValueError(str(error)) from error


def _canonical(meta: Any) -> str | None:
    return None if meta is None else json.dumps(meta, sort_keys=True)


def _walk(node: Any, path: _Path, values: Iterator[Any]) -> Iterator[tuple[_Path, str]]:
    if node == "array":
        yield path, "array"
        return
    if node == "value":
        value = next(values, ...)
        if value is ...:
            raise ValueError("its tree has too few values")
        yield path, json.dumps(value)
        return
    kind, *items = node
    yield path, str(kind)
    if kind in ("list", "tuple"):
        pairs: Any = enumerate(items)
    else:
        pairs = zip(items[::2], items[1::2], strict=True)
    for key, child in pairs:
        yield from _walk(child, (*path, key), values)


def differences(one: Note, other: Note, *, regions_differ: bool) -> list[ValueDifference]:
    """In what the trees differ beside their arrays, in the order of the first one.

    Arrays that only one has are among the regions that differ, and so are the containers around them. With
    ``regions_differ`` they are not told a second time.
    """
    if one.nodes is None and other.nodes is None:
        return []
    if one.nodes is None or other.nodes is None:
        mine, theirs = ("arrays" if note.nodes is None else "tree" for note in (one, other))
        return [ValueDifference("", "kind", (mine, theirs))]
    found = [_difference(path, one.nodes.get(path), other.nodes.get(path)) for path in one.nodes | other.nodes]
    told = [difference for difference in found if difference is not None]
    if told or regions_differ or one.nodes == other.nodes:
        return told
    return [ValueDifference("", "kind", ("tree", "a tree of other containers"))]


def _difference(path: _Path, one: str | None, other: str | None) -> ValueDifference | None:
    if one == other or (None in (one, other) and (one or other) in _KINDS):
        return None
    if None in (one, other):
        return ValueDifference(tree.name(path), "only in one", (one, other))
    kind = one in _KINDS or other in _KINDS
    return ValueDifference(tree.name(path), "kind" if kind else "value", (one, other))


#: What is no value: JSON writes no value like this.
_KINDS = frozenset(("array", "dict", "ordered", "list", "tuple"))
