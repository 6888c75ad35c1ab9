"""Reads the objects of an archive in a bucket by docs/format.md alone: the files of a store come out."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import xxhash

LAST = (1 << 64) - 1


def document(content: bytes) -> dict[str, Any]:
    """The fields of a commit or of a whole catalog."""
    magic, version, zero, store, number, mark, base, length = struct.unpack_from("<8sII16sQ16s16sQ", content)
    assert (magic, version, zero) == (b"VELOCS3\0", 1, 0)
    assert content[-8:] == struct.pack("<Q", xxhash.xxh3_64_intdigest(content[:-8]))
    at = struct.calcsize("<8sII16sQ16s16sQ")
    (count,) = struct.unpack_from("<Q", content, at)
    at += 8
    packs = {}
    for _ in range(count):
        data, commit, name, nbytes = struct.unpack_from("<QQ16sQ", content, at)
        packs[data] = (f"{LAST - commit:016x}-{name.hex()}", nbytes)
        at += 40
    (count,) = struct.unpack_from("<Q", content, at)
    at += 8
    files = {}
    for _ in range(count):
        name, nbytes = struct.unpack_from("<QQ", content, at)
        files[name] = content[at + 16 : at + 16 + nbytes]
        at += 16 + nbytes
    assert at == len(content) - 8
    return {
        "store": store, "number": number, "mark": mark, "base": base, "length": length, "packs": packs, "files": files
    }  # fmt: skip


def unpacked(objects: Path, to: Path) -> int:
    """Makes a directory with the archive's files, and returns the number of its newest commit."""
    to.mkdir()
    identity = (objects / "velocpy.store").read_bytes()
    (to / "velocpy.store").write_bytes(identity)
    newest = min((objects / "commits").iterdir())
    commit = document(newest.read_bytes())
    assert commit["store"] == identity[16:32]
    assert newest.name == f"{LAST - commit['number']:016x}"
    parts = [commit]
    if any(commit["base"]):
        whole = (objects / "catalogs" / commit["base"].hex()).read_bytes()
        assert len(whole) == commit["length"]
        parts.insert(0, document(whole))
    for part in parts:
        for number, content in part["files"].items():
            (to / f"catalog-{number:016x}").write_bytes(content)
        for number, (name, nbytes) in part["packs"].items():
            pack = (objects / "packs" / name).read_bytes()
            assert len(pack) == nbytes
            (to / f"data-{number:016x}").write_bytes(pack)
    return int(commit["number"])
