"""The parts of the wheels' build that need no compiler: Zig's arguments, the Pythons that are asked for, the checks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import velocpy

GOOD = {
    "version": [3, 12],
    "implementation": "cpython",
    "free_threaded": False,
    "header": "/usr/include/python3.12/Python.h",
    "has_header": True,
    "has_venv": True,
}


@pytest.fixture
def zig(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(root))
    from build_support import zig

    return zig


@pytest.fixture
def wheels(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(root))
    pytest.importorskip("setuptools")
    from build_support import wheels

    return wheels


def test_zig_is_spared_what_its_linker_does_not_know(zig: ModuleType) -> None:
    given = ["-shared", "-Wl,-z,lazy", "-Wl,--unresolved-symbols=ignore-in-object-files", "a.o", "-o", "a.so"]
    given.insert(1, "-Wl,-Bsymbolic-functions")
    assert zig.arguments(given) == ["-shared", "-Wl,-z,lazy", "a.o", "-o", "a.so", "-s"]


@pytest.mark.parametrize("option", ["-c", "-E", "-S"])
def test_zig_strips_links_and_nothing_else(zig: ModuleType, option: str) -> None:
    assert zig.arguments(["-g", "-O2", option, "a.c"]) == ["-O2", option, "a.c"]
    assert zig.arguments(["-g", "-O2", "a.o"]) == ["-O2", "a.o", "-s"]
    assert zig.arguments(["--version"]) == ["--version"]


def test_compilers_are_commands_for_the_glibc_of_the_tag(zig: ModuleType, tmp_path: Path) -> None:
    cc, cxx = zig.write_compilers(tmp_path / "bin", "aarch64")
    for command, language in ((cc, "cc"), (cxx, "c++")):
        assert os.access(command, os.X_OK)
        text = command.read_text()
        assert f" {language} aarch64-linux-gnu.{zig.GLIBC} " in text
    floor = tuple(map(int, zig.GLIBC.split(".")))
    assert floor <= (2, 28)
    assert zig.platform_tag("aarch64") == f"manylinux_{floor[0]}_{floor[1]}_aarch64"


def test_a_python_that_can_be_built_for_has_no_flaw(wheels: ModuleType) -> None:
    assert wheels.flaw_of("python3.12", GOOD) is None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (None, "there is no such command"),
        ({"implementation": "pypy"}, "another Python"),
        ({"free_threaded": True}, "another Python"),
        ({"version": [3, 9]}, "Python 3.9"),
        ({"has_header": False}, "python3.12-dev"),
        ({"has_venv": False}, "python3.12-venv"),
    ],
)
def test_a_python_that_cannot_be_built_for_is_said(wheels: ModuleType, change: dict | None, text: str) -> None:
    answer = None if change is None else {**GOOD, **change}
    assert text in wheels.flaw_of("python3.12", answer)


def test_every_missing_python_is_named_at_once(wheels: ModuleType) -> None:
    with pytest.raises(wheels.WheelError, match="no wheel was built") as caught:
        wheels.find_interpreters(["/nowhere/python3.10", sys.executable, "/nowhere/python3.13"])
    assert "/nowhere/python3.10" in str(caught.value)
    assert "/nowhere/python3.13" in str(caught.value)
    assert sys.executable not in str(caught.value)


def test_pythons_that_nobody_named_may_be_missing(
    wheels: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {"python3.12": {**GOOD, "multiarch": None}}
    monkeypatch.setattr(wheels, "_ask", lambda command: answers.get(command))
    found = wheels.find_interpreters(["python3.10", "python3.12", "python3.13"], those_there=True)
    assert [interpreter.command for interpreter in found.interpreters] == ["python3.12"]
    wheels.say_left_out(found)
    said = capsys.readouterr().out
    assert "left out" in said
    assert "python3.10: there is no such command" in said
    assert "python3.13: there is no such command" in said
    with pytest.raises(wheels.WheelError, match="no Python can be used"):
        wheels.find_interpreters(["python3.10", "python3.13"], those_there=True)


@pytest.mark.parametrize(("named", "expected"), [((), True), (("PYTHONS=python3.11",), False)])
@pytest.mark.parametrize("target", ["wheels", "try-wheels"])
def test_make_tells_whether_pythons_were_named(root: Path, target: str, named: tuple[str, ...], expected: bool) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make on this machine")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONS"}
    done = subprocess.run(
        [make, "-n", target, *named], cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    (command,) = (line for line in done.stdout.splitlines() if "-m build_support." in line)
    assert ("--those-there" in command) == expected
    assert "python3.11" in command


def test_the_command_ends_with_an_error_and_builds_nothing(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    command = [sys.executable, "-m", "build_support.wheels", "--out", str(tmp_path / "dist"), "/nowhere/python3.13"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "/nowhere/python3.13: there is no such command" in done.stderr
    assert not (tmp_path / "dist").exists()


def test_headers_that_debian_splits_are_found(wheels: ModuleType, tmp_path: Path) -> None:
    include = tmp_path / "usr" / "include"
    answer = {"header": str(include / "python3.12" / "Python.h"), "multiarch": "x86_64-linux-gnu"}
    assert wheels.multiarch_of(answer) is None
    split = include / "x86_64-linux-gnu" / "python3.12"
    split.mkdir(parents=True)
    (split / "pyconfig.h").write_text("#define SIZEOF_LONG 8\n")
    assert wheels.multiarch_of(answer) == split
    for _ in range(2):  # a second build finds the link of the first
        option = wheels.link_headers(split, tmp_path / "build", "aarch64")
    assert option == f"-idirafter {tmp_path / 'build'}"
    assert (tmp_path / "build" / "aarch64-linux-gnu" / "python3.12" / "pyconfig.h").exists()


def test_the_program_for_object_stores_is_made_once_for_all_wheels(
    wheels: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The step that makes it must not see the core that was made before, beside which there is none yet."""
    from setuptools import Distribution

    from build_support.s3 import BuildS3

    made = {}

    def step(python: str, arguments: list[object], environment: dict[str, str]) -> None:
        for name in ("CORE", "S3", "KERNELS"):
            monkeypatch.delenv(f"VELOCPY_PREBUILT_{name}", raising=False)
        with monkeypatch.context() as changed:
            for name, value in environment.items():
                changed.setenv(name, value)
            command = BuildS3(Distribution())
            command.build_lib, command.build_base = str(arguments[4]), str(arguments[2])
            command.finalize_options()
            made[arguments[0]] = (command.get_outputs(), command.prebuilt_s3)

    monkeypatch.setattr(wheels, "BUILD", tmp_path)
    monkeypatch.setattr(wheels, "_setup", step)
    assert wheels.make_wheels([], "x86_64", tmp_path) == []
    assert made["build_s3"] == ([str(tmp_path / "x86_64" / "shared" / "velocpy" / "velocpy-s3")], None)


