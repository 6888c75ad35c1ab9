"""The command build_go: the Go core as libvelocpy_core.so inside the package."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from . import toolchain
from .artifact import BuildArtifact

LIBRARY = "libvelocpy_core.so"
PACKAGE = "./gocore/cabi"
EXPORTS = Path("gocore", "cabi", "exports.map")
#: Where the core spends its time, for the compiler: it inlines what is called most. `make profile` takes it anew.
PROFILE = Path("gocore", "cabi", "core.pgo")
SOURCES = ("go.mod", "go.sum", "gocore", "cshim/velocpy_abi.h")
GO_SETTINGS = (
    *("GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOFLAGS", "GOEXPERIMENT"),
    *("CC", "CGO_CFLAGS", "CGO_LDFLAGS"),
)
SUFFIXES = {".go", ".mod", ".sum", ".h", ".c", ".s", ".map", ".pgo"}


class BuildGo(BuildArtifact):
    """Builds the core, or copies a prebuilt one.

    The library is made again only when its sources, the version, the compiler or the flags changed. It needs nothing
    but libc and exports nothing but the functions of the ABI.
    """

    description = "build the Go core (needs Go and a C compiler)"
    user_options = [
        *BuildArtifact.user_options,
        ("prebuilt-core=", None, "use this library instead of building one (default: VELOCPY_PREBUILT_CORE)"),
    ]
    filename, kept, noun, prebuilt = LIBRARY, "core", "core", "prebuilt_core"

    def run(self) -> None:
        toolchain.check_platform()
        super().run()

    def sources(self) -> Iterator[Path]:
        """Tests and their data do not count."""
        for root in SOURCES:
            path = Path(root)
            files = sorted(path.rglob("*")) if path.is_dir() else [path]
            yield from (f for f in files if f.suffix in SUFFIXES and f.is_file() and not f.name.endswith("_test.go"))

    def flaw(self, content: bytes) -> str | None:
        if content.startswith(b"\x7fELF") and b"veloc_abi_version" in content:
            return None
        return "is not a core of velocpy: it has no veloc_abi_version"

    def built(self) -> Path:
        go = toolchain.find_go()
        toolchain.check_c_compiler()
        version = self.distribution.get_version()
        revision = _revision()
        settings = subprocess.run(
            [go, "env", *GO_SETTINGS], env=toolchain.go_environment(), capture_output=True, check=True
        ).stdout
        parts = (settings, repr(_build_flags()).encode(), _linker_flags("", version, revision).encode())
        return self.keep(parts, lambda library: self._compile(go, library, version, revision))

    def _compile(self, go: str, library: Path, version: str, revision: str) -> None:
        # The linker's options are split at blanks and commas on their way: its script goes where the name has neither.
        exports = shutil.copy(EXPORTS, library.with_name("exports.map"))
        linker_flags = _linker_flags(exports, version, revision)
        command = [go, "build", *_build_flags(), "-ldflags", linker_flags, "-o", str(library), PACKAGE]
        self.call(command, "the Go core", "`go build` of the core failed", toolchain.go_environment())


def _build_flags() -> list[str]:
    # The revision is stamped by us: go's own stamping fails in a checkout that belongs to another user.
    flags = ["-buildmode=c-shared", "-trimpath", "-buildvcs=false", f"-pgo={PROFILE}"]
    return flags if Path("vendor").is_dir() else [*flags, "-mod=readonly"]


def _linker_flags(exports: str, version: str, revision: str) -> str:
    # -z lazy comes last and wins over the -z now of hardened toolchains: symbols of absent drivers may stay unbound.
    options = ["-z,noexecstack", f"-soname,{LIBRARY}", f"--version-script={exports}", "-z,lazy"]
    external = " ".join(f"-Wl,{option}" for option in options)
    return f"-s -w -X main.version={version} -X main.revision={revision} -extldflags '{external}'"


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
