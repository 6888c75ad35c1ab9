"""The environment variables that say what a build leaves out."""

from __future__ import annotations

import os

from setuptools.errors import OptionError


def wants_kernels() -> bool:
    """Whether the package is to have GPU kernels: VELOCPY_CUDA is 1 (the default) or 0."""
    value = os.environ.get("VELOCPY_CUDA", "1") or "1"
    if value not in ("0", "1"):
        raise OptionError(f"VELOCPY_CUDA is {value!r}; it is 1 (build the GPU kernels) or 0 (leave them out).")
    return value == "1"


def wants_s3() -> bool:
    """Whether the package is to have the program that talks to object stores: VELOCPY_S3 is 1 (the default) or 0."""
    value = os.environ.get("VELOCPY_S3", "1") or "1"
    if value not in ("0", "1"):
        raise OptionError(f"VELOCPY_S3 is {value!r}; it is 1 (build velocpy-s3) or 0 (leave it out).")
    return value == "1"


def compiles_kernels() -> bool:
    """Whether the build compiles them, and needs a CUDA compiler for it."""
    return wants_kernels() and not os.environ.get("VELOCPY_PREBUILT_KERNELS")


def architectures(known: tuple[int, ...]) -> tuple[int, ...]:
    """Those of ``known`` that VELOCPY_CUDA_ARCHITECTURES names, with commas between; all where it is not set."""
    value = os.environ.get("VELOCPY_CUDA_ARCHITECTURES", "")
    wanted = {part.strip() for part in value.split(",") if part.strip()} or set(map(str, known))
    if unknown := sorted(wanted - set(map(str, known))):
        raise OptionError(
            f"VELOCPY_CUDA_ARCHITECTURES is {value!r}, and {', '.join(unknown)} is none of "
            f"{', '.join(map(str, known))}. Give your GPUs' own: nvidia-smi --query-gpu=compute_cap says 9.0 for 90."
        )
    return tuple(number for number in known if str(number) in wanted)
