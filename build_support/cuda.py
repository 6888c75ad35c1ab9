"""The command build_cuda: the GPU kernels as one fatbin inside the package."""

from __future__ import annotations

import importlib.util
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from setuptools.errors import ExecError

from . import toolchain
from .artifact import BuildArtifact
from .switches import wants_kernels

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
    "nvidia-cuda-cccl` in the versions of requirements/cuda.txt, install a wheel of velocpy, "
    "point VELOCPY_PREBUILT_KERNELS at a velocpy_kernels.fatbin, or build without kernels: VELOCPY_CUDA=0"
)


class BuildCuda(BuildArtifact):
    """Builds the kernels, or copies prebuilt ones.

    The file is made again only when its sources, the compiler or the flags changed. The compiler comes from the
    packages that requirements/cuda.txt names; no GPU and no toolkit is needed.
    """

    description = "build the GPU kernels (needs NVIDIA's compiler from PyPI and a C++ compiler)"
    user_options = [
        *BuildArtifact.user_options,
        ("prebuilt-kernels=", None, "use this fatbin instead of building one (default: VELOCPY_PREBUILT_KERNELS)"),
    ]
    filename, kept, noun, prebuilt = FATBIN, "cuda", "kernels", "prebuilt_kernels"

    def run(self) -> None:
        if wants_kernels():
            super().run()
            return
        self.announce(
            "VELOCPY_CUDA=0: the package gets no GPU kernels, and its device tier will not open", level=logging.INFO
        )
        # A file that an earlier build left would be packed.
        for destination in self._destinations():
            destination.unlink(missing_ok=True)

    def get_outputs(self) -> list[str]:
        return super().get_outputs() if wants_kernels() else []

    def get_output_mapping(self) -> dict[str, str]:
        return super().get_output_mapping() if wants_kernels() else {}

    def sources(self) -> Iterator[Path]:
        yield from (path for path in sorted(SOURCE.parent.iterdir()) if path.suffix in SUFFIXES)

    def flaw(self, content: bytes) -> str | None:
        return None if content.startswith(MAGIC) else "are not a fatbin"

    def built(self) -> Path:
        nvcc = find_nvcc()
        version = subprocess.run([nvcc, "--version"], capture_output=True, check=True).stdout
        parts = (version, repr((FLAGS, _targets())).encode())
        return self.keep(parts, lambda fatbin: self._compile(nvcc, fatbin))

    def _compile(self, nvcc: str, fatbin: Path) -> None:
        command = [nvcc, *FLAGS, *_targets(), "-ccbin", toolchain.find_cxx(), "-fatbin", "-o", str(fatbin), str(SOURCE)]
        self.call(command, "the GPU kernels", "`nvcc` failed on the kernels")


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
