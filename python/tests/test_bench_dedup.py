"""The benchmark of de-duplication without a GPU: its own arithmetic, and the whole of it on emulated kernels."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from emulated import EmulatedDriver, Fault, compiled

from benchmarks.device import beside, dedup, labelled, labelling, labels, lineages
from benchmarks.device.differences import BLOCK_CHUNKS, CHUNKS, FORMS, REGIONS, SECRET, Form, role
from benchmarks.device.ways import wrong_bitmap, wrong_list
from benchmarks.report import claims, page
from velocpy.bench.report import Report

KERNELS = {"read": "Reading", "change": "Chosen", "compare": "Chosen", "tell": "Telling"}
TINY = dedup.Sizes(
    large=64 << 10,
    repeated=32 << 10,
    small=16 << 10,
    spare=512,
    parts=2,
    forms=(Form(128, False), Form(128, True)),
    labelled=64 << 10,
    labelled_chunks=(128,),
)


def test_parameters_have_the_layout_of_the_kernels_structs(root: Path) -> None:
    text = (root / "cuda" / "dedup_parameters.h").read_text()
    assert "sizeof(Regions) == 16 + 3 * 8 + 8 * 8 + 16 * 8 + kRegions * (10 * 8 + 4)" in text
    assert REGIONS.itemsize == 16 + 3 * 8 + 8 * 8 + 16 * 8 + 64 * (10 * 8 + 4)
    struct_text = text.partition("struct Regions {")[2].partition("};")[0]
    members = re.findall(r"^  uint(?:32|64)_t ([^;]*);", struct_text, re.M)
    names = [re.sub(r"\[\w+\]", "", name).strip() for member in members for name in member.split(",")]
    assert names == list(REGIONS.names)


def test_parameters_of_labels_have_the_layout_of_the_kernels_structs(root: Path) -> None:
    text = (root / "cuda" / "dedup_label_parameters.h").read_text()
    assert "sizeof(Labels) == 10 * 4 + 9 * 8 + 23 * 8" in text
    assert labels.LABELS.itemsize == 10 * 4 + 9 * 8 + 23 * 8
    for name, dtype in (("Labels", labels.LABELS), ("Counts", labels.COUNTS)):
        members = re.findall(
            r"^  uint(?:32|64)_t ([^;]*);", text.partition(f"struct {name} {{")[2].partition("};")[0], re.M
        )
        assert [re.sub(r"\[\w+\]", "", n).strip() for member in members for n in member.split(",")] == list(dtype.names)


def test_secret_and_roles_are_those_of_the_go_package(root: Path) -> None:
    text = (root / "gocore" / "device" / "cuda" / "kernel" / "dedup.go").read_text()
    words = text.partition("secretWords = [16]uint64{")[2].partition("}")[0]
    assert tuple(int(word, 16) for word in re.findall(r"0x[0-9a-f]+", words)) == SECRET
    assert role(0, 1) == 0xE220A8397B1DCDAF  # the first output of SplitMix64 started at 0


def test_forms_are_those_of_the_kernels(root: Path) -> None:
    text = (root / "cuda" / "velocpy_dedup.cu").read_text()
    assert {form.kernel for form in FORMS} == set(re.findall(r"velocpy_dedup_scan_\w+", text))
    assert len(FORMS) == len(CHUNKS) + len(BLOCK_CHUNKS)


def test_marks_of_long_chunks_leave_gaps() -> None:
    chunks = np.arange(40, dtype=np.uint32)
    assert Form(512, False).marks(chunks).tolist() == list(range(40))
    assert Form(4096, False).marks(chunks)[:6].tolist() == [0, 1, 2, 3, 32, 33]
    assert [Form(chunk, False).words for chunk in (32, 512, 4096)] == [16, 1, 1]


def test_wrong_lists_and_bitmaps_are_counted() -> None:
    chosen = np.array([1, 9], np.uint32)
    assert (wrong_list(chosen, chosen), wrong_list(chosen[:1], chosen), wrong_list(chosen + 1, chosen)) == (0, 2, 2)
    bitmap = np.array([2, 2, 0], np.uint8)
    assert [wrong_bitmap(bitmap ^ np.uint8(flip), chosen, 24) for flip in (0, 1)] == [0, 3]


def test_a_cut_file_is_no_lineage() -> None:
    parts = [b"abc", b"", b"de", b"f", b"gh", b"i"]
    file = struct.pack("<4IQ", 64, 1, 1, 1, 7) + b"".join(struct.pack("<Q", len(p)) + p for p in parts)
    lineage = lineages.Lineage.of("x", file)
    assert (lineage.form, lineage.seed) == (Form(64, True), 7)
    checkpoint = lineage.checkpoints[0]
    found = [checkpoint.regions[0].plain, checkpoint.regions[0].sums, checkpoint.changed, checkpoint.data]
    assert [part.tobytes() for part in found] == [b"abc", b"f", b"gh", b"i"]
    with pytest.raises(ValueError, match="x ends at byte"):
        lineages.Lineage.of("x", file[:-1])
    with pytest.raises(ValueError, match="x has more"):
        lineages.Lineage.of("x", file + struct.pack("<Q", 0))


def row(what: str, changed: str, rate: float, by_full: float, wrong: int = 0) -> dict[str, object]:
    return {"what": what, "changed": changed, "GB/s": rate, "by Full": by_full, "wrong": wrong}


def rows(plain: float, blocks: float, by_full: float = 0.5) -> list[dict[str, object]]:
    """Rows of two forms, with rates by their bars, and those of a small region."""
    made = [
        row(what, dedup.percent(share), by * bound, by_full)
        for what, by in (("128 B", plain), ("128 B, digests of blocks", blocks))
        for share, bound in dedup.BARS.items()
    ]
    small = {"what": "128 B, digests of blocks, small", "wrong": 0}
    return [*made, small | {"launches µs": 25.0, "graph µs": 8.0}, small | {"launches µs": 9.0, "graph µs": 11.0}]


def judged(made: list[dict[str, object]]) -> Report:
    report = dedup.alone.new_report("dedup", {"rounds": 7})
    report.rows = made
    dedup.judge(report)
    return report


def test_bars_are_those_of_the_better_form() -> None:
    report = judged(rows(0.9, 1.1))
    assert report.settings["form of the bars"] == "128 B, digests of blocks"
    assert [round(bar.value, 1) for bar in report.bars] == [0, 3300, 2090, 58.3, 0.5, 9]
    assert all(bar.holds for bar in report.bars)
    assert [bar.holds for bar in judged(rows(0.9, 0.8)).bars] == [True, False, False, False, True]


def test_wrong_results_and_slow_shares_are_told() -> None:
    made = rows(0.9, 1.1, by_full=1.04)
    made[2]["wrong"] = 3
    assert [(bar.value, bar.holds) for bar in judged(made).bars if not bar.holds] == [(3, False), (1.04, False)]


def test_each_bar_belongs_to_a_claim() -> None:
    report = judged(rows(1.2, 1.1))
    for what in ("parts of results that differ from those of the Go package", "comparisons of known bytes that differ"):
        report.never(what, 0)
    found = claims.judge([report.facts({})])
    assert sum(claim.bars for claim in found) == len(report.bars)


@pytest.fixture(scope="module")
def emulated(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels of de-duplication and those beside them."""
    folder = tmp_path_factory.mktemp("emulated")
    added = [f'kernels["velocpy_beside_{name}"] = kernel(velocpy_beside_{name});' for name in KERNELS]
    lines = [
        f'#include "{root / "cuda" / "emulated" / "kernels.cpp"}"',
        f'#include "{root / "benchmarks" / "device" / "beside_dedup.cuh"}"',
        f"const bool added = [] {{ {' '.join(added)} return true; }}();",
    ]
    source = folder / "dedup.cpp"
    source.write_text("\n".join(lines) + "\n")
    return compiled(source, folder / "kernels")


