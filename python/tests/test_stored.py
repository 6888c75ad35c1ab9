"""Stores that are looked into and put in order: the module and its commands, on real stores."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from bits import bits
from click.testing import CliRunner, Result

import velocpy
from velocpy import _core, errors, interchange, ondisk
from velocpy.cli import main
from velocpy.cli.listing import ORDERS
from velocpy.cli.store_commands import SORTS
from velocpy.quantity import sized

SMALL = {"host": "64MiB", "disk": "1GiB"}
RNG = np.random.default_rng(7)
STATE = {
    "u": RNG.standard_normal((40, 50)),
    "mask": RNG.integers(0, 2, 33).astype(bool),
    "empty": np.zeros((0, 3), "f4"),
}
BIG = RNG.integers(0, 256, 3_000_001, dtype=np.uint8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "store"
    with velocpy.open(place, **SMALL) as store:
        run = store.history("run")
        for i in range(4):
            run.checkpoint(
                i, {name: array + array.dtype.type(i) if name == "u" else array for name, array in STATE.items()}
            )
            store.wait("disk")  # one after the other
        run.checkpoint("7", [BIG, np.asfortranarray(STATE["u"])])
        store.wait("disk")  # what comes last has a batch of its own
        store.history("other \ud800\n").checkpoint(-(1 << 63), u=np.arange(3))
    return place


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def messages(*arguments: object, code: int = 0) -> list[dict[str, Any]]:
    result = invoke(*arguments, "--json")
    assert result.exit_code == code, result.output
    found = [json.loads(line) for line in result.stdout.splitlines()]
    for each in found:
        assert list(each)[:2] == ["message_type", "version"]
        jsonschema.validate(each, SCHEMAS[each["message_type"]])
    return found


def _object(**kinds: Any) -> dict[str, Any]:
    head = {"message_type": {"type": "string"}, "version": {"const": 1}}
    return {"type": "object", "properties": head | kinds, "required": [*head, *kinds], "additionalProperties": False}


WHOLE, TEXT, FLAG = {"type": "integer", "minimum": 0}, {"type": "string"}, {"type": "boolean"}
KEY = {"type": ["integer", "string"]}
TIME = {"type": ["string", "null"], "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"}


def _or_null(kind: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [kind, {"type": "null"}]}


SCHEMAS = {
    "history": _object(
        history=TEXT,
        checkpoints=WHOLE,
        bytes=WHOLE,
        kept_bytes=WHOLE,
        last_serial=WHOLE,
        latest=TIME,
        retention=_or_null({"type": "object"}),
    ),
    "checkpoint": _object(
        history=TEXT,
        key=KEY,
        bytes=WHOLE,
        regions=WHOLE,
        serial=WHOLE,
        captured=TIME,
        meta_bytes=WHOLE,
        form={"enum": ["raw", "encoded", "difference", "unknown"]},
        stored_bytes=WHOLE,
        sources=WHOLE,
        source_bytes=WHOLE,
        checksums=FLAG,
        readable=FLAG,
    ),
    "checkpoint_detail": _object(
        history=TEXT,
        key=KEY,
        serial=WHOLE,
        captured=TIME,
        nbytes=WHOLE,
        slot_nbytes=WHOLE,
        form={"enum": ["raw", "encoded", "difference"]},
        stored_nbytes=WHOLE,
        sources=WHOLE,
        source_nbytes=WHOLE,
        meta_nbytes=WHOLE,
        regions={"type": "array", "items": {"type": "object"}},
        extents={"type": "array", "items": {"type": "object"}},
        structure={"type": ["array", "null"]},
        meta={},
    ),
    "fault": _object(
        kind={
            "enum": [
                "identity",
                "catalog",
                "missing",
                "unreadable",
                "changed",
                "description",
                "head",
                "index",
                "foreign",
            ]
        },
        file=TEXT,
        offset=WHOLE,
        nbytes=WHOLE,
        harmless=FLAG,
        fleeting=FLAG,
        why=TEXT,
        history=_or_null(TEXT),
        key=_or_null(KEY),
        serial=_or_null(WHOLE),
        region=_or_null(KEY),
        region_number=_or_null(WHOLE),
        region_offset=_or_null(WHOLE),
        region_nbytes=_or_null(WHOLE),
    ),
    "check": _object(
        checkpoints=WHOLE,
        nbytes=WHOLE,
        read=WHOLE,
        read_nbytes=WHOLE,
        without_checksums=WHOLE,
        unknown=WHOLE,
        superseded=WHOLE,
        damaged=WHOLE,
        faults=WHOLE,
        unused={"type": "array"},
        torn_nbytes=WHOLE,
        seed=_or_null(WHOLE),
        sound=FLAG,
        repaired=_or_null({"type": "object"}),
    ),
    "gc": _object(
        dry_run=FLAG, dropped=WHOLE, dropped_nbytes=WHOLE, removed_files=WHOLE, file_nbytes=WHOLE, catalog_nbytes=WHOLE
    ),
    "export": _object(history=TEXT, key=KEY, file=TEXT, bytes=WHOLE),
    "import": _object(history=TEXT, key=KEY, file=TEXT, bytes=WHOLE),
}


def flip(file: Path, offset: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(offset)
        byte = opened.read(1)[0]
        opened.seek(offset)
        opened.write(bytes([byte ^ 4]))


def flip_in(path: Path, history: str, key: int | str, region: int, offset: int) -> None:
    """Flips a bit of a region's byte where it lies on disk."""
    found = ondisk.describe(path, history, key)
    at = found.regions[region].offset + offset
    for extent in found.extents:
        if at < extent.nbytes:
            return flip(path / extent.file, extent.offset + at)
        at -= extent.nbytes
    raise AssertionError


