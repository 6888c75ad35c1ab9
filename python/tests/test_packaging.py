"""The sdist, the wheel, the editable install, and what the build says when a compiler is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import velocpy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CORE = Path(velocpy.__file__).with_name("libvelocpy_core.so")
KERNELS = Path(velocpy.__file__).with_name("velocpy_kernels.fatbin")
CODEC, DEDUP = (KERNELS.with_name(f"velocpy_{part}.fatbin") for part in ("codec", "dedup"))

#: Counts the commits. The check of one in three plays what compiles everything once more.
TURN = int(os.environ.get("VELOCPY_TURN", "0"))

SOURCES = [
    *("gocore/**/*.go", "cshim/*.cpp", "cshim/*.h", "python/velocpy/**/*.py", "python/tests/**/*.py"),
    *("benchmarks/**/*.py", "benchmarks/data/*"),
    *("cuda/*.cu", "cuda/*.cuh", "cuda/*.h", "cuda/emulated/*.h", "cuda/emulated/*.cpp"),
]

# Writes and reads a history that does not fit its memory, from nothing but the installed package.
WORK = """
import tempfile
from pathlib import Path
import numpy as np
import velocpy

rng = np.random.default_rng(7)
states = [rng.integers(0, 256, 300_000 + 17 * i, dtype=np.uint8) for i in range(24)]
with tempfile.TemporaryDirectory() as folder:
    with velocpy.open(path=folder, host="2MiB", disk="64MiB") as store:
        history = store.history("forward")
        for i, state in enumerate(states):
            history.checkpoint(i, u=state)
        for i in reversed(range(len(states))):
            with history.restore(i) as lease:
                assert np.array_equal(lease["u"], states[i]), i
print("works", Path(velocpy.__file__).parent)
"""


def run(
    *command: object, env: Mapping[str, str] | None = None, cwd: Path, ok: bool = True
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(part) for part in command],
        env=dict(env) if env is not None else None,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    if ok:
        assert done.returncode == 0, done.stdout
    return done


def without_path(**changes: str) -> dict[str, str]:
    """This environment without anything that names a compiler."""
    hidden = ("PATH", "CC", "CXX", "GOROOT", "VELOCPY_PREBUILT_CORE", "VELOCPY_PREBUILT_KERNELS")
    return {**{k: v for k, v in os.environ.items() if k not in hidden}, "PATH": "", **changes}


def folder_of(path: Path, *commands: str) -> str:
    """A folder for PATH that holds these commands of the machine and no others."""
    path.mkdir()
    for command in commands:
        found = shutil.which(command)
        assert found, command
        (path / command).symlink_to(found)
    return str(path)


def setup(
    tree: Path, *arguments: object, env: Mapping[str, str] | None = None, ok: bool = True
) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "setup.py", "--quiet", *arguments, env=env, cwd=tree, ok=ok)


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a failed build ends with."""
    assert done.returncode != 0
    assert "Traceback" not in done.stdout
    lines = done.stdout.strip().splitlines()
    assert lines[-1].startswith("error: "), done.stdout
    return lines[-1]


