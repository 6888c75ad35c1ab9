"""Finds the compilers that the build needs and says in one sentence what is missing and how to get it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools.errors import ExecError, PlatformError

GO_FLOOR = (1, 25)  # the `go` line of go.mod: lower ones neither parse it nor respect the CPU quota of a container
GO_ADVICE = (
    "get it from https://go.dev/dl/ and put its bin folder on PATH, install a wheel of velocpy, "
    "or point VELOCPY_PREBUILT_CORE at a libvelocpy_core.so"
)
COMPILER_ADVICE = (
    "get it with `apt-get install g++` (Debian, Ubuntu) or `dnf install gcc-c++` (Fedora, RHEL), "
    "or install a wheel of velocpy"
)


def check_platform() -> None:
    """velocpy runs on Linux with glibc: musl cannot open a Go library at run time."""
    libc = os.confstr("CS_GNU_LIBC_VERSION") if sys.platform == "linux" and _knows_glibc() else None
    if not libc:
        raise PlatformError(f"velocpy is for Linux with glibc, and this is {sysconfig.get_platform()} without it.")


def _knows_glibc() -> bool:
    return "CS_GNU_LIBC_VERSION" in os.confstr_names


def go_environment() -> dict[str, str]:
    """The environment for the go command: it fetches the modules that go.sum names, and no toolchain."""
    environment = dict(os.environ)
    environment.setdefault("GOTOOLCHAIN", "local")
    environment["GOWORK"] = "off"
    environment["CGO_ENABLED"] = "1"
    if "CC" not in environment and not shutil.which("gcc"):
        environment["CC"] = next(filter(shutil.which, ("cc", "clang")), "gcc")
    return environment


def find_go() -> str:
    """The go command, or an error that names the version needed."""
    needed = f"velocpy's core needs Go {GO_FLOOR[0]}.{GO_FLOOR[1]} or later; {GO_ADVICE}."
    go = shutil.which("go")
    if go is None:
        raise ExecError(f"no `go` is on PATH, and {needed}")
    # Outside of the project, whose go.mod an older Go refuses to read.
    command = [go, "version"]
    answer = subprocess.run(command, capture_output=True, text=True, env=go_environment(), cwd="/", check=False)
    found = re.search(r"go(\d+)\.(\d+)", answer.stdout)
    if found is None:
        raise ExecError(f"`{go} version` failed ({(answer.stderr or answer.stdout).strip()}), and {needed}")
    if (int(found[1]), int(found[2])) < GO_FLOOR:
        raise ExecError(f"{go} is Go {found[1]}.{found[2]}, and {needed}")
    return go


def check_c_compiler() -> None:
    """Go calls a C compiler for the ABI of the core."""
    command = go_environment().get("CC", "gcc")
    if shutil.which(shlex.split(command)[0]) is None:
        raise ExecError(f"velocpy's core needs a C compiler, and {command!r} is not on PATH; {COMPILER_ADVICE}.")


def find_cxx() -> str:
    """The C++ compiler that nvcc preprocesses with."""
    wanted = shlex.split(os.environ.get("CXX", ""))[:1]
    found = next(filter(None, map(shutil.which, (*wanted, "g++", "clang++", "c++"))), None)
    if found is None:
        raise ExecError(f"velocpy's kernels need a C++ compiler, and none is on PATH; {COMPILER_ADVICE}.")
    return found


def check_cxx_compiler(command: list[str]) -> None:
    """The extension needs a C++17 compiler and the headers of this Python."""
    if shutil.which(command[0]) is None:
        raise ExecError(
            "velocpy's extension needs a C++17 compiler (GCC 8 or later, or clang), "
            f"and {command[0]!r} is not on PATH; {COMPILER_ADVICE}."
        )
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.exists():
        raise ExecError(
            f"velocpy's extension needs the headers of Python, and {header} does not exist; "
            "get them with `apt-get install python3-dev` (Debian, Ubuntu) or `dnf install python3-devel` (Fedora)."
        )
