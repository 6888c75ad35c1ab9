"""The command build_cuda: the GPU kernels as one fatbin inside the package."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from setuptools import Command
from setuptools.errors import CompileError, ExecError, FileError

from . import toolchain
from .core import copy_atomically

FATBIN = "velocpy_kernels.fatbin"
SOURCE = Path("cuda", "velocpy_kernels.cu")
SUFFIXES = {".cu", ".cuh", ".h"}
MAGIC = 0xBA55ED50.to_bytes(4, "little")

# Machine code for these, and PTX of the last for what comes after.
ARCHITECTURES = (80, 86, 89, 90, 100, 120)
FLAGS = (
    *("-std=c++17", "-O3", "-Werror", "all-warnings"),
    *("--compress-mode", "size", "--threads", "0", "-allow-unsupported-compiler"),
)

ADVICE = (
    "get the compiler with `pip install nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime "
    "nvidia-cuda-cccl` in the versions of pyproject.toml, install a wheel of velocpy, "
    "or point VELOCPY_PREBUILT_KERNELS at a velocpy_kernels.fatbin"
)


class BuildCuda(Command):
    """Builds the kernels, or copies prebuilt ones.

    The file is made in build/cuda and again only when its sources, the compiler or the flags changed. The compiler
    comes from the packages that pyproject.toml names; no GPU and no toolkit is needed.
    """

    description = "build the GPU kernels (needs NVIDIA's compiler from PyPI and a C++ compiler)"
    user_options = [
        ("build-lib=", "b", "directory to put the kernels in"),
        ("build-base=", None, "directory to keep the kernels in until their sources change"),
        ("prebuilt-kernels=", None, "use this fatbin instead of building one (default: VELOCPY_PREBUILT_KERNELS)"),
        ("force", "f", "build even when nothing changed"),
    ]
    boolean_options = ["force"]

    def initialize_options(self) -> None:
        self.build_lib: str | None = None
        self.build_base: str | None = None
        self.prebuilt_kernels: str | None = None
        self.force: bool | None = None
        self.editable_mode = False

    def finalize_options(self) -> None:
        self.set_undefined_options("build", *((name, name) for name in ("build_lib", "build_base", "force")))
        self.prebuilt_kernels = self.prebuilt_kernels or os.environ.get("VELOCPY_PREBUILT_KERNELS")

    def run(self) -> None:
        fatbin = self._prebuilt() if self.prebuilt_kernels else self._built()
        for destination in self._destinations():
            copy_atomically(fatbin, destination)

    def get_source_files(self) -> list[str]:
        return [str(path) for path in _sources()]

    def get_outputs(self) -> list[str]:
        return [str(self._in_wheel())]

    def get_output_mapping(self) -> dict[str, str]:
        return {str(self._in_wheel()): str(self._in_tree())} if self.editable_mode else {}

    def _destinations(self) -> list[Path]:
        return [self._in_wheel(), self._in_tree()] if self.editable_mode else [self._in_wheel()]

    def _in_wheel(self) -> Path:
        return Path(self.build_lib, "velocpy", FATBIN)

    def _in_tree(self) -> Path:
        return Path(self.get_finalized_command("build_py").get_package_dir("velocpy"), FATBIN)

    def _prebuilt(self) -> Path:
        path = Path(self.prebuilt_kernels)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise FileError(f"the prebuilt kernels {str(path)!r} cannot be read: {error.strerror}.") from None
        if not content.startswith(MAGIC):
            raise FileError(f"the prebuilt kernels {str(path)!r} are not a fatbin.")
        return path

    def _built(self) -> Path:
        nvcc = find_nvcc()
        directory = Path(self.build_base, "cuda")
        fatbin, stamp = directory / FATBIN, directory / "fingerprint"
        fingerprint = _fingerprint(nvcc)
        if not self.force and fatbin.exists() and stamp.exists() and stamp.read_text() == fingerprint:
            return fatbin
        directory.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix="velocpy-cuda-") as scratch:
            made = Path(scratch, FATBIN)
            self._compile(nvcc, made)
            copy_atomically(made, fatbin)
        stamp.write_text(fingerprint)
        return fatbin

    def _compile(self, nvcc: str, fatbin: Path) -> None:
        command = [nvcc, *FLAGS, *_targets(), "-ccbin", toolchain.find_cxx(), "-fatbin", "-o", str(fatbin), str(SOURCE)]
        self.announce("building the GPU kernels: " + " ".join(command), level=2)
        try:
            subprocess.run(command, check=True, stdout=sys.stderr)
        except subprocess.CalledProcessError as error:
            raise CompileError(
                f"`nvcc` failed on the kernels (exit status {error.returncode}); its messages stand above."
            ) from None


def find_nvcc() -> str:
    """The compiler of NVIDIA's packages for Python, or an error that names them. One on PATH may be of any version."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations if spec else None) or ():
        root = Path(place, "cu13")
        if (root / "bin" / "nvcc").exists():
            needed = ("nvvm/bin/cicc", "include/crt/host_config.h", "include/cuda_runtime.h", "include/cccl")
            missing = [part for part in needed if not (root / part).exists()]
            if missing:
                raise ExecError(f"the CUDA compiler in {root} lacks {', '.join(missing)}; {ADVICE}.")
            return str(root / "bin" / "nvcc")
    raise ExecError(f"velocpy's kernels need NVIDIA's CUDA compiler, and {sys.executable} has none; {ADVICE}.")


def _targets() -> list[str]:
    codes = [(arch, f"sm_{arch}") for arch in ARCHITECTURES] + [(ARCHITECTURES[-1], f"compute_{ARCHITECTURES[-1]}")]
    return [part for arch, code in codes for part in ("-gencode", f"arch=compute_{arch},code={code}")]


def _sources() -> Iterator[Path]:
    yield from (path for path in sorted(SOURCE.parent.iterdir()) if path.suffix in SUFFIXES)


def _fingerprint(nvcc: str) -> str:
    """A digest of everything that the kernels depend on."""
    digest = hashlib.sha256()
    version = subprocess.run([nvcc, "--version"], capture_output=True, check=True).stdout
    for part in (version, repr((FLAGS, _targets())).encode()):
        digest.update(hashlib.sha256(part).digest())
    for path in _sources():
        digest.update(hashlib.sha256(path.name.encode()).digest())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