def test_kernels_beside_are_in_the_source(root: Path) -> None:
    text = (root / "benchmarks" / "device" / "beside_dedup.cuh").read_text()
    found = re.findall(r"velocpy_beside_(\w+)\(VELOCPY_PARAMETER\(velocpy::beside::(\w+)\)", text)
    assert dict(found) == KERNELS
    sizes = {beside.READING: 32, beside.CHOSEN: 56, beside.TELLING: 16}
    assert all(form.itemsize == size for form, size in sizes.items())


@pytest.fixture(scope="module")
def golden(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dedup.Golden:
    """Lineages of the Go package."""
    if shutil.which("go") is None:
        pytest.skip("no Go")
    folder = tmp_path_factory.mktemp("lineages")
    command = ["go", "test", "./gocore/reduction/dedup", "-count=1", "-run", "TestWriteLineages"]
    subprocess.run([*command, "-args", "-lineages", str(folder)], check=True, cwd=root)
    return dedup.Golden.read(folder)


def flip(member: str, offset: int = 0, kernel: str = "gather", bits: int = 1) -> Fault:
    """A kernel gets a byte of a result wrong."""

    def fault(driver: EmulatedDriver, name: str, parameter: np.ndarray) -> None:
        if kernel in name:
            at = int(parameter[member].reshape(-1)[0]) + offset
            driver.part(at, 1)[:] ^= bits

    return fault


def count_one_more(driver: EmulatedDriver, name: str, parameter: np.ndarray) -> None:
    """The listing counts one chunk too many."""
    if name == "velocpy_dedup_list":
        driver.part(int(parameter["totals"][0]), 1)[:] += 1


def find_nothing(driver: EmulatedDriver, name: str, parameter: np.ndarray) -> None:
    """The comparison finds no difference."""
    if name == "velocpy_beside_compare":
        driver.part(int(parameter["wrong"][0]), 8)[:] = 0


def tried(program: Path, golden: dedup.Golden, fault: Fault | None = None, sizes: dedup.Sizes = TINY) -> Report:
    driver = EmulatedDriver(program, fault)
    report = dedup.run(driver, golden, sizes, rounds=1)
    driver.close()
    return report


@pytest.mark.slow
def test_emulated_kernels_make_the_differences_of_go(emulated: Path, golden: dedup.Golden) -> None:
    report = tried(emulated, golden)
    assert report.notes[: len(dedup.NOTES)] == [*dedup.NOTES]
    assert [bar.value for bar in report.bars if not bar.measured] == [0, 0, 0]
    assert report.settings["lineages"] == len(golden.lineages) == len(FORMS)
    assert report.settings["labelled lineages"] == len(golden.labelled) == 2 * len(CHUNKS)
    assert report.settings["shifted duplicates"] > 1000
    large = [row for row in report.rows if "by Full" in row and "scan ms" in row]
    assert [row["changed"] for row in large] == [p for p in ("0 %", "0.1 %", "1 %", "10 %", "100 %") for _ in range(2)]
    assert {"serial ms", "overlapped ms", "direct ms", "on device ms"} <= set(large[-1])
    assert len(report.rows) == 4 + 1 + 10 + 6 + 8
    assert len(report.bars) == 3 + 3 + 3 + 2 + 1
    assert {f"{stage} ms" for stage in ("hash", *labels.STAGES)} <= set(report.rows[-2])


@pytest.mark.slow
def test_emulated_kernels_of_all_chunk_lengths(emulated: Path) -> None:
    sizes = dedup.Sizes(
        large=128 << 10,
        repeated=32 << 10,
        small=32 << 10,
        spare=512,
        parts=2,
        forms=[Form(n, n == 256) for n in (32, 256, 1024)],
    )
    driver = EmulatedDriver(emulated)
    report = dedup.alone.new_report("dedup", {})
    block = np.random.default_rng(1).integers(0, 256, sizes.repeated, np.uint8)
    dedup.large(driver, report, block, sizes.large, sizes.parts, 1, sizes.forms)
    driver.close()
    assert [row["wrong"] for row in report.rows if "wrong" in row] == [0] * 15


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (flip("sums", kernel="scan"), "checksums: 1 of"),
        (flip("leaves", 5, kernel="scan"), "digests of chunks: "),
        (flip("digests", 5, kernel="scan"), "digests of blocks: "),
        (flip("list", kernel="list"), "list: "),
        (flip("data", 3), "data: 1 of"),
        (flip("data", -1), "differ"),
        (flip("changed", kernel="list"), "bitmap: "),
        (count_one_more, "totals: "),
    ],
)
def test_wrong_kernels_are_found(emulated: Path, golden: dedup.Golden, fault: Fault, found: str) -> None:
    driver = EmulatedDriver(emulated, fault)
    blocks = next(lineage for lineage in golden.lineages if lineage.form == Form(128, True))
    differences = lineages.compare(driver, blocks)
    driver.close()
    assert any(found in text for text in differences)


