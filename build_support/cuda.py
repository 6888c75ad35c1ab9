"""The command build_cuda: the GPU kernels inside the package. Those of the codec and of de-duplication have fatbins."""

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
from .switches import architectures, wants_kernels

FATBIN = "velocpy_kernels.fatbin"
SOURCE = Path("cuda", "velocpy_kernels.cu")
# A process loads these only when it encodes, or de-duplicates, on a GPU. Those of the codec take the compiler two
# minutes, and the wheel 2.5 MB; those of de-duplication half of that.
CODEC_FATBIN = "velocpy_codec.fatbin"
DEDUP_FATBIN = "velocpy_dedup.fatbin"
SUFFIXES = {".cu", ".cuh", ".h"}
MAGIC = 0xBA55ED50.to_bytes(4, "little")

# Machine code for these, or those of them that VELOCPY_CUDA_ARCHITECTURES names, and PTX of the last for later GPUs.
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


class _BuildKernels(BuildArtifact):
    """Makes one fatbin, or copies a prebuilt one."""

    source: Path

    def remove(self) -> None:
        """Removes the file of an earlier build, which would be packed."""
        for destination in self._destinations():
            destination.unlink(missing_ok=True)

    def sources(self) -> Iterator[Path]:
        yield from (path for path in sorted(self.source.parent.iterdir()) if path.suffix in SUFFIXES)

    def flaw(self, content: bytes) -> str | None:
        return None if content.startswith(MAGIC) else "are not a fatbin"

    def built(self) -> Path:
        nvcc = find_nvcc()
        version = subprocess.run([nvcc, "--version"], capture_output=True, check=True).stdout
        parts = (version, repr((FLAGS, _targets())).encode())
        return self.keep(parts, lambda fatbin: self._compile(nvcc, fatbin))

    def _compile(self, nvcc: str, fatbin: Path) -> None:
        compiler = [nvcc, *FLAGS, *_targets(), "-ccbin", toolchain.find_cxx()]
        command = [*compiler, "-fatbin", "-o", str(fatbin), str(self.source)]
        self.call(command, f"the GPU {self.noun}", f"`nvcc` failed on the {self.noun}")


class _BuildOthers(_BuildKernels):
    """A part of build_cuda that makes another fatbin."""

    without: str

    def is_there(self) -> bool:
        """Whether the fatbin can be built, or is prebuilt."""
        named = getattr(self, self.prebuilt)
        return named is None or Path(named).exists()


class _BuildCodec(_BuildOthers):
    """The part of build_cuda that makes the kernels of the codec; it gets its options from there."""

    without = "GPUs will not encode"
    filename, kept, noun, prebuilt = CODEC_FATBIN, "codec", "kernels of the codec", "prebuilt_codec"
    source = Path("cuda", "velocpy_codec.cu")


class _BuildDedup(_BuildOthers):
    """The part that makes the kernels of de-duplication."""

    without = "GPUs will not de-duplicate"
    filename, kept, noun, prebuilt = DEDUP_FATBIN, "dedup", "kernels of de-duplication", "prebuilt_dedup"
    source = Path("cuda", "velocpy_dedup.cu")


class BuildCuda(_BuildKernels):
    """Builds the kernels, or copies prebuilt ones.

    The files are made again only when their sources, the compiler or the flags changed. The compiler comes from the
    packages that requirements/cuda.txt names; no GPU and no toolkit is needed. With prebuilt kernels, the others lie
    beside them, or the package lacks these.
    """

    description = "build the GPU kernels (needs NVIDIA's compiler from PyPI and a C++ compiler)"
    user_options = [
        *BuildArtifact.user_options,
        ("prebuilt-kernels=", None, "use this fatbin instead of building one (default: VELOCPY_PREBUILT_KERNELS)"),
    ]
    filename, kept, noun, prebuilt = FATBIN, "cuda", "kernels", "prebuilt_kernels"
    source = SOURCE

    def run(self) -> None:
        others = self._others()
        if not wants_kernels():
            self.announce(
                "VELOCPY_CUDA=0: the package gets no GPU kernels, and its device tier will not open", level=logging.INFO
            )
            self.remove()
            for part in others:
                part.remove()
            return
        super().run()
        for part in others:
            if part.is_there():
                part.run()
                continue
            self.announce(f"velocpy: no {part.filename} lies beside the kernels: {part.without}", level=logging.INFO)
            part.remove()

    def get_outputs(self) -> list[str]:
        if not wants_kernels():
            return []
        outputs = super().get_outputs()
        for part in self._others():
            if part.is_there():
                outputs += part.get_outputs()
        return outputs

    def get_output_mapping(self) -> dict[str, str]:
        if not wants_kernels():
            return {}
        mapping = super().get_output_mapping()
        for part in self._others():
            if part.is_there():
                mapping |= part.get_output_mapping()
        return mapping

    def _others(self) -> list[_BuildOthers]:
        """The parts that make the other fatbins. If the kernels are prebuilt, theirs lie beside these."""
        named = self.prebuilt_kernels
        parts: list[_BuildOthers] = [_BuildCodec(self.distribution), _BuildDedup(self.distribution)]
        for part in parts:
            for name in ("build_lib", "build_base", "force", "editable_mode"):
                setattr(part, name, getattr(self, name))
            setattr(part, part.prebuilt, str(Path(named).with_name(part.filename)) if named else None)
        return parts


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
    wanted = architectures(ARCHITECTURES)
    codes = [(arch, f"sm_{arch}") for arch in wanted] + [(wanted[-1], f"compute_{wanted[-1]}")]
    return [part for arch, code in codes for part in ("-gencode", f"arch=compute_{arch},code={code}")]
