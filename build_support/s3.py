"""The command build_s3: the program velocpy-s3 inside the package, which talks to object stores."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from . import toolchain
from .artifact import BuildArtifact
from .switches import wants_s3

PROGRAM = "velocpy-s3"
MODULE = Path("s3")
#: What the program shares with the core.
SOURCES = (MODULE, Path("gocore", "base", "wire"))
GO_SETTINGS = ("GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOFLAGS", "GOEXPERIMENT")
SUFFIXES = {".go", ".mod", ".sum"}


class BuildS3(BuildArtifact):
    """Builds the program, or copies a prebuilt one. It is linked statically and needs nothing of the system.

    With a prebuilt core, the program lies beside it, or the package has none.
    """

    description = "build the program that talks to object stores (needs Go)"
    user_options = [
        *BuildArtifact.user_options,
        ("prebuilt-s3=", None, "use this program instead of building one (default: VELOCPY_PREBUILT_S3)"),
    ]
    filename, kept, noun, prebuilt = PROGRAM, "s3", "program for object stores", "prebuilt_s3"
    missing = False

    def finalize_options(self) -> None:
        super().finalize_options()
        core = os.environ.get("VELOCPY_PREBUILT_CORE")
        if core and not self.prebuilt_s3:
            self.prebuilt_s3 = str(Path(core).with_name(PROGRAM))
            self.missing = not Path(self.prebuilt_s3).exists()

    def run(self) -> None:
        if self._is_wanted():
            super().run()
        else:
            self.announce(f"velocpy: without {PROGRAM}, archives in buckets cannot be reached", level=logging.INFO)

    def _is_wanted(self) -> bool:
        return wants_s3() and not self.missing

    def sources(self) -> Iterator[Path]:
        """Tests do not count."""
        yield from (Path("go.mod"), Path("go.sum"))
        for root in SOURCES:
            files = sorted(root.rglob("*"))
            yield from (f for f in files if f.suffix in SUFFIXES and f.is_file() and not f.name.endswith("_test.go"))

    def flaw(self, content: bytes) -> str | None:
        return None if content.startswith(b"\x7fELF") else "is no program"

    def get_outputs(self) -> list[str]:
        return super().get_outputs() if self._is_wanted() else []

    def get_output_mapping(self) -> dict[str, str]:
        return super().get_output_mapping() if self._is_wanted() else {}

    def built(self) -> Path:
        go, environment = toolchain.find_go(), toolchain.go_environment() | {"CGO_ENABLED": "0"}
        settings = subprocess.run([go, "env", *GO_SETTINGS], env=environment, capture_output=True, check=True).stdout
        return self.keep((settings,), lambda program: self._compile(go, program, environment))

    def _compile(self, go: str, program: Path, environment: dict[str, str]) -> None:
        flags = ["-C", str(MODULE), "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", "-s -w"]
        command = [go, "build", *flags, "-o", str(program.absolute()), "."]
        self.call(command, "the program for object stores", "`go build` of velocpy-s3 failed", environment)
