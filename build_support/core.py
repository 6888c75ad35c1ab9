"""The command build_go: the Go core as libvelocpy_core.so inside the package."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from setuptools import Command
from setuptools.errors import CompileError, FileError

from . import toolchain

LIBRARY = "libvelocpy_core.so"
PACKAGE = "./gocore/cabi"
EXPORTS = Path("gocore", "cabi", "exports.map")
SOURCES = ("go.mod", "go.sum", "gocore", "cshim/velocpy_abi.h")
GO_SETTINGS = (
    *("GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOFLAGS", "GOEXPERIMENT"),
    *("CC", "CGO_CFLAGS", "CGO_LDFLAGS"),
)
SUFFIXES = {".go", ".mod", ".sum", ".h", ".c", ".s", ".map"}


class BuildGo(Command):
    """Builds the core, or copies a prebuilt one.

    The library is made in build/core and again only when its sources, the version, the compiler or the flags changed.
    It needs nothing but libc and exports nothing but the functions of the ABI.
    """

    description = "build the Go core (needs Go and a C compiler)"
    user_options = [
        ("build-lib=", "b", "directory to put the library in"),
        ("build-base=", None, "directory to keep the library in until its sources change"),
        ("prebuilt-core=", None, "use this library instead of building one (default: VELOCPY_PREBUILT_CORE)"),
        ("force", "f", "build even when nothing changed"),
    ]
    boolean_options = ["force"]

    def initialize_options(self) -> None:
        self.build_lib: str | None = None
        self.build_base: str | None = None
        self.prebuilt_core: str | None = None
        self.force: bool | None = None
        self.editable_mode = False

    def finalize_options(self) -> None:
        self.set_undefined_options("build", *((name, name) for name in ("build_lib", "build_base", "force")))
        self.prebuilt_core = self.prebuilt_core or os.environ.get("VELOCPY_PREBUILT_CORE")

    def run(self) -> None:
        toolchain.check_platform()
        library = self._prebuilt() if self.prebuilt_core else self._built()
        for destination in self._destinations():
            copy_atomically(library, destination)

    def get_source_files(self) -> list[str]:
        return [str(path) for path in _sources()]

    def get_outputs(self) -> list[str]:
        return [str(self._in_wheel())]

    def get_output_mapping(self) -> dict[str, str]:
        return {str(self._in_wheel()): str(self._in_tree())} if self.editable_mode else {}

    def _destinations(self) -> list[Path]:
        return [self._in_wheel(), self._in_tree()] if self.editable_mode else [self._in_wheel()]

    def _in_wheel(self) -> Path:
        return Path(self.build_lib, "velocpy", LIBRARY)

    def _in_tree(self) -> Path:
        return Path(self.get_finalized_command("build_py").get_package_dir("velocpy"), LIBRARY)

    def _prebuilt(self) -> Path:
        path = Path(self.prebuilt_core)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise FileError(f"the prebuilt core {str(path)!r} cannot be read: {error.strerror}.") from None
        if not content.startswith(b"\x7fELF") or b"veloc_abi_version" not in content:
            raise FileError(f"the prebuilt core {str(path)!r} is not a core of velocpy: it has no veloc_abi_version.")
        return path

    def _built(self) -> Path:
        go = toolchain.find_go()
        toolchain.check_c_compiler()
        version = self.distribution.get_version()
        revision = _revision()
        directory = Path(self.build_base, "core")
        library, stamp = directory / LIBRARY, directory / "fingerprint"
        fingerprint = _fingerprint(go, version, revision)
        if not self.force and library.exists() and stamp.exists() and stamp.read_text() == fingerprint:
            return library
        directory.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix="velocpy-core-") as scratch:
            made = Path(scratch, LIBRARY)
            self._compile(go, made, version, revision)
            copy_atomically(made, library)
        stamp.write_text(fingerprint)
        return library

    def _compile(self, go: str, library: Path, version: str, revision: str) -> None:
        # The linker's options are split at blanks and commas on their way: its script goes where the name has neither.
        exports = shutil.copy(EXPORTS, library.with_name("exports.map"))
        linker_flags = _linker_flags(exports, version, revision)
        command = [go, "build", *_build_flags(), "-ldflags", linker_flags, "-o", str(library), PACKAGE]
        self.announce("building the Go core: " + " ".join(command), level=2)
        try:
            subprocess.run(command, env=toolchain.go_environment(), check=True, stdout=sys.stderr)
        except subprocess.CalledProcessError as error:
            raise CompileError(
                f"`go build` of the core failed (exit status {error.returncode}); its messages stand above."
            ) from None


def _build_flags() -> list[str]:
    # The revision is stamped by us: go's own stamping fails in a checkout that belongs to another user.
    flags = ["-buildmode=c-shared", "-trimpath", "-buildvcs=false"]
    return flags if Path("vendor").is_dir() else [*flags, "-mod=readonly"]


def _linker_flags(exports: str, version: str, revision: str) -> str:
    # -z lazy comes last and wins over the -z now of hardened toolchains: symbols of absent drivers may stay unbound.
    options = ["-z,noexecstack", f"-soname,{LIBRARY}", f"--version-script={exports}", "-z,lazy"]
    external = " ".join(f"-Wl,{option}" for option in options)
    return f"-s -w -X main.version={version} -X main.revision={revision} -extldflags '{external}'"


def _sources() -> Iterator[Path]:
    """What the library is made of; tests and their data are not."""
    for root in SOURCES:
        path = Path(root)
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (f for f in files if f.suffix in SUFFIXES and f.is_file() and not f.name.endswith("_test.go"))


def _fingerprint(go: str, version: str, revision: str) -> str:
    """A digest of everything that the library depends on."""
    digest = hashlib.sha256()
    question = [go, "env", *GO_SETTINGS]
    settings = subprocess.run(question, env=toolchain.go_environment(), capture_output=True, check=True).stdout
    for part in (settings, repr(_build_flags()).encode(), _linker_flags("", version, revision).encode()):
        digest.update(hashlib.sha256(part).digest())
    for path in _sources():
        digest.update(hashlib.sha256(str(path).encode()).digest())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _revision() -> str:
    """The commit that last changed the core's sources, with a plus when they differ; unknown outside of a checkout."""
    if not Path(".git").exists() or shutil.which("git") is None:
        return "unknown"
    commit = _git("log", "-1", "--format=%H", "--", *SOURCES)
    changed = _git("status", "--porcelain", "--", *SOURCES)
    if not commit or changed is None:
        return "unknown"
    return commit + "+" if changed else commit


def _git(*arguments: str) -> str | None:
    answer = subprocess.run(["git", "--no-optional-locks", *arguments], capture_output=True, text=True, check=False)
    return answer.stdout.strip() if answer.returncode == 0 else None


def copy_atomically(source: Path, destination: Path) -> None:
    """Replaces the file as a whole: a process that has the old one mapped keeps it."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".velocpy-", dir=destination.parent) as scratch:
        copy = Path(shutil.copyfile(source, Path(scratch, destination.name)))
        copy.chmod(0o755)
        copy.replace(destination)
