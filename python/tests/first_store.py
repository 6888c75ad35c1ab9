"""The store that stands for all of the first version: what is in it, and how it was written."""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from bits import same

import velocpy

#: Written by velocpy 0.1.0 through `write`; it has to open for ever.
FIXTURE = Path(__file__).parent / "data" / "store-version-1.tar.gz"


def unpack(fixture: Path, to: Path) -> Path:
    """Unpacks a fixture into a directory, and returns it."""
    with tarfile.open(fixture) as archive:
        archive.extractall(to, filter="data")
    return to


Regions = dict[str, np.ndarray[Any, Any]] | list[np.ndarray[Any, Any]]


def contents() -> dict[str, dict[int | str, tuple[Regions, Any]]]:
    """Histories, keys, regions and meta."""
    noise = np.resize(np.random.Generator(np.random.PCG64(1)).integers(0, 256, 4099, dtype=np.uint8), 600_000)
    nan = np.array([0x7FF8_0000_DEAD_BEEF, 0xFFF0_0000_0000_0001], np.uint64).view("f8")
    fields = np.zeros(3, np.dtype({"names": ["x", "y"], "formats": ["<f4", "<i8"], "offsets": [0, 8], "itemsize": 16}))
    fields["x"], fields["y"] = [1, 2, 3], [-1, -2, -3]
    return {
        "forward": {
            **{step: ({"u": noise[step : step + 4000 + step].copy()}, {"t": step / 2}) for step in range(20)},
            -7: ({"leaves": noise, "few": noise[:300_000].view("<f4")}, None),
            1 << 62: ({"nan": nan, "empty": np.empty((3, 0), "<c8"), "scalar": np.array(7, "<i2")}, [1, "ü", None]),
            "best \udc80": ({"fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)), "\u00fc": fields}, None),
        },
        "ü": {
            "": ([np.arange(5, dtype=">u4"), np.array(["2026-11-22"], "<M8[D]")], "a list"),
            0: ({"swapped": np.arange(24, dtype="<i8").reshape(2, 3, 4).transpose(1, 2, 0)}, 0),
        },
        "emptied": {},
    }


def compare(found: dict[str, dict[Any, Any]]) -> None:
    """Asserts that what the second reader has read of a store are these contents."""
    wanted = {name: held for name, held in contents().items() if held}
    assert {name: len(held) for name, held in found.items()} == {name: len(held) for name, held in wanted.items()}
    for name, held in found.items():
        for key, (regions, meta) in held.items():
            label = key.decode("utf-8", "surrogatepass") if isinstance(key, bytes) else key
            arrays, wanted_meta = wanted[name][label]
            named = arrays if isinstance(arrays, dict) else dict(enumerate(arrays))
            assert [region.name for region in regions] == list(named)
            assert all(same(region.array, named[region.name]) for region in regions)
            assert meta == wanted_meta


def write(path: Path) -> None:
    """Makes the store; some of it is replaced or dropped on the way."""
    with velocpy.open(path, host="16MiB", disk="4MiB") as store:
        store.history("emptied").checkpoint("gone", u=np.ones(1000)).wait("disk")
        store.history("emptied").clear()
        for name, held in contents().items():
            for key, (regions, meta) in held.items():
                store.history(name).checkpoint(key, u=np.zeros(77)).wait("disk")
                store.history(name).checkpoint(key, regions, meta=meta).wait("disk")
        store.history("ü").checkpoint("dropped", u=np.ones(1000)).wait("disk")
        store.history("ü").drop("dropped")
    with velocpy.open(path, host="16MiB", disk="4MiB") as store:  # another file of the log
        store.history("ü").retain(last=2, every=5, named=True, keys=[3, "text"])


def main() -> None:
    """Writes the fixture anew: only ever for a version that is to have one."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "store"
        write(path)
        with tarfile.open(sys.argv[1], "w:gz") as archive:
            for file in sorted(path.iterdir()):
                archive.add(file, f"store/{file.name}")


if __name__ == "__main__":
    main()