def test_listings(path: Path) -> None:
    assert [(each["history"], each["checkpoints"]) for each in messages("ls", path)] == [
        ("other \ud800\n", 1),
        ("run", 5),
    ]
    listed = messages("ls", path, "run")
    assert [each["key"] for each in listed] == [0, 1, 2, 3, "7"]
    assert listed[0]["bytes"] == sum(array.nbytes for array in STATE.values())
    assert listed[4]["bytes"] == BIG.nbytes + STATE["u"].nbytes
    assert [entry.key for entry in ondisk.checkpoints(path, "run")] == [0, 1, 2, 3, "7"]
    assert [entry.key for entry in ondisk.checkpoints(path, "other \ud800\n")] == [-(1 << 63)]
    table = invoke("ls", path, "run")
    assert table.exit_code == 0
    assert [line.split()[-1] for line in table.stdout.splitlines()] == ["key", "0", "1", "2", "3", '"7"']
    assert invoke("ls", path).stdout.splitlines()[1].endswith('"other \\xed\\xa0\\x80\\n"')


def columns(text: str, count: int) -> list[list[str]]:
    """The cells of a table; a size is one, and so is a time."""
    units = ("B", "KiB", "MiB", "GiB")
    rows = []
    for line in text.splitlines():
        line = re.sub(r"(?<=\d) (?=\d\d:)| (?=\(UTC\))", "_", line)
        for unit in units:
            line = line.replace(f" {unit}", f"_{unit}")
        rows.append(line.split(None, count - 1))
    return rows


@pytest.fixture
def sorting(tmp_path: Path) -> Path:
    """Checkpoints that each order puts in another sequence."""
    metas = {3: {"loss": 0.5}, "b": None, -1: [1, "\x1b[2J"], "a": "x" * 100}
    with velocpy.open(tmp_path, host="16MiB", disk="1GiB") as store:
        for n, (key, meta) in enumerate(metas.items()):
            named = {f"r{k}": np.zeros(100 * (7 - 2 * n)) for k in range(1 + n % 2)}
            store.history("h").checkpoint(key, named, meta=meta).wait("disk")
        store.history("small").checkpoint(0, u=np.zeros(1))
    return tmp_path


def test_columns_of_a_listing(sorting: Path) -> None:
    head, *rows = columns(invoke("ls", sorting, "h").stdout.replace("on disk", "on_disk"), 7)
    assert head == ["size", "on_disk", "regions", "meta", "version", "captured_(UTC)", "key"]
    assert [row[1:4] + row[6:] for row in rows] == [
        ["8.0_KiB", "1", "12_B", "3"],
        ["8.0_KiB", "2", "0_B", '"b"'],
        ["4.0_KiB", "1", "15_B", "-1"],
        ["4.0_KiB", "2", "102_B", '"a"'],
    ]
    assert rows[0][0] == "5.5_KiB"
    facts = messages("ls", sorting, "h")
    assert [row[4] for row in rows] == [str(each["serial"]) for each in facts]
    head, *rows = columns(invoke("ls", sorting).stdout, 4)
    assert head == ["checkpoints", "size", "latest_(UTC)", "history"]
    assert [(row[0], row[3]) for row in rows] == [("4", '"h"'), ("1", '"small"')]


@pytest.mark.parametrize(
    ("sort", "keys"),
    [
        ("key", [-1, 3, "a", "b"]),
        ("size", ["a", -1, 3, "b"]),
        ("disk", [-1, "a", 3, "b"]),
        ("regions", [3, -1, "b", "a"]),
        ("meta", ["b", 3, -1, "a"]),
        ("version", [3, "b", -1, "a"]),
    ],
)
def test_sorted_listings(sorting: Path, sort: str, keys: list[Any]) -> None:
    assert [each["key"] for each in messages("ls", sorting, "h", "--sort", sort)] == keys
    assert [each["key"] for each in messages("ls", sorting, "h", "--sort", sort, "--reverse")] == keys[::-1]
    plain = invoke("ls", sorting, "h").stdout.splitlines()
    table = invoke("ls", sorting, "h", "--sort", sort).stdout.splitlines()
    assert table[0] == plain[0]
    assert sorted(table) == sorted(plain)
    assert [line.split()[-1] for line in table[1:]] == [json.dumps(key) for key in keys]


