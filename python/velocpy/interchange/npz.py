"""NumPy's npz: an archive of arrays."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from velocpy.errors import InvalidArgument, InvalidType, VelocError
from velocpy.quantity import exact

from .content import Content, Outgoing, plain
from .placing import open_ordinary, place, unreadable

#: How the comment of an archive begins that has a meta.
_COMMENT = b"velocpy.meta="

#: Bytes of a name in an archive, behind which ".npy" stands.
_LONGEST = 65_000


def write(file: Path, outgoing: Outgoing) -> list[Path]:
    """Writes a checkpoint as an archive; returns its file."""
    comment = b"" if outgoing.meta is None else _COMMENT + outgoing.meta.encode()
    if len(comment) > zipfile.ZIP_MAX_COMMENT:
        raise InvalidType(f"npz has room for a meta of {exact(zipfile.ZIP_MAX_COMMENT)}; safetensors takes this one.")
    for name, facts in outgoing.regions.items():
        if _leads_away(name) or len(name.encode()) > _LONGEST:
            raise InvalidType(
                f"npz is an archive of files, and {name!r:.80} cannot be the name of one in a folder; safetensors "
                "takes this region."
            )
        if facts.dtype.startswith("="):
            raise InvalidType(f"npz knows no dtype {facts.dtype[1:]} (region {name!r}); safetensors may.")

    def written(beside: Path) -> None:
        with beside.open("xb") as to, zipfile.ZipFile(to, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            archive.comment = comment
            for name, array in outgoing.arrays(outgoing.regions):
                values = plain(name, array, "npz", "safetensors")
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, values, allow_pickle=False)

    place(file, written)
    return [file]


def read(file: Path) -> Content:
    """The arrays of an archive, in memory."""
    try:
        with open_ordinary(file) as opened, np.load(opened, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise InvalidArgument(f"{file} is no npz file, but one array.")
            comment = archive.zip.comment if archive.zip is not None else b""
            meta = comment[len(_COMMENT) :].decode() if comment.startswith(_COMMENT) else None
            arrays = {name: _entry(file, archive, name) for name in archive.files}
    except VelocError:
        raise
    except _NO_NPZ as error:
        raise InvalidArgument(f"{file} is no npz file that can be read: {error}.") from None
    except OSError as error:
        raise unreadable(file, error) from error
    return Content(arrays, meta, sum(array.nbytes for array in arrays.values()), file.stat().st_size)


def _leads_away(name: str) -> bool:
    """Whether a program that unpacks an archive might write outside of its folder, or elsewhere in it."""
    parts = re.split(r"[/\\]", name)
    return name.startswith(("/", "\\")) or ".." in parts or "\0" in name or re.match("[A-Za-z]:", name) is not None


#: Whatever NumPy and the library of archives raise for a file that is none.
_NO_NPZ = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def _entry(file: Path, archive: Any, name: str) -> np.ndarray[Any, Any]:
    if _leads_away(name):
        raise InvalidArgument(f"{file} has an entry {name!r:.80}, which is no name in a folder; nothing was imported.")
    values = archive[name]
    if not isinstance(values, np.ndarray):
        raise InvalidArgument(f"{file} has an entry {name!r:.80} that is no array; nothing was imported.")
    return values