def count_one_more_label(driver: EmulatedDriver, name: str, parameter: np.ndarray) -> None:
    """The record counts one entry too many."""
    if name == "velocpy_dedup_add_new":
        driver.part(int(parameter["counts"][0]) + 8 * labels.COUNTED.index("recorded"), 1)[:] += 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (flip("data", 3, kernel="list_firsts"), "data: 1 of"),
        (flip("data", -1, kernel="list_firsts"), "bytes differ"),
        (flip("first_entries", 1, kernel="list_firsts"), "entries of first occurrences: 1 of"),
        (flip("shift_entries", 17, kernel="list_shifts"), "entries of shifted duplicates: 1 of"),
        (flip("changed", kernel="list"), "changed: "),
        (count_one_more_label, "recorded: "),
    ],
)
def test_wrong_labels_are_found(emulated: Path, golden: dedup.Golden, fault: Fault, found: str) -> None:
    driver = EmulatedDriver(emulated, fault)
    tree = next(lineage for lineage in golden.labelled if str(lineage) == "128 B, tree")
    differences = labelled.compare(driver, tree)
    driver.close()
    assert any(found in text for text in differences), differences


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        flip("data", 3, kernel="gather_firsts"),
        flip("first_entries", kernel="list_firsts"),
        flip("counts", kernel="add_new"),
        flip("from", 1, kernel="scan"),
    ],
    ids=["data", "entries", "counts", "region"],
)
def test_wrong_labels_of_large_regions_are_found(emulated: Path, fault: Fault) -> None:
    driver = EmulatedDriver(emulated, fault)
    block = np.random.default_rng(1).integers(0, 256, TINY.labelled, np.uint8)
    found = list(labelling.rows(driver, [Form(128, False)], block, (0.1,), 1))
    driver.close()
    assert all(row["wrong"] for row in found[::2])  # list and tree; what has moved follows each