def test_sorted_histories(sorting: Path) -> None:
    for sort, names in (
        ("name", ["h", "small"]),
        ("size", ["small", "h"]),
        ("checkpoints", ["small", "h"]),
        ("version", ["h", "small"]),
    ):
        assert [each["history"] for each in messages("ls", sorting, "--sort", sort)] == names
        table = invoke("ls", sorting, "--sort", sort, "--reverse").stdout.splitlines()
        assert [line.split()[-1] for line in table[1:]] == [f'"{name}"' for name in reversed(names)]
    assert [each["history"] for each in messages("ls", sorting, "--reverse")] == ["small", "h"]


def test_every_order_that_is_offered_sorts(sorting: Path) -> None:
    """The names that the option takes are those of `velocpy.cli.listing`; each sorts histories or checkpoints."""
    assert set(SORTS) == set(ORDERS["histories"]) | set(ORDERS["rows"])
    for sort in SORTS:
        codes = {invoke("ls", sorting, *history, "--sort", sort).exit_code for history in ((), ("h",))}
        assert 0 in codes, sort


def test_listings_with_meta(sorting: Path) -> None:
    facts = [json.loads(line) for line in invoke("ls", sorting, "h", "--meta", "--json").stdout.splitlines()]
    assert [each["meta"] for each in facts] == [{"loss": 0.5}, None, [1, "\x1b[2J"], "x" * 100]
    without = messages("ls", sorting, "h")
    assert [{name: value for name, value in each.items() if name != "meta"} for each in facts] == without
    text = invoke("ls", sorting, "h", "--meta").stdout
    assert '  3  {"loss": 0.5}\n' in text
    assert '  "b"  -\n' in text
    assert "\x1b" not in text


def test_listings_that_make_no_sense(sorting: Path) -> None:
    for wrong in (["--sort", "key"], ["--meta"], ["h", "--sort", "checkpoints"], ["h", "--sort", "colour"]):
        result = invoke("ls", sorting, *wrong)
        assert result.exit_code == 2
        assert "Usage: " in result.stderr


def test_show_has_meta_and_a_table(sorting: Path) -> None:
    (facts,) = messages("show", sorting, "h", "3")
    assert facts["meta"] == {"loss": 0.5}
    text = invoke("show", sorting, "h", "--", "-1").stdout
    assert 'meta      [1, "\\u001b[2J"]' in text
    assert text.splitlines()[-2].split() == ["region", "dtype", "shape", "size", "checksum"]
    assert text.splitlines()[-1].split()[:5] == ['"r0"', "<f8", "300", "2.3", "KiB"]
    assert "meta" not in invoke("show", sorting, "h", "b").stdout


def test_meta_that_is_not_a_number(tmp_path: Path) -> None:
    with velocpy.open(tmp_path, host="16MiB", disk="1GiB") as store:
        store.history("h").checkpoint(0, u=np.zeros(1), meta={"loss": float("nan")})
    for line in (invoke("show", tmp_path, "h", "0", "--json"), invoke("ls", tmp_path, "h", "--meta", "--json")):
        assert json.loads(line.stdout, parse_constant=pytest.fail)["meta"] == {"loss": None}


def test_a_long_listing_comes_in_pages(tmp_path: Path) -> None:
    count = 60_000
    with velocpy.open(tmp_path, host="256MiB", disk="1GiB") as store:
        run = store.history("run")
        for i in range(count):
            run.checkpoint(i, [np.uint8(1)])
    lines = invoke("ls", tmp_path, "run", "--json").stdout.splitlines()
    assert sum(len(line) for line in lines) > 4 << 20
    found = [json.loads(line) for line in lines]
    assert sorted(each["key"] for each in found) == list(range(count))
    assert len({each["serial"] for each in found}) == count


def test_show(path: Path) -> None:
    (told,) = messages("show", path, "run", "1")
    assert [(r["name"], r["dtype"], r["shape"]) for r in told["regions"]] == [
        ("u", "<f8", [40, 50]),
        ("mask", "|b1", [33]),
        ("empty", "<f4", [0, 3]),
    ]
    (told,) = messages("show", path, "run", '"7"')
    assert [r["name"] for r in told["regions"]] == [0, 1]
    assert sized(BIG.nbytes + STATE["u"].nbytes) in invoke("show", path, "run", '"7"').stdout
    assert invoke("show", path, "run", "7").exit_code == 1
    assert invoke("show", path, "none", "7").exit_code == 1


@pytest.mark.parametrize(("subset", "chosen"), [(("--read-data",), 6), ((), 0), (("--subset", "100%"), 6)])
def test_a_sound_store(path: Path, subset: tuple[str, ...], chosen: int) -> None:
    (told,) = messages("check", path, *subset)
    assert told["sound"]
    assert (told["checkpoints"], told["read"], told["damaged"]) == (6, chosen, 0)
    assert told["read_nbytes"] == (told["nbytes"] if chosen else 0)
    assert sum(ondisk.check(path, subset=f"{n}/4").read for n in range(1, 5)) == 6


