"""The licences of what a wheel contains beside velocpy: Go modules and runtime in its binaries, pybind11 in the shim.

Wheels of `make wheels` also have Zig's compiler_rt, and LLVM's libc++ and libunwind, whose licences lie beside this
file.

``python -m build_support.notices > THIRD-PARTY-NOTICES`` writes them anew; a test compares.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]

_HEADER = "What follows is part of velocpy's wheels, under the licences printed here.\n"
_RULE = "=" * 80


def notices() -> str:
    """The text of the file."""
    parts = [
        f"{_RULE}\n{name}\n{_RULE}\n\n{text.strip()}\n" for name, text in (*_modules(), _go(), _pybind11(), *_zig())
    ]
    return "\n".join([_HEADER, *parts])


def _modules() -> Iterator[tuple[str, str]]:
    """Those of the core, and those of velocpy-s3. Of one that both have, the versions may differ."""
    shown = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}"
    lines = [
        line
        for module, package in ((".", "./gocore/cabi"), ("s3", "."))
        for line in _run("go", "list", "-C", module, "-deps", "-f", shown, package).split("\n")
    ]
    for line in sorted(set(lines) - {""}):
        name, directory = line.split("\t")
        if not name.startswith("velocpy "):
            yield name, _licence_in(Path(directory))


def _go() -> tuple[str, str]:
    return "Go: runtime and standard library", (Path(_run("go", "env", "GOROOT").strip()) / "LICENSE").read_text()


def _pybind11() -> tuple[str, str]:
    found = distribution("pybind11")
    (text,) = [file.read_text() for file in found.files or () if file.name == "LICENSE"]
    return f"pybind11 {found.version}", text


def _zig() -> Iterator[tuple[str, str]]:
    place = Path(__file__).with_name("licences")
    yield "Zig: compiler_rt (wheels of `make wheels`)", (place / "zig.txt").read_text()
    yield "LLVM: libc++, libc++abi, libunwind (wheels of `make wheels`)", (place / "llvm.txt").read_text()


def _licence_in(directory: Path) -> str:
    files = sorted(
        file for file in directory.iterdir() if file.name.upper().startswith(("LICENSE", "COPYING", "NOTICE"))
    )
    if not files:
        raise FileNotFoundError(f"{directory} has no licence")
    return "\n\n".join(file.read_text().strip() for file in files)


def _run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.stdout.write(notices())
