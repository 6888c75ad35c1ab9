"""The parts of the build that pyproject.toml cannot say: the Go core, the GPU kernels and the C++ extension."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).resolve().parent))  # isolated builds do not see the project's own folder

from build_support.core import BuildGo
from build_support.cuda import BuildCuda
from build_support.s3 import BuildS3
from build_support.shim import Build, BuildExt, extension

setup(
    ext_modules=[extension()],
    cmdclass={"build": Build, "build_go": BuildGo, "build_cuda": BuildCuda, "build_s3": BuildS3, "build_ext": BuildExt},
)
