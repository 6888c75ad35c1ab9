"""What the commands have in common that make one file of the package each."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from setuptools import Command
from setuptools.errors import CompileError, FileError


class BuildArtifact(Command):
    """Makes a file of the package, or copies a prebuilt one.

    The file is kept in the folder `kept` of the build directory and made again only when what it depends on changed.
    An editable install has it in the source tree as well. A command says which file in `filename`, calls it `noun` in
    its messages, has an option `prebuilt`, which an environment variable of that name stands in for, and overrides
    sources, flaw and built.
    """

    filename: str
    kept: str
    noun: str
    prebuilt: str

    user_options = [
        ("build-lib=", "b", "directory to put the file in"),
        ("build-base=", None, "directory to keep the file in until what it depends on changes"),
        ("force", "f", "build even when nothing changed"),
    ]
    boolean_options = ["force"]

    def initialize_options(self) -> None:
        self.build_lib: str | None = None
        self.build_base: str | None = None
        self.force: bool | None = None
        self.editable_mode = False
        setattr(self, self.prebuilt, None)

    def finalize_options(self) -> None:
        self.set_undefined_options("build", *((name, name) for name in ("build_lib", "build_base", "force")))
        named = getattr(self, self.prebuilt) or os.environ.get("VELOCPY_" + self.prebuilt.upper())
        setattr(self, self.prebuilt, named)

    def run(self) -> None:
        named = getattr(self, self.prebuilt)
        artifact = self._checked(Path(named)) if named else self.built()
        for destination in self._destinations():
            copy_atomically(artifact, destination)

    def sources(self) -> Iterable[Path]:
        """The files that the artifact is made of."""
        raise NotImplementedError

    def flaw(self, content: bytes) -> str | None:
        """Why this content of a prebuilt file is not the artifact's; None if it may be."""
        raise NotImplementedError

    def built(self) -> Path:
        """The artifact in the build directory; see keep."""
        raise NotImplementedError

    def keep(self, parts: Iterable[bytes], make: Callable[[Path], None]) -> Path:
        """The file of the last build if these parts and the sources are what it was made of, otherwise a new one."""
        directory = Path(self.build_base, self.kept)
        artifact, stamp = directory / self.filename, directory / "fingerprint"
        fingerprint = self._fingerprint(parts)
        if not self.force and artifact.exists() and stamp.exists() and stamp.read_text() == fingerprint:
            self.announce(f"velocpy: {artifact} is of these sources already", level=logging.INFO)
            return artifact
        directory.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"velocpy-{self.kept}-") as scratch:
            made = Path(scratch, self.filename)
            make(made)
            copy_atomically(made, artifact)
        stamp.write_text(fingerprint)
        return artifact

    def call(self, command: list[str], what: str, failure: str, env: Mapping[str, str] | None = None) -> None:
        """Runs a compiler, which says on stderr what it has to say."""
        self.announce(f"velocpy: building {what}, which takes a minute or so: " + " ".join(command), level=logging.INFO)
        begin = time.monotonic()
        try:
            subprocess.run(command, env=env, check=True, stdout=sys.stderr)
        except subprocess.CalledProcessError as error:
            raise CompileError(f"{failure} (exit status {error.returncode}); its messages stand above.") from None
        self.announce(f"velocpy: {what} took {time.monotonic() - begin:.0f} s", level=logging.INFO)

    def get_source_files(self) -> list[str]:
        return [str(path) for path in self.sources()]

    def get_outputs(self) -> list[str]:
        return [str(self._in_wheel())]

    def get_output_mapping(self) -> dict[str, str]:
        return {str(self._in_wheel()): str(self._in_tree())} if self.editable_mode else {}

    def _destinations(self) -> list[Path]:
        return [self._in_wheel(), self._in_tree()] if self.editable_mode else [self._in_wheel()]

    def _in_wheel(self) -> Path:
        return Path(self.build_lib, "velocpy", self.filename)

    def _in_tree(self) -> Path:
        return Path(self.get_finalized_command("build_py").get_package_dir("velocpy"), self.filename)

    def _checked(self, path: Path) -> Path:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise FileError(f"the prebuilt {self.noun} {str(path)!r} cannot be read: {error.strerror}.") from None
        if flaw := self.flaw(content):
            raise FileError(f"the prebuilt {self.noun} {str(path)!r} {flaw}.")
        return path

    def _fingerprint(self, parts: Iterable[bytes]) -> str:
        digest = hashlib.sha256()
        for part in parts:
            digest.update(hashlib.sha256(part).digest())
        for path in self.sources():
            digest.update(hashlib.sha256(str(path).encode()).digest())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()


def copy_atomically(source: Path, destination: Path) -> None:
    """Replaces the file as a whole: a process that has the old one mapped keeps it."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".velocpy-", dir=destination.parent) as scratch:
        copy = Path(shutil.copyfile(source, Path(scratch, destination.name)))
        copy.chmod(0o755)
        copy.replace(destination)
