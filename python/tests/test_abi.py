"""The C contract without the shim: structs as the header has them, and hostile calls that must end in errors."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from abi import FUNCTIONS, STRUCTS
from abi_hostile import TESTS

HERE = Path(__file__).parent


def core_path() -> Path:
    """The core under test: the one that is asked for, or the package's."""
    if named := os.environ.get("VELOCPY_CORE"):
        return Path(named)
    import velocpy

    return Path(velocpy.__file__).with_name("libvelocpy_core.so")


def test_structs_are_the_header_s(root: Path, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler on this machine")
    lines = []
    wanted = {}
    for name, struct in STRUCTS.items():
        lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
        wanted[name] = ctypes.sizeof(struct)
        for field, *_ in struct._fields_:
            lines.append(f'  printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
            wanted[f"{name}.{field}"] = getattr(struct, field).offset
    source = tmp_path / "structs.c"
    prologue = '#include <stddef.h>\n#include <stdio.h>\n#include "velocpy_abi.h"\n'
    source.write_text(prologue + "int main(void) {\n" + "\n".join(lines) + "\n  return 0;\n}\n")
    program = tmp_path / "structs"
    command = [
        compiler,
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{root / 'cshim'}",
        str(source),
        "-o",
        str(program),
    ]
    subprocess.run(command, check=True)
    said = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    assert {k: int(v) for k, v in (line.split() for line in said.splitlines())} == wanted


def test_every_function_of_the_header_is_called(root: Path) -> None:
    header = (root / "cshim" / "velocpy_abi.h").read_text()
    assert set(re.findall(r"^int32_t veloc_(\w+)\(", header, re.MULTILINE)) == set(FUNCTIONS)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """What each hostile test reported; one that the process did not survive has its exit status and last words."""
    core = core_path()
    if not core.exists():
        pytest.skip(f"no core at {core}")
    done = subprocess.run(
        [sys.executable, str(HERE / "abi_hostile.py"), str(core)],
        cwd=tmp_path_factory.mktemp("abi"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    results: dict[str, str | None] = dict.fromkeys(TESTS, "was not reached")
    for line in done.stdout.splitlines():
        what, name, *wrong = json.loads(line)
        results[name] = f"the process ended with {done.returncode}:\n{done.stderr}" if what == "begin" else wrong[0]
    return results


@pytest.mark.parametrize("name", TESTS)
def test_hostile(name: str, outcome: dict[str, str | None]) -> None:
    assert outcome[name] is None, outcome[name]