def test_extensions_are_named_after_python_and_architecture(wheels: ModuleType) -> None:
    interpreter = wheels.Interpreter("python3.13", (3, 13))
    assert interpreter.tag == "cp313"
    assert wheels.suffix_for(interpreter, "aarch64") == ".cpython-313-aarch64-linux-gnu.so"


def packed(folder: Path, *without: str, library: Path) -> Path:
    """A wheel of the right shape, without the files whose names end so."""
    wheel = folder / "velocpy-1.0-cp312-cp312-manylinux_2_24_x86_64.whl"
    contents = {
        "velocpy/libvelocpy_core.so": library.read_bytes(),
        "velocpy/velocpy_kernels.fatbin": b"",
        "velocpy/velocpy_codec.fatbin": b"",
        "velocpy/velocpy_dedup.fatbin": b"",
        "velocpy/velocpy-s3": b"",
        "velocpy-1.0.dist-info/licenses/LICENSE": b"",
        "velocpy-1.0.dist-info/licenses/THIRD-PARTY-NOTICES": b"",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in contents.items():
            if not name.endswith(without or ("/",)):
                archive.writestr(name, content)
    return wheel


REPORT = 'x is consistent with the\nfollowing platform\ntag: "manylinux_2_24_x86_64".'


@pytest.fixture(scope="session")
def stripped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("stripped") / "core.so"
    core = Path(velocpy.__file__).with_name("libvelocpy_core.so")
    subprocess.run(["strip", "-o", library, core], check=True)
    return library


def test_a_wheel_as_it_has_to_be_has_no_flaws(wheels: ModuleType, tmp_path: Path, stripped: Path) -> None:
    assert wheels.flaws(packed(tmp_path, library=stripped), REPORT) == []


@pytest.mark.parametrize(
    "name",
    [
        *("LICENSE", "THIRD-PARTY-NOTICES", "libvelocpy_core.so", "velocpy-s3"),
        *("velocpy_kernels.fatbin", "velocpy_codec.fatbin", "velocpy_dedup.fatbin"),
    ],
)
def test_what_a_wheel_lacks_is_found(wheels: ModuleType, tmp_path: Path, stripped: Path, name: str) -> None:
    (found,) = wheels.flaws(packed(tmp_path, name, library=stripped), REPORT)
    assert found.endswith(f"{name} is missing")


def test_a_wheel_for_a_newer_glibc_is_found(wheels: ModuleType, tmp_path: Path, stripped: Path) -> None:
    wheel = packed(tmp_path, library=stripped)
    (found,) = wheels.flaws(wheel, REPORT.replace("2_24", "2_34"))
    assert "does not find it consistent with manylinux_2_24_x86_64" in found


def test_symbols_that_were_left_are_found(wheels: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int f(int a) { return a; }\n")
    library = tmp_path / "a.so"
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-o", library, tmp_path / "a.c"], check=True)
    (found,) = wheels.flaws(packed(tmp_path, library=library), REPORT)
    assert "libvelocpy_core.so is not stripped" in found
    assert ".symtab" in found
    assert ".debug_info" in found


def test_wheels_are_tried_without_go_and_compilers(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(root))
    pytest.importorskip("setuptools")
    from build_support import try_wheels

    monkeypatch.setenv("CC", "gcc")
    monkeypatch.setenv("PYTHONPATH", str(root / "python"))
    environment = try_wheels.bare_environment(tmp_path)
    assert environment["PATH"] == str(tmp_path)
    assert not {"CC", "PYTHONPATH"} & set(environment)


def test_the_wheel_that_is_tried_is_of_this_python_and_machine(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(root))
    pytest.importorskip("setuptools")
    from build_support import try_wheels

    interpreter = try_wheels.Interpreter("python3.12", (3, 12))
    (tmp_path / "velocpy-1.0-cp312-cp312-manylinux_2_24_s390x.whl").touch()
    (tmp_path / f"velocpy-1.0-cp311-cp311-manylinux_2_24_{os.uname().machine}.whl").touch()
    with pytest.raises(try_wheels.WheelError, match=r"make wheels PYTHONS=python3\.12"):
        try_wheels.wheel_for(interpreter, tmp_path)
    right = tmp_path / f"velocpy-1.0-cp312-cp312-manylinux_2_24_{os.uname().machine}.whl"
    right.touch()
    assert try_wheels.wheel_for(interpreter, tmp_path) == right