@pytest.fixture(scope="session")
def dist(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that pip's isolated build makes from it.

    The check of one commit in three compiles the kernels there, which takes minutes; others take those of this package.
    """
    out = tmp_path_factory.mktemp("dist")
    kernels = {"VELOCPY_PREBUILT_KERNELS": str(KERNELS)} if TURN % 3 else {}
    run(sys.executable, "-m", "build", "--outdir", out, cwd=root, env={**os.environ, **kernels})
    return out


@pytest.fixture(scope="session")
def sdist(dist: Path) -> Path:
    return next(dist.glob("*.tar.gz"))


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    return next(dist.glob("*.whl"))


@pytest.fixture
def tree(sdist: Path, tmp_path: Path) -> Path:
    """The unpacked sdist, in a folder whose name tries the quoting of every step on the way to the linker."""
    place = tmp_path / "a folder, with blanks"
    place.mkdir()
    run("tar", "xzf", sdist, cwd=place)
    return next(place.iterdir())


def test_sdist_holds_the_sources_and_nothing_built(sdist: Path, root: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"go.mod", "go.sum", "setup.py", "Makefile", "README.md", "LICENSE", ".ci/run", "gocore/cabi/exports.map"}
    for pattern in SOURCES:
        found = {str(path.relative_to(root)) for path in root.glob(pattern)}
        assert found, pattern
        wanted |= found
    assert wanted <= names
    assert not [name for name in names if name.endswith((".so", ".o", ".pyc", ".fatbin"))]
    assert not [name for name in names if name.startswith("benchmarks/results/")]


def test_one_go_library_in_wheel_and_one_program(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    libraries = [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    from_go = [path for path in libraries if has_section(path, ".go.buildinfo")]
    assert sorted(path.name for path in from_go) == ["libvelocpy_core.so", "velocpy-s3"]
    assert len(libraries) == 3
    with zipfile.ZipFile(wheel) as archive:
        assert archive.getinfo("velocpy/velocpy-s3").external_attr >> 16 & 0o111 == 0o111, "it can be started"


def has_section(path: Path, name: str) -> bool:
    with path.open("rb") as file:
        return ELFFile(file).get_section_by_name(name) is not None


def test_wheel_holds_the_package_alone(wheel: Path, root: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    modules = {str(path.relative_to(root / "python")) for path in (root / "python" / "velocpy").rglob("*.py")}
    assert modules <= names
    assert {"velocpy/py.typed", "velocpy/_core.pyi", "velocpy/libvelocpy_core.so"} <= names
    fatbins = {f"velocpy/velocpy_{part}.fatbin" for part in ("kernels", "codec", "dedup")}
    assert fatbins <= names
    assert all(name.startswith("velocpy/") for name in names)
    assert {name for name in names if name.startswith("velocpy/") and not name.endswith((".py", ".so"))} == {
        *("velocpy/py.typed", "velocpy/_core.pyi", "velocpy/velocpy-s3"),
        *fatbins,
    }, "no data of the benchmarks, nor anything else"
    assert f"-cp{sys.version_info.major}{sys.version_info.minor}-" in wheel.name


def test_wheel_says_its_licence_and_those_of_what_it_contains(wheel: Path, root: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (folder,) = {name.partition("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = archive.read(f"{folder}/METADATA").decode()
        for name in ("LICENSE", "THIRD-PARTY-NOTICES"):
            assert archive.read(f"{folder}/licenses/{name}") == (root / name).read_bytes()
    assert "License-Expression: Apache-2.0" in metadata
    written = run(sys.executable, "-m", "build_support.notices", cwd=root).stdout
    assert written == (root / "THIRD-PARTY-NOTICES").read_text(), "make generate writes it anew"


def test_wheel_works_without_go_and_compiler(wheel: Path, tmp_path: Path) -> None:
    environment = without_path(HOME=str(tmp_path))
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--only-binary=:all:", wheel, env=environment, cwd=tmp_path)
    for command in ("go", "gcc", "g++", "cc"):
        assert shutil.which(command, path=environment["PATH"]) is None
    done = run(python, "-c", WORK, env=environment, cwd=tmp_path)
    assert done.stdout.strip().endswith("site-packages/velocpy")
    assert f"works {tmp_path}" in done.stdout
    done = run(tmp_path / "venv" / "bin" / "velocpy", "--version", env=environment, cwd=tmp_path)
    assert velocpy.__version__ in done.stdout


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension's objects from the first editable install: a build keeps what was made of the same sources."""
    return tmp_path_factory.mktemp("objects") / "shim"


@pytest.mark.skipif(TURN % 3 != 0, reason="the check of another commit has it")
@pytest.mark.parametrize("mode", ["lenient", "strict"])
def test_editable_install(tree: Path, tmp_path: Path, objects: Path, mode: str) -> None:
    kept = tree / "build" / "shim"
    if objects.exists():
        shutil.copytree(objects, kept)
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    settings = ["--config-settings", "editable_mode=strict"] if mode == "strict" else []
    environment = {**os.environ, "VELOCPY_PREBUILT_KERNELS": str(KERNELS)}
    run(python, "-m", "pip", "install", "--quiet", *settings, "--editable", tree, env=environment, cwd=tmp_path)
    shutil.copytree(kept, objects, dirs_exist_ok=True)
    run(python, "-c", WORK, cwd=tmp_path)
    find = "import importlib.resources as r; print((r.files('velocpy') / 'velocpy_kernels.fatbin').read_bytes()[:4])"
    assert run(python, "-c", find, cwd=tmp_path).stdout.strip() == str(KERNELS.read_bytes()[:4])
    # An edit is seen without another install.
    (tree / "python" / "velocpy" / "_version.py").write_text('__version__ = "0.0.1+edited"\n')
    done = run(python, "-c", "from velocpy._version import __version__; print(__version__)", cwd=tmp_path)
    assert done.stdout.strip() == "0.0.1+edited"


def test_core_is_built_again_only_when_its_sources_changed(tree: Path) -> None:
    made = tree / "build" / "core" / "libvelocpy_core.so"
    setup(tree, "build_go", "--build-lib", "first")
    before = made.stat().st_mtime_ns
    setup(tree, "build_go", "--build-lib", "second")
    assert made.stat().st_mtime_ns == before
    assert (tree / "second" / "velocpy" / "libvelocpy_core.so").read_bytes() == made.read_bytes()
    with (tree / "gocore" / "cabi" / "main.go").open("a") as source:
        source.write("\n// Changed.\n")
    setup(tree, "build_go", "--build-lib", "third")
    assert made.stat().st_mtime_ns > before


def test_builds_say_what_they_do_and_how_long_it_took(tree: Path) -> None:
    done = run(sys.executable, "setup.py", "build_go", "--build-lib", "out", cwd=tree)
    assert "velocpy: building the Go core, which takes a minute or so" in done.stdout
    assert re.search(r"velocpy: the Go core took \d+ s", done.stdout)
    done = run(sys.executable, "setup.py", "build_go", "--build-lib", "out", cwd=tree)
    assert "libvelocpy_core.so is of these sources already" in done.stdout
    done = run(
        sys.executable, "setup.py", "build_cuda", "--build-lib", "out", cwd=tree, env=without_path(VELOCPY_CUDA="0")
    )
    assert "VELOCPY_CUDA=0: the package gets no GPU kernels" in done.stdout


def test_kernels_are_built_again_only_when_their_sources_changed(tree: Path) -> None:
    folders = {"cuda": KERNELS, "codec": CODEC, "dedup": DEDUP}
    built = {fatbin.name: tree / "build" / folder / fatbin.name for folder, fatbin in folders.items()}
    # Those beside the kernels take more than a minute to compile, which shows nothing here.
    short = '#include "parameters.h"\nextern "C" __global__ void nothing() {}\n'
    for name in ("codec", "dedup"):
        (tree / "cuda" / f"velocpy_{name}.cu").write_text(short)
    setup(tree, "build_cuda", "--build-lib", "first")
    before = [path.stat().st_mtime_ns for path in built.values()]
    setup(tree, "build_cuda", "--build-lib", "second")
    assert [path.stat().st_mtime_ns for path in built.values()] == before
    for name, path in built.items():
        assert (tree / "second" / "velocpy" / name).read_bytes() == path.read_bytes()
    with (tree / "cuda" / "parameters.h").open("a") as source:
        source.write("\n#error Changed.\n")
    assert "`nvcc` failed on the kernels" in sentence(setup(tree, "build_cuda", "--build-lib", "third", ok=False))


def test_prebuilt_kernels_env(tree: Path) -> None:
    environment = without_path(VELOCPY_PREBUILT_KERNELS=str(KERNELS))
    setup(tree, "build_cuda", "--build-lib", "out", env=environment)
    for fatbin in (KERNELS, CODEC, DEDUP):
        assert (tree / "out" / "velocpy" / fatbin.name).read_bytes() == fatbin.read_bytes()


def test_prebuilt_kernels_without_the_others(tree: Path, tmp_path: Path) -> None:
    setup(tree, "build_cuda", "--build-lib", "out", env=without_path(VELOCPY_PREBUILT_KERNELS=str(KERNELS)))
    alone = shutil.copy(KERNELS, tmp_path)
    environment = without_path(VELOCPY_PREBUILT_KERNELS=str(alone))
    done = run(sys.executable, "setup.py", "build_cuda", "--build-lib", "out", cwd=tree, env=environment)
    assert "GPUs will not encode" in done.stdout
    assert "GPUs will not de-duplicate" in done.stdout
    assert [path.name for path in (tree / "out" / "velocpy").iterdir()] == [KERNELS.name], "not of the earlier build"


def test_prebuilt_kernels_that_are_none(tree: Path, tmp_path: Path) -> None:
    done = setup(tree, "build_cuda", env=without_path(VELOCPY_PREBUILT_KERNELS="/nowhere/a.fatbin"), ok=False)
    assert "'/nowhere/a.fatbin' cannot be read: No such file or directory" in sentence(done)
    done = setup(tree, "build_cuda", env=without_path(VELOCPY_PREBUILT_KERNELS=str(CORE)), ok=False)
    assert "are not a fatbin" in sentence(done)
    shutil.copy(KERNELS, tmp_path)
    (tmp_path / CODEC.name).write_bytes(b"no kernels")
    named = str(tmp_path / KERNELS.name)
    done = setup(tree, "build_cuda", env=without_path(VELOCPY_PREBUILT_KERNELS=named), ok=False)
    assert f"kernels of the codec '{tmp_path / CODEC.name}' are not a fatbin" in sentence(done)


def test_missing_nvcc_message(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "shadow" / "nvidia").mkdir(parents=True)
    (tmp_path / "shadow" / "nvidia" / "__init__.py").touch()
    text = sentence(setup(tree, "build_cuda", env=without_path(PYTHONPATH=str(tmp_path / "shadow")), ok=False))
    assert "need NVIDIA's CUDA compiler" in text
    assert "pip install nvidia-cuda-nvcc" in text
    assert "VELOCPY_PREBUILT_KERNELS" in text


def test_build_without_kernels_leaves_none_of_an_earlier_one(tree: Path) -> None:
    package = tree / "out" / "velocpy"
    setup(tree, "build_cuda", "--build-lib", "out", env=without_path(VELOCPY_PREBUILT_KERNELS=str(KERNELS)))
    assert {path.name for path in package.iterdir()} == {KERNELS.name, CODEC.name, DEDUP.name}
    setup(tree, "build_cuda", "--build-lib", "out", env=without_path(VELOCPY_CUDA="0"))
    assert not list(package.iterdir())


def test_lazy_binding_survives_a_hardened_toolchain(tree: Path) -> None:
    setup(tree, "build_go", "--build-lib", "out", env={**os.environ, "CGO_LDFLAGS": "-Wl,-z,now"})
    with (tree / "out" / "velocpy" / "libvelocpy_core.so").open("rb") as file:
        dynamic = ELFFile(file).get_section_by_name(".dynamic")
        assert not [tag for tag in dynamic.iter_tags("DT_FLAGS") if tag.entry.d_val & 0x8]
        assert not [tag for tag in dynamic.iter_tags("DT_FLAGS_1") if tag.entry.d_val & 0x1]


def test_prebuilt_core_env(tree: Path) -> None:
    setup(tree, "build_go", "--build-lib", "out", env=without_path(VELOCPY_PREBUILT_CORE=str(CORE)))
    assert (tree / "out" / "velocpy" / "libvelocpy_core.so").read_bytes() == CORE.read_bytes()


def test_prebuilt_core_option(tree: Path) -> None:
    setup(tree, "build_go", "--build-lib", "out", "--prebuilt-core", CORE, env=without_path())
    assert (tree / "out" / "velocpy" / "libvelocpy_core.so").read_bytes() == CORE.read_bytes()


def test_prebuilt_core_that_is_none(tree: Path) -> None:
    done = setup(tree, "build_go", env=without_path(VELOCPY_PREBUILT_CORE="/nowhere/core.so"), ok=False)
    assert "'/nowhere/core.so' cannot be read: No such file or directory" in sentence(done)
    done = setup(tree, "build_go", env=without_path(VELOCPY_PREBUILT_CORE=sys.executable), ok=False)
    assert "is not a core of velocpy" in sentence(done)


def test_missing_go_message(tree: Path) -> None:
    text = sentence(setup(tree, "build_go", env=without_path(), ok=False))
    assert "no `go` is on PATH" in text
    assert "needs Go 1.25 or later" in text
    assert "https://go.dev/dl/" in text
    assert "VELOCPY_PREBUILT_CORE" in text


def test_missing_go_message_through_pip(tree: Path) -> None:
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", tree / "out"]
    done = run(sys.executable, "-m", "pip", "wheel", *options, tree, env=without_path(), cwd=tree, ok=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stdout
    assert done.stdout.count("needs Go 1.25 or later") == 1


def test_old_go_message(tree: Path, tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "go").write_text("#!/bin/sh\necho go version go1.21.4 linux/amd64\n")
    (folder / "go").chmod(0o755)
    text = sentence(setup(tree, "build_go", env=without_path(PATH=str(folder)), ok=False))
    assert "is Go 1.21" in text
    assert "needs Go 1.25 or later" in text


def test_missing_c_compiler_message(tree: Path, tmp_path: Path) -> None:
    path = folder_of(tmp_path / "bin", "go")
    text = sentence(setup(tree, "build_go", env=without_path(PATH=path), ok=False))
    assert "a C compiler" in text
    assert "apt-get install g++" in text


def test_missing_cxx_compiler_message(tree: Path, tmp_path: Path) -> None:
    path = folder_of(tmp_path / "bin", "gcc")
    text = sentence(setup(tree, "build_ext", env=without_path(PATH=path), ok=False))
    assert "C++17 compiler" in text
    assert "apt-get install g++" in text
