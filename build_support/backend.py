"""The build back end: setuptools, which asks for NVIDIA's compiler only where the GPU kernels are built.

pip calls these functions (PEP 517 and PEP 660). ``VELOCPY_CUDA=0 pip install .`` fetches no compiler, nor does
``VELOCPY_PREBUILT_KERNELS``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

from .switches import compiles_kernels

COMPILER = Path(__file__).resolve().parents[1] / "requirements" / "cuda.txt"


def get_requires_for_build_wheel(config_settings: dict[str, object] | None = None) -> list[str]:
    """What pip installs beside pyproject.toml's requirements before it builds a wheel."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *compiler()]


def get_requires_for_build_editable(config_settings: dict[str, object] | None = None) -> list[str]:
    """The same before an editable install."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *compiler()]


def compiler() -> list[str]:
    """The packages of the CUDA compiler; none where no kernels are compiled."""
    if not compiles_kernels():
        print("velocpy: the GPU kernels are not compiled; no CUDA compiler is fetched", file=sys.stderr)
        return []
    print("velocpy: the CUDA compiler is fetched for the GPU kernels; VELOCPY_CUDA=0 does without", file=sys.stderr)
    lines = (line.partition("#")[0].strip() for line in COMPILER.read_text().splitlines())
    return [line for line in lines if line]
