"""Tries the wheels in a folder: ``python -m build_support.try_wheels --from dist python3.10 python3.12``.

Each is installed into a fresh environment whose PATH has neither Go nor a compiler, runs a smoke test there, and then
some of velocpy's tests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .wheels import ROOT, Interpreter, WheelError, add_those_there, find_interpreters, say_left_out

TESTS = ("regions", "leases", "durable")
TOOLS = ("pytest", "pytest-timeout", "hypothesis", "ml_dtypes", "pyelftools", "psutil", "xxhash")
# What tests call of the machine.
COMMANDS = ("mount", "umount", "sh", "cat")
HIDDEN = ("CC", "CXX", "GOROOT", "PYTHONPATH", "PYTHONHOME", "VELOCPY_CORE")

_SMOKE = """
import sys
import numpy, velocpy
with velocpy.open(host="1MiB", disk="16MiB") as store:
    history = store.history("h")
    for i in range(16):
        history.checkpoint(i, u=numpy.full(50_000, i))
    for i in reversed(range(16)):
        assert (history.restore(i)["u"] == i).all(), i
assert velocpy.build_info()["core_path"].startswith(sys.prefix), "the core is not the wheel's"
"""


def wheel_for(interpreter: Interpreter, folder: Path) -> Path:
    """The newest wheel in the folder for this Python on this machine."""
    pattern = f"velocpy-*-{interpreter.tag}-{interpreter.tag}-manylinux_*_{os.uname().machine}.whl"
    found = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        raise WheelError(f"{folder} has no wheel {pattern}; make it with: make wheels PYTHONS={interpreter.command}")
    return found[-1]


def bare_environment(path: Path) -> dict[str, str]:
    """The environment of the process with this folder alone on PATH, and without variables that name compilers."""
    return {**{k: v for k, v in os.environ.items() if k not in HIDDEN}, "PATH": str(path)}


def try_wheel(interpreter: Interpreter, wheel: Path, tests: list[str]) -> None:
    """Raises WheelError unless the wheel installs, works and passes these tests."""
    with tempfile.TemporaryDirectory(prefix="velocpy-wheel-") as scratch:
        place = Path(scratch, "venv")
        subprocess.run([interpreter.command, "-m", "venv", str(place)], check=True)
        for command in filter(shutil.which, COMMANDS):
            (place / "bin" / command).symlink_to(shutil.which(command))
        environment = bare_environment(place / "bin")
        for compiler in ("go", "gcc", "g++", "cc", "c++", "clang"):
            if shutil.which(compiler, path=environment["PATH"]):
                raise WheelError(f"{compiler} is on the PATH {environment['PATH']}, which has to be without it")
        python = str(place / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
        _call([*install, str(wheel)], "the wheel does not install", environment)
        _call([python, "-c", _SMOKE], "the smoke test failed", environment)
        _call([*install, "-c", str(ROOT / "requirements" / "test.txt"), *TOOLS], "pytest does not install", environment)
        files = [str(ROOT / "python" / "tests" / f"test_{name}.py") for name in tests]
        pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", str(Path(scratch, "tests"))]
        _call([*pytest, *files], "tests failed", environment)


def _call(command: list[str], failure: str, environment: Mapping[str, str]) -> None:
    if subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False).returncode:
        raise WheelError(f"{failure}; what was said stands above")


def main() -> int:
    """Tries the wheels of the Pythons that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m build_support.try_wheels", description=__doc__.partition("\n")[0])
    parser.add_argument("pythons", nargs="+", metavar="PYTHON", help="command or path of an interpreter")
    parser.add_argument("--from", type=Path, default=ROOT / "dist", dest="folder")
    parser.add_argument("--tests", default=" ".join(TESTS), help="names of test files, without test_ and .py")
    add_those_there(parser)
    options = parser.parse_args()
    try:
        found = find_interpreters(options.pythons, those_there=options.those_there)
        say_left_out(found)
        for interpreter in found.interpreters:
            wheel = wheel_for(interpreter, options.folder)
            print(f"wheels: trying {wheel.name}", flush=True)
            try_wheel(interpreter, wheel, options.tests.split())
    except WheelError as error:
        print(f"wheels: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