@pytest.mark.slow
@pytest.mark.parametrize("offset", [4, 8, 17], ids=["position", "checkpoint", "offset"])
def test_wrong_places_of_what_has_moved_are_found(emulated: Path, offset: int) -> None:
    driver = EmulatedDriver(emulated, flip("shift_entries", offset, kernel="list_shifts"))
    block = np.random.default_rng(1).integers(0, 256, TINY.labelled, np.uint8)
    found = list(labelling.rows(driver, [Form(128, False)], block, (0.1,), 1))
    driver.close()
    assert [bool(row["wrong"]) for row in found] == [False, True, False, True]


def test_wrong_sources_of_moved_chunks_are_counted() -> None:
    def shifts(*entries: tuple[int, int, int, int]) -> np.ndarray:
        return np.array([(position << 24 | level, at, offset) for position, level, at, offset in entries], np.uint64)

    before = labelling.BEFORE
    assert labelling.wrong_moved(shifts((0, 1, before, 64), (2, 1, before, 0)), 4, 32) == 0
    assert labelling.wrong_moved(shifts((0, 1, before, 64), (2, 0, before, 0), (3, 0, before, 32)), 4, 32) == 0
    assert labelling.wrong_moved(shifts((0, 1, before, 32), (2, 1, before + 1, 0)), 4, 32) == 2
    assert labelling.wrong_moved(shifts((0, 1, before, 64)), 4, 32) == 1
    assert labelling.wrong_moved(shifts((0, 1, before, 64), (3, 1, before, 32)), 4, 32) == 1