@pytest.mark.parametrize(
    ("key", "region", "offset", "start", "nbytes"),
    [
        (2, 0, 15_999, 0, 16_000),
        (2, 1, 0, 0, 33),
        ("7", 0, 3_000_000, 11 << 18, 3_000_001 - (11 << 18)),
        ("7", 1, 5, 0, 16_000),
    ],
)
def test_damage_is_named_exactly(path: Path, key: int | str, region: int, offset: int, start: int, nbytes: int) -> None:
    flip_in(path, "run", key, region, offset)
    assert invoke("check", path).exit_code == 0  # nothing was read
    fault, told = messages("check", path, "--read-data", code=3)
    assert told["damaged"] == told["faults"] == 1
    name = region if key == "7" else list(STATE)[region]
    assert (fault["kind"], fault["history"], fault["key"], fault["region"]) == ("changed", "run", key, name)
    assert (fault["region_offset"], fault["region_nbytes"]) == (start, nbytes)
    text = invoke("check", path, "--read-data")
    assert text.exit_code == 3
    assert f"key {key!r}, region {name!r}, bytes {start} to {start + nbytes}" in text.stdout
    assert text.stdout.endswith(": 1 fault, 1 checkpoint damaged\n")
    with velocpy.open(path, mode="r", host="64MiB") as store, pytest.raises(velocpy.errors.CorruptCheckpoint):
        store.history("run").restore(key)


def test_repair_drops_what_is_damaged_only_on_request(path: Path) -> None:
    flip_in(path, "run", 2, 0, 3)
    assert messages("check", path, "--read-data", "--repair", code=3)[-1]["repaired"]["dropped"] == 0
    assert messages("check", path, "--read-data", "--repair", "--drop-damaged", code=3)[-1]["repaired"]["dropped"] == 1
    assert messages("check", path, "--read-data")[-1]["checkpoints"] == 5
    assert [entry.key for entry in ondisk.checkpoints(path, "run")] == [0, 1, 3, "7"]


def test_what_is_right_when_it_is_read_once_more_is_not_dropped(path: Path) -> None:
    flip_in(path, "run", 2, 0, 3)
    faults = ondisk.check(path, read_data=True).faults
    flip_in(path, "run", 2, 0, 3)
    assert ondisk.repair(path, drop=faults) == ondisk.Repaired(False, False, 0, 1)
    flip_in(path, "run", 1, 0, 3)
    text = invoke("check", path, "--read-data", "--repair", "--drop-damaged").stdout
    assert "1 checkpoint was dropped" in text
    assert [entry.key for entry in ondisk.checkpoints(path, "run")] == [0, 2, 3, "7"]


def test_an_identity_is_repaired(path: Path) -> None:
    copies = [("velocpy.store", 17), ("velocpy.store", 4096 + 17), ("velocpy.copy", 17)]
    for damaged in (copies[:1], copies[1:2], copies[2:], copies[:2], copies[1:]):
        for name, offset in damaged:
            flip(path / name, offset)
        found = messages("check", path, code=3)
        assert [m["message_type"] for m in found] == ["fault"] * len(damaged) + ["check"]
        assert messages("check", path, "--repair", code=3)[-1]["repaired"]["identity"]
        assert messages("check", path)[-1]["sound"]
    for name, offset in copies:
        flip(path / name, offset)
    assert invoke("check", path).exit_code == 3


def test_a_torn_end_is_told(path: Path) -> None:
    assert "no whole batch" not in invoke("check", path).stdout
    (catalog,) = path.glob("catalog-*")
    whole = catalog.read_bytes()
    for cut in (41, 60):  # the frame that says that the log was closed, and bytes of the last batch
        catalog.write_bytes(whole[:-cut])
        (told,) = messages("check", path)
        assert told["sound"]
        assert told["torn_nbytes"] > 0
        text = invoke("check", path)
        assert text.exit_code == 0
        assert f"ends in {sized(told['torn_nbytes'])} that are no whole batch" in text.stdout
        assert told["checkpoints"] == 6  # a data file still says what that batch did


def test_a_catalog_is_repaired(path: Path) -> None:
    (catalog,) = path.glob("catalog-*")
    flip(catalog, catalog.read_bytes().index(b"run"))
    with pytest.raises(errors.DamagedStore):
        velocpy.open(path, **SMALL)
    assert invoke("gc", path).exit_code == 3
    found = messages("check", path, "--repair", code=3)
    assert found[-1]["repaired"]["catalog"]
    left = found[-1]["checkpoints"]
    assert messages("check", path, "--read-data")[-1]["checkpoints"] == left < 6
    velocpy.open(path, **SMALL).close()


def held(path: Path) -> dict[int | str, list[bytes]]:
    """The bytes of all regions of a history."""
    found = {}
    with velocpy.open(path, mode="r", host="64MiB") as store:
        for key in store.history("run"):
            with store.history("run").restore(key) as lease:
                found[key] = [bits(lease[name]) for name in (range(len(lease)) if key == "7" else lease)]
    return found


