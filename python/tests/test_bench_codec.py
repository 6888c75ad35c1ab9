"""The benchmark of the codec's kernels without a GPU: its own arithmetic, and the whole of it on emulated kernels."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from emulated import EmulatedDriver, Fault, compiled

from benchmarks.device import builds, codec, containers, nvcomp
from benchmarks.device.encoded import (
    ALL_MODES,
    CHUNK,
    DECODING,
    ENCODING,
    LOCATING,
    MODES,
    Kind,
    Tables,
    only,
    payloads_at,
)
from benchmarks.device.samples import bfloat16, samples
from benchmarks.report import claims, page
from velocpy.bench.report import Report


def test_parameters_have_the_size_of_the_kernels_structs(root: Path) -> None:
    assert (
        "sizeof(Encoding) == 56 && sizeof(Decoding) == 56 && sizeof(Locating) == 32"
        in (root / "cuda" / "parameters.h").read_text()
    )
    assert (ENCODING.itemsize, DECODING.itemsize, LOCATING.itemsize) == (56, 56, 32)


def test_modes_are_those_of_the_go_codec(root: Path) -> None:
    text = (root / "gocore" / "reduction" / "codec" / "mode.go").read_text()
    names = text.partition("modeNames = [ModeCount]string{")[2].partition("}")[0]
    assert names == ", ".join(f'"{name}"' for name in MODES)
    assert ALL_MODES == 63
    assert only("const", "diff") == 0b111


def test_kinds_name_their_kernels() -> None:
    names = [Kind(*kind).kernel for kind in ((1, 0), (2, 0), (2, 5), (2, 8), (4, 0), (4, 8), (8, 0), (8, 11))]
    assert names == ["bytes", "bf16", "fp16", "bf16", "fp32", "fp32", "fp64", "fp64"]
    assert [Kind(4, exponent).permitted(ALL_MODES) for exponent in (0, 8)] == [0b110111, 0b111111]


def test_tables_tell_lengths_modes_and_places() -> None:
    tables = Tables.of(np.frombuffer(bytes(24) + struct.pack("<3H3B", 16384, 1, 33, 0, 1, 1), np.uint8))
    assert tables.lengths.tolist() == [16384, 1, 33]
    assert payloads_at(3) == 112
    assert tables.offsets().tolist() == [112, 112 + 16384, 112 + 16384 + 16]
    assert tables.shares() == "raw 33 %, const 67 %"


def test_damage_flips_one_bit_of_each_payload() -> None:
    lengths = [20, 1, 100]
    encoded = np.zeros(payloads_at(3) + 32 + 16 + 112, np.uint8)
    encoded[64 + 24 : 64 + 33] = np.frombuffer(struct.pack("<3H3B", *lengths, 1, 1, 1), np.uint8)
    for seed in range(20):
        changed = containers.flipped(encoded, 3, np.random.default_rng(seed)) ^ encoded
        assert np.unpackbits(changed).sum() == 3
        for at, length in zip((112, 144, 160), lengths, strict=True):
            assert np.unpackbits(changed[at : at + length]).sum() == 1


def test_a_cut_file_is_no_container() -> None:
    file = struct.pack("<4I2Q", 4, 8, 63, 1, 3, 5) + bytes(range(11))
    read = containers.Container.of("x", file)
    assert (read.plain.tolist(), read.reference.tolist(), read.encoded.tolist()) == (
        [0, 1, 2],
        [3, 4, 5],
        [*range(6, 11)],
    )
    with pytest.raises(ValueError, match="x has 42 bytes"):
        containers.Container.of("x", file[:-1])


def test_bfloat16_rounds_ties_to_even() -> None:
    numbers = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0xBF807FFF], np.uint32).view(np.float32)
    assert bfloat16(numbers).view(np.uint16).tolist() == [0x3F80, 0x3F82, 0x3F81, 0xBF80]


def test_samples_have_the_size_that_is_asked_for() -> None:
    made = list(samples(1 << 18))
    assert {s.plain.size for s in made} == {s.reference.size for s in made if s.reference is not None} == {1 << 18}
    assert [s.name for s in made if s.reference is not None] == ["bf16 step of 1e-5, reference"]


def row(mib: int, modes: str, encode: float, wrong: int = 0) -> dict[str, object]:
    return {"MiB": mib, "modes": modes, "encode GB/s": encode, "decode GB/s": 2 * encode, "wrong bytes": wrong}


def test_bars_hold_for_the_slowest_large_region_with_suited_modes() -> None:
    report = codec.new_report({})
    report.rows = [
        row(64, "suited", 1.0),
        row(256, "all", 2.0, 3),
        row(256, "suited", 900.0),
        row(1024, "suited", 1200.0, 4),
    ]
    codec.judge(report)
    assert [(bar.value, bar.holds) for bar in report.bars] == [(7, False), (900.0, False), (1800.0, True)]
    quick = codec.new_report({})
    quick.rows = [row(64, "suited", 1.0)]
    codec.judge(quick)
    assert [bar.holds for bar in quick.bars] == [True]


def test_each_bar_belongs_to_a_claim() -> None:
    report = codec.new_report({"rounds": 9})
    codec.check(report, SimpleNamespace(), [], 1)
    report.rows = [row(256, "suited", 1100.0)]
    codec.judge(report)
    judged = claims.judge([report.facts({})])
    assert sorted(claim.bars for claim in judged) == [2, 3]
    assert all(claim.holds for claim in judged)


@pytest.fixture(scope="module")
def emulated(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(root / "cuda" / "emulated" / "kernels.cpp", tmp_path_factory.mktemp("emulated") / "kernels")


@pytest.fixture(scope="module")
def golden(root: Path, tmp_path_factory: pytest.TempPathFactory) -> list[containers.Container]:
    """Containers of the Go codec."""
    if shutil.which("go") is None:
        pytest.skip("no Go")
    folder = tmp_path_factory.mktemp("containers")
    command = ["go", "test", "./gocore/reduction/codec", "-count=1", "-run", "TestWriteContainers"]
    subprocess.run([*command, "-args", "-containers", str(folder)], check=True, cwd=root)
    return containers.read(folder)


def flip_hash(driver: EmulatedDriver, name: str, parameter: np.ndarray) -> None:
    """The encoder writes a wrong hash of the first chunk."""
    if "encode" in name:
        driver.part(int(parameter["container"][0]) + 64, 1)[:] ^= 1


def flip_byte(driver: EmulatedDriver, name: str, parameter: np.ndarray) -> None:
    """The decoder restores a wrong byte."""
    if "decode" in name:
        driver.part(int(parameter["plain"][0]) + 70, 1)[:] ^= 1


def write_ahead(driver: EmulatedDriver, name: str, parameter: np.ndarray) -> None:
    """Encoder and decoder write in front of their outputs."""
    at = parameter["plain"][0] - 1 if "decode" in name else parameter["container"][0]
    driver.part(int(at), 1)[:] = 0


def hide_faults(driver: EmulatedDriver, name: str, parameter: np.ndarray) -> None:
    """The decoder reports no fault."""
    if "decode" in name:
        driver.part(int(parameter["faults"][0]), -(-int(parameter["bytes"][0]) // CHUNK))[:] = 0


def locate_wrongly(driver: EmulatedDriver, name: str, parameter: np.ndarray) -> None:
    """A payload is looked for one vector away."""
    if name == "velocpy_locate":
        driver.part(int(parameter["offsets"][0]), 1)[:] ^= 16


def tried(program: Path, golden: list[containers.Container], fault: Fault | None = None) -> Report:
    driver = EmulatedDriver(program, fault)
    report = codec.run(driver, golden, (32 << 10,), rounds=1, flips=1)
    driver.close()
    return report


def chunks_of(golden: list[containers.Container]) -> int:
    return sum(-(-c.plain.size // CHUNK) for c in golden if "-all" in c.name)


@pytest.mark.slow
def test_emulated_kernels_write_the_containers_of_go(emulated: Path, golden: list[containers.Container]) -> None:
    report = tried(emulated, golden)
    assert [bar.value for bar in report.bars] == [0, 0, 0]
    assert report.settings["containers"] == len(golden) > 70
    assert report.settings["damaged chunks"] == chunks_of(golden) >= report.settings["faults found"] > 250
    assert [row["modes"] for row in report.rows] == ["suited", "all"] * 6
    ratios = [row["ratio"] for row in report.rows if row["modes"] == "suited"]
    assert all(ratio > 1.1 for ratio, s in zip(ratios, samples(1 << 16), strict=True) if "random" not in s.name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (flip_hash, "tables: 1 of"),
        (flip_byte, "decoded bytes: 1 of"),
        (write_ahead, "wrote outside of"),
        (hide_faults, "has no fault, and"),
        (locate_wrongly, "offsets of payloads: 1 of"),
    ],
)
def test_wrong_kernels_are_found(emulated: Path, golden: list[containers.Container], fault: Fault, found: str) -> None:
    report = tried(emulated, golden[:2], fault)
    assert not all(bar.holds for bar in report.bars)
    assert any(found in note for note in report.notes)


@pytest.mark.slow
def test_builds_are_compared(
    emulated: Path, golden: list[containers.Container], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "samples", lambda size: [next(iter(samples(size)))])
    driver = EmulatedDriver(emulated)
    report = builds.run({"before": driver, "after": driver}, golden[:1], (32 << 10,), rounds=1)
    driver.close()
    assert [bar.value for bar in report.bars] == [0, 0, 0]
    assert [(row["modes"], row["what"], row["by after"]) for row in report.rows] == [
        (modes, what, 1) for modes in ("suited", "all") for what in ("encode", "decode")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("fault", [None, flip_byte])
def test_command_writes_a_result_and_tells_wrong_bytes(
    emulated: Path,
    golden: list[containers.Container],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault | None,
) -> None:
    made: list[EmulatedDriver] = []
    monkeypatch.setattr(codec, "BLOCK", 32 << 10)
    monkeypatch.setattr(codec, "Driver", lambda _: made.append(EmulatedDriver(emulated, fault)) or made[0])
    monkeypatch.setattr(containers, "read", lambda _: golden[:2])
    monkeypatch.setattr(nvcomp, "load", lambda: None)  # the emulated device has no memory that nvCOMP can reach
    out = tmp_path / "codec.json"
    command = ["--fatbin", __file__, "--golden", str(tmp_path), "--quick", "--commit", "abc", "--out", str(out)]
    result = CliRunner().invoke(codec.main, command)
    made[0].close()
    assert result.exit_code == (0 if fault is None else 1), result.output
    facts = json.loads(out.read_text(encoding="utf-8"))
    assert facts.keys() == {"benchmark", "machine", "settings", "bars", "rows", "notes"}
    assert all(bar["holds"] for bar in facts["bars"]) == (fault is None)
    copy = tmp_path / "results" / "codec-1.json"
    copy.parent.mkdir()
    shutil.copy(out, copy)
    assert "commit abc" in page.tables(copy.parent)


def test_command_needs_containers(tmp_path: Path) -> None:
    result = CliRunner().invoke(codec.main, ["--fatbin", __file__, "--golden", str(tmp_path)])
    assert result.exit_code == 2
    assert "go test writes them" in result.output