def test_wrong_entries_are_counted() -> None:
    def entries(*nodes: tuple[int, int]) -> np.ndarray:
        return np.array([position << 24 | level for position, level in nodes], np.uint64)

    chosen = np.array([0, 1, 2, 3, 5, 6, 7], np.uint32)
    right = entries((0, 2), (5, 0), (6, 1))
    assert labelling.wrong_entries(right, chosen, tree=True) == 0
    assert labelling.wrong_entries(right, chosen[1:], tree=True) == 7
    assert labelling.wrong_entries(entries((0, 1), (2, 1), (5, 0), (6, 1)), chosen, tree=True) == 1  # not joined
    assert labelling.wrong_entries(entries((0, 2), (5, 1), (7, 0)), chosen, tree=True) == 1  # no subtree
    assert labelling.wrong_entries(entries((0, 2), (4, 0), (6, 1)), chosen, tree=True) == 1
    assert labelling.wrong_entries(entries(), chosen, tree=True) == 7
    leaves = entries(*((int(c), 0) for c in chosen))
    assert labelling.wrong_entries(leaves, chosen, tree=False) == 0
    assert labelling.wrong_entries(leaves ^ np.uint64(1), chosen, tree=False) == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        flip("data", 3),
        flip("list", kernel="list"),
        flip("changed", kernel="list"),
        flip("sums", kernel="scan"),
        flip("from", 1, kernel="scan"),
        find_nothing,
    ],
    ids=["data", "list", "bitmap", "hashes", "region", "comparison"],
)
def test_wrong_results_of_large_regions_are_found(emulated: Path, fault: Fault) -> None:
    driver = EmulatedDriver(emulated, fault)
    report = dedup.alone.new_report("dedup", {})
    block = np.random.default_rng(1).integers(0, 256, TINY.repeated, np.uint8)
    dedup.large(driver, report, block, TINY.large, TINY.parts, 1, TINY.forms[:1])
    dedup.judge(report)
    driver.close()
    assert not all(bar.holds for bar in report.bars if not bar.measured)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [None, flip("data", 3)], ids=["right", "wrong"])
def test_command_writes_a_result_and_tells_wrong_bytes(
    emulated: Path,
    golden: dedup.Golden,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault | None,
) -> None:
    made: list[EmulatedDriver] = []
    monkeypatch.setattr(dedup, "SIZES", TINY)
    monkeypatch.setattr(dedup, "Driver", lambda _: made.append(EmulatedDriver(emulated, fault)) or made[0])
    monkeypatch.setattr(lineages, "read", lambda _: golden.lineages[:1])
    monkeypatch.setattr(labelled, "read", lambda _: golden.labelled[:1])
    out = tmp_path / "dedup.json"
    command = ["--fatbin", __file__, "--golden", str(tmp_path), "--rounds", "1", "--commit", "abc", "--out", str(out)]
    result = CliRunner().invoke(dedup.main, command)
    made[0].close()
    assert result.exit_code == (0 if fault is None else 1), result.output
    facts = json.loads(out.read_text(encoding="utf-8"))
    assert facts.keys() == {"benchmark", "machine", "settings", "bars", "rows", "notes"}
    assert all(bar["holds"] for bar in facts["bars"] if not bar["measured"]) == (fault is None)
    copy = tmp_path / "results" / "dedup-1.json"
    copy.parent.mkdir()
    shutil.copy(out, copy)
    assert "commit abc" in page.tables(copy.parent)
    assert "de-duplication" in page.page(copy.parent)


def test_command_needs_lineages(tmp_path: Path) -> None:
    result = CliRunner().invoke(dedup.main, ["--fatbin", __file__, "--golden", str(tmp_path)])
    assert result.exit_code == 2
    assert "go test writes them" in result.output