@pytest.mark.parametrize("gone", [["catalog-*"], ["catalog-*", "velocpy.*"]], ids=["catalog", "catalog and identity"])
def test_what_is_lost_is_found_in_the_data_files(path: Path, gone: list[str]) -> None:
    before, wanted = list(ondisk.checkpoints(path, "run")), held(path)
    for pattern in gone:
        for file in path.glob(pattern):
            file.unlink()
    assert invoke("check", path, "--repair").exit_code != 0
    told = messages("check", path, "--repair", "--rebuild", code=3)
    assert [each["message_type"] for each in told] == ["fault", "check"]
    assert not told[-1]["sound"]
    assert told[-1]["repaired"]["found"] == told[-1]["checkpoints"] == 6
    assert told[-1]["repaired"]["identity"] == (len(gone) > 1)
    assert list(ondisk.checkpoints(path, "run")) == before
    assert held(path) == wanted
    (sound,) = messages("check", path, "--read-data")
    assert sound["sound"]
    with velocpy.open(path, **SMALL) as store:
        store.history("run").checkpoint(100, u=np.arange(10)).wait("disk")
    (later,) = messages("check", path, "--read-data", "--repair", "--rebuild")
    assert (later["checkpoints"], later["repaired"]) == (7, None)


def test_what_a_damaged_catalog_lacks_is_found_too(path: Path) -> None:
    (catalog,) = path.glob("catalog-*")
    flip(catalog, catalog.read_bytes().index(b"run"))
    text = invoke("check", path, "--repair", "--rebuild")
    assert text.exit_code == 3
    assert "1 checkpoint was found in the data files" in text.stdout
    assert messages("check", path, "--read-data")[-1]["checkpoints"] == 6


def test_without_checksums_the_user_decides(tmp_path: Path) -> None:
    path = tmp_path / "unproven"
    with velocpy.open(path, **SMALL, tuning=velocpy.Tuning(checksum=False)) as store:
        store.history("run").checkpoint(0, u=np.arange(10))
    for file in path.glob("catalog-*"):
        file.unlink()
    copied = tmp_path / "copied"
    shutil.copytree(path, copied)
    assert "--keep-unproven takes them too" in invoke("check", path, "--repair", "--rebuild").stdout
    assert messages("check", path)[-1]["checkpoints"] == 0
    done = ondisk.repair(copied, rebuild=True, keep_unproven=True)
    assert (done.found, done.unproven) == (1, 0)
    with velocpy.open(copied, mode="r", host="64MiB") as store:
        assert np.array_equal(store.history("run").restore(0)["u"], np.arange(10))


def test_what_rebuilding_wants(path: Path) -> None:
    assert "wants --repair" in invoke("check", path, "--rebuild").stderr
    assert "wants --rebuild" in invoke("check", path, "--repair", "--keep-unproven").stderr
    with pytest.raises(ValueError, match="wants rebuild"):
        ondisk.repair(path, keep_unproven=True)


def test_an_index_is_repaired(path: Path) -> None:
    file = path / "data-0000000000000001"
    raw = bytearray(file.read_bytes())
    raw[4096:8192] = bytes(4096)
    file.write_bytes(raw)
    fault, told = messages("check", path, code=3)
    assert (fault["kind"], fault["file"], fault["offset"], fault["harmless"]) == ("index", file.name, 4096, True)
    assert told["damaged"] == 0
    assert "1 index of a data file was written again" in invoke("check", path, "--repair").stdout
    assert messages("check", path)[-1]["sound"]


def test_a_compacted_catalog_bears_a_lost_block(path: Path) -> None:
    messages("gc", path)  # which writes it anew
    (catalog,) = path.glob("catalog-*")
    whole = catalog.read_bytes()
    starts = range(0, len(whole), 4096)
    assert len(starts) > 3
    left = []
    for start in starts:
        catalog.write_bytes(whole[:start] + bytes(len(whole[start : start + 4096])) + whole[start + 4096 :])
        found = invoke("check", path, "--json").stdout.splitlines()
        last = json.loads(found[-1])
        left.append(last["checkpoints"])
        assert last["checkpoints"] == 6 or not last["sound"]
        velocpy.open(path, mode="r", host="64MiB").close()
        if not last["sound"]:
            with pytest.raises(errors.DamagedStore):
                velocpy.open(path, **SMALL)
    assert sorted(left) == [0] + [6] * (len(starts) - 1)  # all rows are in one part


def test_missing_data_is_a_corrupt_checkpoint(path: Path) -> None:
    extents = ondisk.describe(path, "run", "7").extents
    file = path / extents[-1].file
    for lose in (lambda: os.truncate(file, extents[-1].offset + 4096), file.unlink):
        lose()
        with (
            velocpy.open(path, mode="r", host="64MiB") as store,
            pytest.raises(velocpy.errors.CorruptCheckpoint, match="missing") as caught,
        ):
            store.history("run").restore("7")
        assert (caught.value.history, caught.value.key, caught.value.tier) == ("run", "7", "disk")


def test_gc(path: Path) -> None:
    with velocpy.open(path, **SMALL) as store:
        dropped = store.history("run").size("7")
        store.history("run").drop("7")
    (dry,) = messages("gc", path, "--dry-run")
    blocks = sum(file.stat().st_blocks for file in path.glob("data-*"))
    (done,) = messages("gc", path)
    after = sum(file.stat().st_blocks for file in path.glob("data-*"))
    assert done["file_nbytes"] == (blocks - after) * 512 >= dropped // 4096 * 4096 > 0
    assert blocks * 512 < 32 << 20  # close() has given back what was never written to
    assert abs(dry["file_nbytes"] - done["file_nbytes"]) < 1 << 20
    assert messages("check", path, "--read-data")[-1]["sound"]
    with velocpy.open(path, **SMALL) as store:
        np.testing.assert_array_equal(store.history("run").restore(1)["u"], STATE["u"] + 1)


