"""Zig as the C and C++ compiler of the wheels: it links against the glibc that it is told, whatever the machine has."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

# Old enough for every distribution that CPython 3.10 still meets, and new enough for what libc++ calls.
GLIBC = "2.24"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # the name in a wheel's tag, and Go's

_UNKNOWN = ("-Wl,--unresolved-symbols=", "-Wl,-Bsymbolic-functions")
_NO_LINK = {"-c", "-E", "-S", "-fsyntax-only"}


def platform_tag(architecture: str) -> str:
    """The tag of PEP 600 that the wheels are given."""
    return f"manylinux_{GLIBC.replace('.', '_')}_{architecture}"


def arguments(given: list[str]) -> list[str]:
    """The compiler's arguments in the form that Zig's linker takes, without debug information and symbol tables.

    Two options are dropped that Zig does not know: go-nvml's --unresolved-symbols, which the core does not need as it
    defines every function of NVML, and -Bsymbolic-functions of Debian's Pythons, which only spares lookups. A link is
    stripped; Zig strips nothing while it is asked for debug information.
    """
    kept = [each for each in given if not each.startswith(_UNKNOWN)]
    kept = [each for each in kept if not re.fullmatch(r"-g\d?", each)]
    links = not _NO_LINK.intersection(kept) and any(not each.startswith("-") for each in kept)
    return [*kept, "-s"] if links else kept


def write_compilers(folder: Path, architecture: str) -> tuple[Path, Path]:
    """Writes the commands `cc` and `c++` into the folder, for CC and CXX."""
    folder.mkdir(parents=True, exist_ok=True)
    commands = folder / "cc", folder / "c++"
    for command in commands:
        call = [sys.executable, str(Path(__file__).resolve()), command.name, f"{architecture}-linux-gnu.{GLIBC}"]
        command.write_text(f'#!/bin/sh\nexec {shlex.join(call)} "$@"\n')
        command.chmod(0o755)
    return commands


def _main(language: str, target: str, *given: str) -> None:
    import ziglang

    zig = str(Path(ziglang.__file__).with_name("zig"))
    os.execv(zig, [zig, language, "-target", target, *arguments(list(given))])


if __name__ == "__main__":
    _main(*sys.argv[1:])
