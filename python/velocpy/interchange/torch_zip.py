"""The zip files of ``torch.save``: tensors and plain values, and no other objects."""

from __future__ import annotations

import io
import pickle
import re
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from velocpy.errors import InvalidArgument, InvalidType
from velocpy.extra import MissingExtra
from velocpy.training.encoding import encode
from velocpy.tree import name

from .content import Content
from .placing import open_ordinary, unreadable

#: How these files are named.
SUFFIXES = (".pt", ".pth", ".bin", ".ckpt")

#: What the zip's pickle is called, and most bytes of it that are looked through for the entry of an object.
_PICKLE, _LONGEST = "data.pkl", 1 << 30

_Path = tuple[Any, ...]


def read(file: Path) -> Content:
    """The state of a file as a tree, whose tensors lie in the mapped file. Nothing that is pickled there is run."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", "torch", "this format") from None
    try:
        with open_ordinary(file) as opened:
            if opened.read(4) != b"PK\x03\x04":
                raise InvalidArgument(
                    f"{file} is no zip file of torch.save. A file of torch before 1.6, or one of another kind, is not "
                    "read; load it with torch and save it again."
                )
    except OSError as error:
        raise unreadable(file, error) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is refused below, and of how long it may take
            state = torch.load(str(file), map_location="cpu", mmap=True, weights_only=True)
    except pickle.UnpicklingError as error:
        raise _refused(file, error) from None
    except Exception as error:  # torch's readers raise whatever the file makes them raise
        raise InvalidArgument(f"{file} is no file of torch.save that can be read: {error!s:.300}.") from None
    if isinstance(state, torch.Tensor):
        state = [state]
    if not isinstance(state, (Mapping, list, tuple)):
        raise InvalidType(f"{file} holds a {type(state).__name__}, and neither tensors nor a container of them.")
    nbytes = file.stat().st_size
    return Content(_tree(state), None, nbytes, nbytes)


def _tree(state: Any) -> Any:
    """The state as a `velocpy.Checkpointer` saves it: the entries of a dict are its parts."""
    if isinstance(state, Mapping):
        return {key: encode(value, (key,)) for key, value in state.items()}
    return encode(state)


def _refused(file: Path, error: Exception) -> InvalidType:
    """The exception for an object that is no tensor and no plain value; it names the entry if that can be found."""
    found = re.search(r"GLOBAL ([\w.]+)", str(error)) or re.search(r"class (?:object )?([\w.]+)", str(error))
    if found is None:
        return InvalidType(f"{file} holds more than tensors and plain values: {error!s:.300}. Nothing was imported.")
    kind = found.group(1)
    path = _entry_of(file, kind)
    where = "somewhere" if path is None else f"at {name(path)!r}"
    return InvalidType(
        f"{file} holds {where} an object of {kind}, which is no tensor and no plain value. Nothing was imported, and "
        "nothing of it was run; save a state of tensors, containers and plain values."
    )


class _Object:
    """Stands for any object of a pickle: it notes what it was made from and does nothing."""

    kind = ""

    def __new__(cls, *arguments: Any, **named: Any) -> _Object:
        made = super().__new__(cls)
        made.parts = [*arguments, *named.values()]
        return made

    parts: list[Any]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.parts.append(state)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.parts.append(value)

    def append(self, value: Any) -> None:
        self.parts.append(value)

    def extend(self, values: Any) -> None:
        self.parts.extend(values)

    def add(self, value: Any) -> None:
        self.parts.append(value)

    def __hash__(self) -> int:
        return id(self)


class _Outline(pickle.Unpickler):
    """Reads the containers of a pickle. All objects are `_Object`: no class or function is looked up."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        return type(name, (_Object,), {"kind": f"{module}.{name}"})

    def persistent_load(self, pid: Any) -> Any:
        return None


def _entry_of(file: Path, kind: str) -> _Path | None:
    """The path to the first object of a kind, or None."""
    try:
        with zipfile.ZipFile(file) as archive:
            entry = next(each for each in archive.infolist() if each.filename.rpartition("/")[2] == _PICKLE)
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > _LONGEST:
                return None
            outline = _Outline(io.BytesIO(archive.read(entry))).load()
        return next((path for path, found in _objects(outline, (), set()) if found == kind), None)
    except Exception:  # a pickle can make the reader raise anything; the entry is for the message alone
        return None


def _objects(node: Any, path: _Path, met: set[int]) -> Iterator[tuple[_Path, str]]:
    if id(node) in met or isinstance(node, (str, int, float, type(None))):
        return
    met.add(id(node))
    if isinstance(node, _Object):
        yield path, node.kind
        for part in node.parts:
            yield from _objects(part, path, met)
    elif isinstance(node, type) and issubclass(node, _Object):
        yield path, node.kind
    elif isinstance(node, Mapping):
        for key, child in node.items():
            yield from _objects(child, (*path, key), met)
    elif isinstance(node, (list, tuple, set, frozenset)):
        for number, child in enumerate(node):
            yield from _objects(child, (*path, number), met)