@pytest.mark.parametrize("format_", interchange.FORMATS)
def test_files_there_and_back(path: Path, tmp_path: Path, format_: str) -> None:
    for key, argument in ((2, "2"), ("7", '"7"')):
        file = tmp_path / f"state.{format_}"
        assert messages("export", path, "run", argument, file)[0]["bytes"] == file.stat().st_size
        messages("import", file, tmp_path / "second", "again", argument)
        with velocpy.open(path, mode="r", host="64MiB") as one, velocpy.open(tmp_path / "second", mode="r") as other:
            there, back = one.history("run").restore(key), other.history("again").restore(key)
            names = list(STATE) if key == 2 else [0, 1]
            for name in names:
                assert back[str(name)].dtype == there[name].dtype
                np.testing.assert_array_equal(back[str(name)], there[name])
            assert len(back) == len(names)
    assert {entry.name for entry in tmp_path.iterdir()} == {"store", "second", f"state.{format_}"}


def test_what_numpy_has_no_word_for(tmp_path: Path) -> None:
    bfloat = pytest.importorskip("ml_dtypes").bfloat16
    array = RNG.integers(0, 1 << 16, 100, dtype=np.uint16).view(bfloat)
    with velocpy.open(tmp_path / "store", **SMALL) as store:
        store.history("run").checkpoint(0, a=array, b=np.arange(5, dtype=">i4"))
        store.history("run").checkpoint(1, t=np.arange(3).astype("M8[s]"))
    interchange.export(tmp_path / "store", "run", 0, tmp_path / "x.safetensors")
    interchange.import_(tmp_path / "x.safetensors", tmp_path / "store", "run", 2)
    with velocpy.open(tmp_path / "store", mode="r", host="64MiB") as store:
        back = store.history("run").restore(2)
        assert back["a"].view(np.uint16).tobytes() == array.view(np.uint16).tobytes()
        assert list(back["b"]) == list(range(5))
    with pytest.raises(velocpy.errors.InvalidType):
        interchange.export(tmp_path / "store", "run", 0, tmp_path / "x.npz")
    with pytest.raises(velocpy.errors.InvalidType):
        interchange.export(tmp_path / "store", "run", 1, tmp_path / "y.safetensors")
    assert not list(tmp_path.glob("*.npz")) + list(tmp_path.glob("y*")) + list(tmp_path.glob(".*"))


@pytest.mark.parametrize("format_", interchange.FORMATS)
def test_files_take_the_meta_along(tmp_path: Path, format_: str) -> None:
    file = tmp_path / f"x.{format_}"
    for key, meta in enumerate((None, 0, {"t": 0.5, "note": ["ü", "\udc80", None]}, "l" * 65_530)):
        with velocpy.open(tmp_path / "store", **SMALL) as store:
            store.history("run").checkpoint(key, u=np.arange(3), meta=meta)
        if key == 3 and format_ == "npz":
            with pytest.raises(velocpy.errors.InvalidType, match="65535 bytes"):
                interchange.export(tmp_path / "store", "run", key, file)
            continue
        interchange.export(tmp_path / "store", "run", key, file)
        interchange.import_(file, tmp_path / "store", "back", key)
        with velocpy.open(tmp_path / "store", mode="r", host="64MiB") as store:
            assert store.history("back").restore(key).meta == meta
        if format_ == "npz":
            assert np.load(file).files == ["u"]


def test_a_meta_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    for comment in (b"velocpy.meta={", b"velocpy.meta=\xff", b"velocpy.meta=" + b"[" * 60_000):
        np.savez(file, u=np.arange(3))
        with zipfile.ZipFile(file, "a") as archive:
            archive.comment = comment
        assert invoke("import", file, tmp_path / "store", "run", 1).exit_code == 2
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = b"somebody else's"
    messages("import", file, tmp_path / "store", "run", 1)
    with velocpy.open(tmp_path / "store", mode="r", host="64MiB") as store:
        assert store.history("run").restore(1).meta is None


@pytest.mark.parametrize("format_", interchange.FORMATS)
def test_files_that_are_none(tmp_path: Path, format_: str) -> None:
    for content in (b"", b"x" * 100, b"\xff" * 16, b"PK\x03\x04" + bytes(50)):
        (tmp_path / f"bad.{format_}").write_bytes(content)
        assert invoke("import", tmp_path / f"bad.{format_}", tmp_path / "store", "run", 1).exit_code == 2
    np.savez(tmp_path / "bad.npz", o=np.array([{}], dtype=object))
    assert invoke("import", tmp_path / "bad.npz", tmp_path / "store", "run", 1).exit_code == 2
    assert not (tmp_path / "store").exists()


