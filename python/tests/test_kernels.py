"""The GPU kernels: what the fatbins hold, and on a GPU that they do what NumPy and another XXH3 say."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from setuptools.errors import OptionError

import velocpy
from benchmarks.device import kernels
from build_support.cuda import FLAGS, find_nvcc
from build_support.switches import architectures
from build_support.toolchain import find_cxx

FATBIN = Path(velocpy.__file__).with_name("velocpy_kernels.fatbin")
CODEC_FATBIN = FATBIN.with_name("velocpy_codec.fatbin")
DEDUP_FATBIN = FATBIN.with_name("velocpy_dedup.fatbin")
PTX, ELF = 1, 2
ALL = (80, 86, 89, 90, 100, 120)
#: What the package under test was built for.
WANTED = architectures(ALL)


def entries(fatbin: bytes) -> Iterator[tuple[int, int]]:
    """Kind and architecture of everything in it."""
    magic, version, header, size = struct.unpack_from("<IHHQ", fatbin)
    assert (magic, version) == (0xBA55ED50, 1)
    assert header + size == len(fatbin)
    at = header
    while at < len(fatbin):
        kind, _, entry_header, entry_size = struct.unpack_from("<HHIQ", fatbin, at)
        yield kind, struct.unpack_from("<I", fatbin, at + 28)[0]
        at += entry_header + entry_size


@pytest.mark.parametrize("fatbin", [FATBIN, CODEC_FATBIN, DEDUP_FATBIN], ids=lambda path: path.stem)
def test_fatbin_lists_expected_architectures(fatbin: Path) -> None:
    found = sorted(entries(fatbin.read_bytes()))
    assert found == [(PTX, WANTED[-1]), *((ELF, arch) for arch in WANTED)]


def test_fatbin_is_small() -> None:
    share = len(WANTED) / len(ALL)
    assert 50_000 * share < FATBIN.stat().st_size < 500_000
    assert 1_000_000 * share < CODEC_FATBIN.stat().st_size < 4_000_000
    assert 500_000 * share < DEDUP_FATBIN.stat().st_size < 3_000_000


def test_architectures_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VELOCPY_CUDA_ARCHITECTURES", "")
    assert architectures(ALL) == ALL
    monkeypatch.setenv("VELOCPY_CUDA_ARCHITECTURES", "90, 80")
    assert architectures(ALL) == (80, 90)
    monkeypatch.setenv("VELOCPY_CUDA_ARCHITECTURES", "90,sm_80")
    with pytest.raises(OptionError, match=r"'90,sm_80', and sm_80 is none of 80, 86, 89, 90, 100, 120"):
        architectures(ALL)


@pytest.mark.slow
def test_kernels_of_reduction_compile(root: Path, tmp_path: Path) -> None:
    """They are not in the package."""
    fatbin = tmp_path / "reduction.fatbin"
    source = root / "cuda" / "velocpy_reduction.cu"
    command = [find_nvcc(), *FLAGS, "-arch=sm_90", "-ccbin", find_cxx(), "-fatbin", "-o", str(fatbin), str(source)]
    subprocess.run(command, check=True)
    assert (ELF, 90) in set(entries(fatbin.read_bytes()))


def test_benchmark_knows_the_layout(root: Path) -> None:
    header = (root / "cuda" / "parameters.h").read_text()
    numbers, sizes = {}, {}
    for kind, member, *both in re.findall(
        r"^VELOCPY_(?:OFFSET|SIZE)\((\w+)(?:, ([a-z]\w*))?, (\d+), (\d+)\);", header, re.M
    ):
        for size, number in zip(("Many", "Few"), both, strict=True):
            if member:
                numbers[size + kind, member] = int(number)
            else:
                sizes[size + kind] = int(number)
    types = {
        "ManyPieces": kernels.pieces_type(kernels.PIECES[""]),
        "FewPieces": kernels.pieces_type(kernels.PIECES["_few"]),
        "ManyArrays": kernels.arrays_type(*kernels.ARRAYS[""]),
        "FewArrays": kernels.arrays_type(*kernels.ARRAYS["_few"]),
    }
    assert sizes == {name: dtype.itemsize for name, dtype in types.items()}
    assert numbers == {
        (name, member): field[1]
        for name, dtype in types.items()
        for member, field in dtype.fields.items()
        if member != "reserved"
    }


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(6))
def test_kernels_match_cpu_twin(seed: int) -> None:
    pytest.importorskip("xxhash")
    assert kernels.check(kernels.Driver(FATBIN), (seed,)) > 100
