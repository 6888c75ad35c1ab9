"""The C++ extension velocpy._core, and the order of the build's steps."""

from __future__ import annotations

import hashlib
import logging
import shutil
import sys
import sysconfig
from pathlib import Path

import pybind11
from pybind11.setup_helpers import ParallelCompile, Pybind11Extension
from pybind11.setup_helpers import build_ext as pybind11_build_ext
from setuptools.command.build import build

from . import toolchain

SOURCES = Path("cshim")


def extension() -> Pybind11Extension:
    """The shim. It opens the core at run time and is not linked to it, so it needs libdl and the C++ runtime alone."""
    return Pybind11Extension(
        "velocpy._core",
        sorted(map(str, SOURCES.glob("*.cpp"))),
        depends=_headers(),
        include_dirs=[str(SOURCES)],
        libraries=["dl"],
        cxx_std=17,
        extra_compile_args=["-Wall", "-Wextra"],
        extra_link_args=["-Wl,-z,noexecstack"],
    )


class Build(build):
    """The core and the kernels come first: what is missing on the machine shows before anything was compiled."""

    sub_commands = [("build_go", None), ("build_cuda", None), ("build_s3", None), *build.sub_commands]

    def run(self) -> None:
        # A module that was deleted since the last build would still be packed.
        shutil.rmtree(Path(self.build_lib, "velocpy"), ignore_errors=True)
        super().run()


class BuildExt(pybind11_build_ext):
    """The stock command behind a check of the compiler, with objects that are kept from one build to the next."""

    def finalize_options(self) -> None:
        super().finalize_options()
        # Editable builds are given a temporary directory, which would forget the objects.
        flavour = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
        self.build_temp = str(Path(self.get_finalized_command("build").build_base, "shim", flavour))

    def build_extensions(self) -> None:
        compiler = getattr(self.compiler, "compiler_so_cxx", None) or self.compiler.compiler_cxx
        toolchain.check_cxx_compiler(compiler)
        for source in self.extensions[0].sources:
            self._forget_when_stale(source, compiler)
        self.announce("velocpy: building the C++ extension, which takes a minute or two", level=logging.INFO)
        with ParallelCompile("VELOCPY_BUILD_JOBS", default=0, needs_recompile=lambda *_: False):
            super().build_extensions()

    def _forget_when_stale(self, source: str, compiler: list[str]) -> None:
        """Removes an object that was made of something else. Contents count, as a copied tree keeps its old times."""
        (compiled,) = map(Path, self.compiler.object_filenames([source], output_dir=self.build_temp))
        flags = [sys.version, pybind11.__version__, *compiler, *self.extensions[0].extra_compile_args]
        digest = hashlib.sha256("\n".join(flags).encode())
        for path in (source, *_headers()):
            digest.update(hashlib.sha256(Path(path).read_bytes()).digest())
        stamp = compiled.with_suffix(".digest")
        if not stamp.exists() or stamp.read_text() != digest.hexdigest():
            compiled.unlink(missing_ok=True)
            compiled.parent.mkdir(parents=True, exist_ok=True)
            stamp.write_text(digest.hexdigest())


def _headers() -> list[str]:
    return sorted(map(str, SOURCES.glob("*.h")))