def test_exit_codes(path: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    for command in (["ls"], ["show", "h", "1"], ["check"], ["check", "--repair"], ["gc"], ["gc", "--dry-run"]):
        result = invoke(command[0], nothing, *command[1:])
        assert result.exit_code == 10, result.output
        assert result.stderr.startswith("velocpy: ")
    assert not nothing.exists()
    with velocpy.open(path, **SMALL):
        assert invoke("gc", path).exit_code == 11
        assert invoke("gc", path, "--dry-run").exit_code == 0
        assert invoke("check", path, "--read-data").exit_code == 0
        assert invoke("ls", path, "run").exit_code == 0
    identity = (path / "velocpy.store").read_bytes()
    import xxhash

    changed = bytearray(identity[:4096])
    changed[8] = 99
    changed[48:56] = xxhash.xxh3_64_intdigest(bytes(changed[:48])).to_bytes(8, "little")
    (path / "velocpy.store").write_bytes(bytes(changed) * 2)
    for command in ("ls", "check", "gc"):
        assert invoke(command, path).exit_code == 12
    for bad in (["--subset", "0/3"], ["--subset", "4/3"], ["--subset", "0%"], ["--subset", "x"], ["--drop-damaged"]):
        assert invoke("check", path, *bad).exit_code == 2


def test_ls_into_a_pipe_that_closes(path: Path) -> None:
    command = f"{sys.executable} -m velocpy ls {path} run | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, env=os.environ, check=False)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_views_are_closed(path: Path) -> None:
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    for _ in range(20):
        next(ondisk.checkpoints(path, "run"))
        ondisk.check(path, read_data=True)
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) <= before + 1


def test_hostile_descriptions(path: Path) -> None:
    facts, good = None, b""
    with ondisk.View(path) as view:
        named = {"history": ondisk.bytes_of_text("run"), "key": {"number": 1}}
        facts, _ = view.ask("row", **named)
        good = view.whole("blob", what="layout", **named)
    slot = facts["slot_bytes"]
    assert len(_core.regions_of(good, slot)) == 3
    with pytest.raises(velocpy.errors.InvalidArgument):
        _core.regions_of(good, slot - 1)
    for bad in (
        b"",
        b"L",
        b"L\x02\x00\xff\xff\xff\xff",
        good[:-1],
        good.replace(b"\x28\0\0\0\0\0\0\0", b"\x29\0\0\0\0\0\0\0", 1),
    ):
        with pytest.raises(velocpy.errors.InvalidArgument):
            _core.regions_of(bad, slot)
    for at in range(len(good)):  # whatever a flipped bit says, it is refused or lies in the slot
        changed = bytearray(good)
        changed[at] ^= 1 << (at % 8)
        try:
            regions = _core.regions_of(bytes(changed), slot)
        except velocpy.errors.InvalidArgument:
            continue
        assert all(0 <= offset <= offset + nbytes <= slot for _, _, _, offset, nbytes, _, _ in regions)


def test_a_tree_is_shown_copied_and_exported(tmp_path: Path) -> None:
    """Regions by their paths everywhere; its structure and its values where the store has them."""
    whole = {"model": {"w": np.arange(3)}, "betas": (0.9, 0.99), "step": 3}
    with velocpy.open(tmp_path / "store", host="16MiB", disk="64MiB") as store:
        # They are listed in the order in which they became durable.
        store.history("run").checkpoint(1, whole, meta={"t": 1}).wait("disk")
        store.history("run").checkpoint(2, {"m": dict.fromkeys(range(100))}).wait("disk")
        store.history("run").checkpoint(3, u=np.zeros(3))
        store.backup(tmp_path / "copy")
    structure = ["dict", "model", ["dict", "w", "array"], "betas", ["tuple", "value", "value"], "step", "value"]
    for path in (tmp_path / "store", tmp_path / "copy"):
        found = ondisk.describe(path, "run", 1)
        assert ([region.name for region in found.regions], found.structure) == (["model.w"], structure)
        shown = invoke("show", path, "run", 1).output
        assert '"model.w"' in shown
        assert f"tree      {json.dumps(structure)}" in shown
        assert json.loads(invoke("show", path, "run", 1, "--json").output)["structure"] == structure
        assert "tree" not in invoke("show", path, "run", 3).output
        assert "meta" not in invoke("show", path, "run", 2).output
        rows = invoke("ls", path, "run", "--meta").output.splitlines()
        assert [row.split()[-1] for row in rows[1:]] == ["1}", "-", "-"]
        last = invoke("show", path, "run", 2).output.splitlines()[-1]
        assert last.startswith("tree")
        assert last.endswith("…")
        assert len(last) < 220
        with velocpy.open(path, mode="r", host="16MiB") as store:
            assert repr(store.history("run").restore(1).tree) == repr(whole)
            assert "model.w" in store.history("run").restore(1)._repr_html_()
    for name in ("x.npz", "x.safetensors"):
        interchange.export(tmp_path / "store", "run", 1, tmp_path / name)
        interchange.import_(tmp_path / name, tmp_path / "store", "run", name)
        with velocpy.open(tmp_path / "store", mode="r", host="16MiB") as store:
            assert store.history("run").restore(name)["model.w"].tolist() == [0, 1, 2]
            assert store.history("run").meta(name) == {"t": 1}


