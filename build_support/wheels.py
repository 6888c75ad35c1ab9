"""Makes one manylinux wheel for each Python: ``python -m build_support.wheels python3.10 python3.12``.

The core and the kernels know nothing of Python, so they are built once; the shim is compiled for each Python.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import zig
from .core import LIBRARY
from .cuda import CODEC_FATBIN, DEDUP_FATBIN, FATBIN
from .s3 import PROGRAM

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "wheels"

LICENCES = ("LICENSE", "THIRD-PARTY-NOTICES")
FLOOR = (3, 10)

_QUESTION = """
import importlib.util, json, os, sys, sysconfig
print(json.dumps({
    "version": sys.version_info[:2],
    "implementation": sys.implementation.name,
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "header": os.path.join(sysconfig.get_path("include"), "Python.h"),
    "has_header": os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")),
    "multiarch": sysconfig.get_config_var("MULTIARCH"),
    "has_venv": all(map(importlib.util.find_spec, ("venv", "ensurepip"))),
}))
"""


class WheelError(Exception):
    """A wheel cannot be made, or is not what it has to be; the message says why and what to do."""


@dataclass(frozen=True)
class Interpreter:
    """A Python that a wheel is made for."""

    command: str
    version: tuple[int, int]
    #: The folder that Debian's pyconfig.h includes from, by a path that begins with the architecture's name.
    multiarch: Path | None = None

    @property
    def tag(self) -> str:
        """The Python tag of its wheels, such as cp312."""
        return f"cp{self.version[0]}{self.version[1]}"


@dataclass(frozen=True)
class Found:
    """The interpreters of some commands, and why the others cannot be used."""

    interpreters: list[Interpreter]
    left_out: list[str]


def find_interpreters(commands: Iterable[str], *, those_there: bool = False) -> Found:
    """The interpreters of these commands; an error names all that are missing or lack what a build needs.

    With `those_there` these are left out, unless no other is left.
    """
    found, flaws = [], []
    for command in commands:
        answer = _ask(command)
        flaw = flaw_of(command, answer)
        if flaw:
            flaws.append(flaw)
        else:
            found.append(Interpreter(command, tuple(answer["version"]), multiarch_of(answer)))
    if flaws and not (those_there and found):
        raise WheelError(
            f"no wheel was built, as {'no' if those_there else 'not every'} Python can be used:\n  "
            + "\n  ".join(flaws)
            + '\nName those that the machine has, as in: make wheels PYTHONS="python3.11 /opt/python3.12/bin/python3"'
        )
    return Found(found, flaws)


def flaw_of(command: str, answer: Mapping[str, object] | None) -> str | None:
    """Why no wheel can be built with an interpreter that answered this; None if one can."""
    if answer is None:
        return f"{command}: there is no such command, or it does not run"
    major, minor = answer["version"]
    if answer["implementation"] != "cpython" or answer["free_threaded"]:
        return f"{command}: velocpy is for CPython with its global interpreter lock, and this is another Python"
    if (major, minor) < FLOOR:
        return f"{command}: this is Python {major}.{minor}, and velocpy needs 3.10 or later"
    if not answer["has_header"]:
        return f"{command}: {answer['header']} does not exist; Debian has it in python{major}.{minor}-dev"
    if not answer["has_venv"]:
        return f"{command}: venv or ensurepip is missing; Debian has them in python{major}.{minor}-venv"
    return None


def multiarch_of(answer: Mapping[str, object]) -> Path | None:
    """The folder with the part of pyconfig.h that is for one architecture; None where the headers are not split."""
    include = Path(answer["header"]).parent
    folder = include.parent / str(answer["multiarch"]) / include.name
    return folder if (folder / "pyconfig.h").exists() else None


def _ask(command: str) -> dict[str, object] | None:
    try:
        done = subprocess.run([command, "-c", _QUESTION], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return json.loads(done.stdout)


def suffix_for(interpreter: Interpreter, architecture: str) -> str:
    """How the file name of an extension ends for this Python on this architecture."""
    major, minor = interpreter.version
    return f".cpython-{major}{minor}-{architecture}-linux-gnu.so"


def flaws(wheel: Path, report: str) -> list[str]:
    """What a wheel lacks of what it promises, by its content and by the report of `auditwheel show`."""
    found = []
    promised = wheel.stem.rpartition("-")[2]
    if f'platform tag: "{promised}"' not in " ".join(report.split()):
        found.append(f"auditwheel does not find it consistent with {promised}:\n{report.strip()}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for licence in LICENCES:
            if not any(name.endswith(f".dist-info/licenses/{licence}") for name in names):
                found.append(f"{licence} is missing")
        for name in (LIBRARY, FATBIN, CODEC_FATBIN, DEDUP_FATBIN, PROGRAM):
            if f"velocpy/{name}" not in names:
                found.append(f"velocpy/{name} is missing")
        for name in names:
            if name.endswith(".so") and (extra := _symbol_sections(archive, name)):
                found.append(f"{name} is not stripped: it has {', '.join(extra)}")
    return found


def _symbol_sections(archive: zipfile.ZipFile, name: str) -> list[str]:
    from elftools.elf.elffile import ELFFile

    with archive.open(name) as file:
        sections = [section.name for section in ELFFile(file).iter_sections()]
    return [section for section in sections if section == ".symtab" or section.startswith(".debug")]


def make_wheels(interpreters: list[Interpreter], architecture: str, out: Path) -> list[Path]:
    """Builds and checks the wheels, and puts them into the folder `out`."""
    base = BUILD / architecture
    cc, cxx = zig.write_compilers(base / "bin", architecture)
    environment = {**os.environ, "CC": str(cc), "CXX": str(cxx), "GOARCH": zig.ARCHITECTURES[architecture]}
    _say(f"building the core for {architecture} and the GPU kernels, once for all Pythons")
    shared = base / "shared"
    _setup(sys.executable, ["build_go", "--build-base", base, "--build-lib", shared], environment)
    # The CUDA compiler preprocesses with the machine's own C++ compiler.
    _setup(sys.executable, ["build_cuda", "--build-base", base, "--build-lib", shared], dict(os.environ))
    # Before the core is named: a build with a prebuilt core takes the program that lies beside it, and makes none.
    _setup(sys.executable, ["build_s3", "--build-base", base, "--build-lib", shared], environment)
    environment["VELOCPY_PREBUILT_CORE"] = str(shared / "velocpy" / LIBRARY)
    environment["VELOCPY_PREBUILT_S3"] = str(shared / "velocpy" / PROGRAM)
    environment["VELOCPY_PREBUILT_KERNELS"] = str(shared / "velocpy" / FATBIN)
    return [_make_wheel(interpreter, architecture, out, environment) for interpreter in interpreters]


def _make_wheel(interpreter: Interpreter, architecture: str, out: Path, environment: Mapping[str, str]) -> Path:
    _say(f"building the wheel of {interpreter.command} for {architecture}")
    base = BUILD / architecture / interpreter.tag
    scratch = base / "dist"
    shutil.rmtree(scratch, ignore_errors=True)
    if interpreter.multiarch:
        environment = {**environment, "CPPFLAGS": link_headers(interpreter.multiarch, base / "include", architecture)}
    options = ["--plat-name", zig.platform_tag(architecture), "--dist-dir", scratch, "--bdist-dir", base / "bdist"]
    _setup(
        _environment_python(interpreter),
        ["build", "--build-base", base, "bdist_wheel", *options],
        {**environment, "SETUPTOOLS_EXT_SUFFIX": suffix_for(interpreter, architecture)},
    )
    (wheel,) = scratch.glob("*.whl")
    show = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    report = subprocess.run(show, capture_output=True, text=True, check=False)
    if found := flaws(wheel, report.stdout + report.stderr):
        raise WheelError(f"{wheel} is not as it has to be:\n  " + "\n  ".join(found))
    out.mkdir(parents=True, exist_ok=True)
    return Path(shutil.move(wheel, out / wheel.name))


def link_headers(multiarch: Path, folder: Path, architecture: str) -> str:
    """The option with which Zig, which does not look into /usr/include, finds Debian's part of pyconfig.h.

    The part of x86-64 serves for aarch64 too: it describes sizes of types and glibc, in which these two agree.
    """
    link = folder / f"{architecture}-linux-gnu" / multiarch.name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(multiarch)
    return f"-idirafter {folder}"


def _environment_python(interpreter: Interpreter) -> str:
    """The Python of an environment that has what setup.py imports, in the versions that this process has."""
    place = BUILD / "environments" / interpreter.tag
    python = place / "bin" / "python"
    if not (place / "complete").exists():
        subprocess.run([interpreter.command, "-m", "venv", "--clear", str(place)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "-c", "requirements/wheels.txt"]
        subprocess.run([*install, "setuptools", "pybind11"], cwd=ROOT, check=True)
        (place / "complete").touch()
    return str(python)


def _setup(python: str, arguments: list[object], environment: Mapping[str, str]) -> None:
    command = [python, "setup.py", "--quiet", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if done.returncode:
        raise WheelError("a step of the build failed; its messages stand above")


def _say(text: str) -> None:
    print(f"wheels: {text}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m build_support.wheels", description=__doc__.partition("\n")[0])
    parser.add_argument("pythons", nargs="+", metavar="PYTHON", help="command or path of an interpreter")
    parser.add_argument("--arch", choices=sorted(zig.ARCHITECTURES), default="x86_64")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    add_those_there(parser)
    return parser.parse_args()


def add_those_there(parser: argparse.ArgumentParser) -> None:
    """The option for Pythons that nobody has named."""
    parser.add_argument("--those-there", action="store_true", help="leave out Pythons that cannot be used, but not all")


def say_left_out(found: Found) -> None:
    """Prints which Pythons get no wheel, and why."""
    if found.left_out:
        _say("left out, as the machine lacks them:\n  " + "\n  ".join(found.left_out))


def main() -> int:
    """Makes the wheels that the command line names."""
    options = _arguments()
    try:
        found = find_interpreters(options.pythons, those_there=options.those_there)
        say_left_out(found)
        for wheel in make_wheels(found.interpreters, options.arch, options.out.resolve()):
            _say(f"{wheel} ({wheel.stat().st_size / 2**20:.1f} MiB)")
        say_left_out(found)  # again, below the messages of the build
    except WheelError as error:
        print(f"wheels: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
