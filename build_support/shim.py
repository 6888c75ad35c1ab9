"""The C++ extension velocpy._core, and the order of the build's steps."""

from __future__ import annotations

from glob import glob

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension
from pybind11.setup_helpers import build_ext as pybind11_build_ext
from setuptools.command.build import build

from . import toolchain


def extension() -> Pybind11Extension:
    """The shim. It opens the core at run time and is not linked to it, so it needs libdl and the C++ runtime alone."""
    return Pybind11Extension(
        "velocpy._core",
        sorted(glob("cshim/*.cpp")),
        depends=sorted(glob("cshim/*.h") + glob("cshim/*.hpp")),
        include_dirs=["cshim"],
        libraries=["dl"],
        cxx_std=17,
        extra_compile_args=["-O2", "-Wall", "-Wextra"],
        extra_link_args=["-Wl,-z,noexecstack"],
    )


class Build(build):
    """The core comes first: what is missing on the machine shows before anything was compiled."""

    sub_commands = [("build_go", None), *build.sub_commands]


class BuildExt(pybind11_build_ext):
    """The stock command behind a check for the compiler and Python's headers."""

    def build_extensions(self) -> None:
        compiler = getattr(self.compiler, "compiler_so_cxx", None) or self.compiler.compiler_cxx
        toolchain.check_cxx_compiler(compiler)
        with ParallelCompile("VELOCPY_BUILD_JOBS", default=0):
            super().build_extensions()
