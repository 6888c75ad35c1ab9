"""The two shared libraries: what they export, what they need, and how they bind."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import RunPython
from elftools.elf.elffile import ELFFile

import velocpy
from velocpy import _core

CORE = Path(velocpy.__file__).with_name("libvelocpy_core.so")
SHIM = Path(_core.__file__)

# What a build on Debian 12 needs at most; README.md says so. A later glibc brings later versions of its symbols.
GLIBC_FLOOR = (2, 34)
GLIBC_OF_FLOOR = (2, 36)


@contextmanager
def elf(path: Path) -> Iterator[ELFFile]:
    with path.open("rb") as file:
        yield ELFFile(file)


def dynamic_tags(path: Path, name: str) -> list[object]:
    with elf(path) as binary:
        tags = binary.get_section_by_name(".dynamic").iter_tags(name)
        texts = {"DT_NEEDED": "needed", "DT_SONAME": "soname"}
        return [getattr(tag, texts[name]) if name in texts else tag.entry.d_val for tag in tags]


def defined_functions(path: Path, *bindings: str) -> set[str]:
    with elf(path) as binary:
        symbols = binary.get_section_by_name(".dynsym").iter_symbols()
        return {s.name for s in symbols if s["st_shndx"] != "SHN_UNDEF" and s["st_info"]["bind"] in bindings}


def versions_needed(path: Path) -> dict[str, set[str]]:
    with elf(path) as binary:
        section = binary.get_section_by_name(".gnu.version_r")
        return {library.name: {v.name for v in versions} for library, versions in section.iter_versions()}


def glibc_needed(path: Path) -> tuple[int, ...]:
    names = set().union(*versions_needed(path).values())
    return max(tuple(map(int, name[6:].split("."))) for name in names if re.fullmatch(r"GLIBC_[0-9.]+", name))


def declared(root: Path) -> set[str]:
    header = (root / "cshim" / "velocpy_abi.h").read_text()
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    return set(re.findall(r"\b(veloc_\w+)\(", header))


def test_exported_symbols(root: Path) -> None:
    exported = defined_functions(CORE, "STB_GLOBAL", "STB_WEAK", "STB_LOOS")
    assert len(exported) > 2
    assert exported == declared(root)


def test_dt_needed_is_libc_only() -> None:
    assert dynamic_tags(CORE, "DT_NEEDED") == ["libc.so.6"]


def test_shim_is_not_linked_to_the_core() -> None:
    needed = {re.split(r"\.so|-linux", str(name))[0] for name in dynamic_tags(SHIM, "DT_NEEDED")}
    assert "libc" in needed
    assert needed <= {"libc", "libdl", "libm", "libpthread", "libstdc++", "libgcc_s", "ld"}


def test_shim_exports_its_entry_alone() -> None:
    # The weak ones are the C++ library's own templates.
    assert defined_functions(SHIM, "STB_GLOBAL") == {"PyInit__core"}


def test_no_bind_now() -> None:
    flags, flags_1 = dynamic_tags(CORE, "DT_FLAGS"), dynamic_tags(CORE, "DT_FLAGS_1")
    assert flags, "the linker writes DF_SYMBOLIC for a Go library"
    assert not any(f & 0x8 for f in flags), "DF_BIND_NOW"
    assert not any(f & 0x1 for f in flags_1), "DF_1_NOW"
    assert dynamic_tags(CORE, "DT_BIND_NOW") == []


def test_soname() -> None:
    assert dynamic_tags(CORE, "DT_SONAME") == ["libvelocpy_core.so"]


@pytest.mark.parametrize("path", [CORE, SHIM], ids=["core", "shim"])
def test_stack_is_not_executable(path: Path) -> None:
    with elf(path) as binary:
        stacks = [s for s in binary.iter_segments() if s["p_type"] == "PT_GNU_STACK"]
        assert len(stacks) == 1
        assert not stacks[0]["p_flags"] & 0x1


@pytest.mark.parametrize("path", [CORE, SHIM], ids=["core", "shim"])
def test_no_search_path(path: Path) -> None:
    assert dynamic_tags(path, "DT_RPATH") == []
    assert dynamic_tags(path, "DT_RUNPATH") == []


@pytest.mark.parametrize("path", [CORE, SHIM], ids=["core", "shim"])
def test_stripped(path: Path) -> None:
    with elf(path) as binary:
        assert binary.get_section_by_name(".debug_info") is None


def test_core_needs_versioned_symbols_of_libc_alone() -> None:
    assert set(versions_needed(CORE)) == {"libc.so.6"}


def test_no_python_symbols_in_core() -> None:
    """Go never calls Python: what it has to say is asked for."""
    with elf(CORE) as binary:
        names = {symbol.name for symbol in binary.get_section_by_name(".dynsym").iter_symbols()}
    assert not [name for name in names if name.startswith(("Py", "_Py"))]
    assert "malloc" in names


SECOND = """package main

import "C"

//export sum_in_goroutines
func sum_in_goroutines(n C.int) C.int {
	results := make(chan C.int)
	for i := range n {
		go func() { results <- i }()
	}
	total := C.int(0)
	for range n {
		total += <-results
	}
	return total
}

func main() {}
"""


@pytest.mark.slow
def test_coexists_with_second_go_library(tmp_path: Path, run_python: RunPython) -> None:
    (tmp_path / "second.go").write_text(SECOND)
    subprocess.run(["go", "build", "-buildmode=c-shared", "-o", "second.so", "second.go"], cwd=tmp_path, check=True)
    done = run_python(
        """
        import ctypes, sys
        import numpy as np
        import velocpy
        second = ctypes.CDLL(sys.argv[1])
        with velocpy.open(host="1MiB", disk="16MiB") as store:
            history = store.history("h")
            for i in range(100):
                history.checkpoint(i, u=np.full(10_000, i))
                assert second.sum_in_goroutines(100) == 4950
            for i in reversed(range(100)):
                assert history.restore(i)["u"].sum() == 10_000 * i
                assert second.sum_in_goroutines(100) == 4950
        """,
        str(tmp_path / "second.so"),
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", [CORE, SHIM], ids=["core", "shim"])
def test_glibc_floor(path: Path) -> None:
    machine = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")))
    ceiling = GLIBC_FLOOR if machine <= GLIBC_OF_FLOOR else machine
    assert (2, 2) < glibc_needed(path) <= ceiling


def test_no_path_of_the_build_machine(root: Path) -> None:
    for path in (CORE, SHIM):
        assert str(root).encode() not in path.read_bytes()


def test_version_info() -> None:
    info = velocpy.build_info()
    assert info["version"] == info["core"]["version"] == velocpy.__version__
    assert info["core"]["go"].startswith("go1.")
    assert info["core_path"] == str(CORE)