def test_export_replaces_ordinary_files_alone(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    (tmp_path / "link.npz").symlink_to(target)
    (tmp_path / "dangling.npz").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "folder.npz").mkdir()
    for name in ("link.npz", "dangling.npz", "pipe.npz", "folder.npz"):
        before = (tmp_path / name).lstat()
        with pytest.raises(velocpy.errors.InvalidArgument, match="not replaced"):
            interchange.export(path, "run", 1, tmp_path / name)
        assert (tmp_path / name).lstat() == before
        assert invoke("export", path, "run", 1, tmp_path / name).exit_code == 2
    with pytest.raises(velocpy.errors.InvalidArgument, match="device"):
        interchange.export(path, "run", 1, "/dev/null", "npz")
    with pytest.raises(velocpy.errors.TierIOError):
        interchange.export(path, "run", 1, tmp_path / "missing" / "x.npz")
    assert target.read_text() == "mine"
    interchange.export(path, "run", 1, target, "npz")
    assert np.load(target)["u"].shape == STATE["u"].shape
    assert {each.name for each in tmp_path.iterdir()} == {
        "store", "precious", "link.npz", "dangling.npz", "pipe.npz", "folder.npz",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "/etc/x", "..", "\\x", "a\\..\\x", "C:x", "a\0b", "\ud800", "x" * 70_000]
)
def test_names_that_lead_out_of_an_archive(tmp_path: Path, name: str) -> None:
    with velocpy.open(tmp_path / "store", **SMALL) as store:
        store.history("h").checkpoint(0, {name: np.zeros(3)})
    with pytest.raises(velocpy.errors.InvalidType):
        interchange.export(tmp_path / "store", "h", 0, tmp_path / "x.npz")
    assert not (tmp_path / "x.npz").exists()
    if "\0" in name or not name.isprintable() or len(name) > 1000:
        return
    with zipfile.ZipFile(tmp_path / "bad.npz", "w") as archive, archive.open(f"{name}.npy", "w") as entry:
        np.lib.format.write_array(entry, np.zeros(3))
    with pytest.raises(velocpy.errors.InvalidArgument):
        interchange.import_(tmp_path / "bad.npz", tmp_path / "new", "h", 0)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("format_", interchange.FORMATS)
def test_ordinary_names_go_out_and_come_back(tmp_path: Path, format_: str) -> None:
    names = ["", "a/b", "..x", "x..", "ä", "a b", "file.npy", "%s"]
    with velocpy.open(tmp_path / "store", **SMALL) as store:
        store.history("h").checkpoint(0, {name: np.full(3, i) for i, name in enumerate(names)})
    file = tmp_path / f"x.{format_}"
    interchange.export(tmp_path / "store", "h", 0, file)
    interchange.import_(file, tmp_path / "new", "h", 0)
    with velocpy.open(tmp_path / "new", mode="r", host="16MiB") as store:
        state = store.history("h").restore(0)
        assert sorted(state) == sorted(names)
        assert all((state[name] == i).all() for i, name in enumerate(names))


def test_the_name_that_safetensors_keeps(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "store", **SMALL) as store:
        store.history("h").checkpoint(0, {"__metadata__": np.zeros(3)})
    with pytest.raises(velocpy.errors.InvalidType, match="__metadata__"):
        interchange.export(tmp_path / "store", "h", 0, tmp_path / "x.safetensors")
    interchange.export(tmp_path / "store", "h", 0, tmp_path / "x.npz")
    assert {each.name for each in tmp_path.iterdir()} == {"store", "x.npz"}


def test_archives_that_are_none(tmp_path: Path) -> None:
    np.savez(tmp_path / "good.npz", u=np.arange(100))
    good = (tmp_path / "good.npz").read_bytes()
    for at in range(0, len(good), 7):  # whatever a flipped bit says
        (tmp_path / "bad.npz").write_bytes(good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :])
        with contextlib.suppress(velocpy.errors.InvalidArgument):
            content = interchange._READERS["npz"](tmp_path / "bad.npz")
            for array in content.regions.values():
                assert np.array_equal(array, np.arange(100))
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("readme.txt", "no array")
    with pytest.raises(velocpy.errors.InvalidArgument):
        interchange.import_(tmp_path / "text.npz", tmp_path / "new", "h", 0)


@pytest.mark.parametrize("text", ["1_0", "٣", " 1", "1 ", "+1", "1.0", "0x1", "", "-", "--1", "１", "1e3", "½"])
def test_what_is_no_number_is_a_text(text: str) -> None:
    from velocpy.cli.store_commands import key_of

    assert key_of(text) == text


def test_numbers_on_a_command_line(path: Path) -> None:
    from velocpy.cli.store_commands import key_of

    assert [key_of(text) for text in ("0", "-7", "007", "-0", str(-(1 << 63)))] == [0, -7, 7, 0, -(1 << 63)]
    for text in ("9" * 30, "9" * 5000):
        with pytest.raises(velocpy.errors.InvalidArgument):
            ondisk.describe(path, "run", key_of(text))
    for subset in ("١/٢", "٥%"):
        with pytest.raises(velocpy.errors.InvalidArgument):
            ondisk.check(path, subset=subset)
