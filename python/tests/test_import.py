"""Importing velocpy starts nothing, and a core that cannot be loaded says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import RunPython

from velocpy import _core, errors, knobs


def test_import_does_not_start_go(run_python: RunPython) -> None:
    done = run_python(
        """
        import os, numpy
        before = len(os.listdir("/proc/self/task"))
        import velocpy
        assert len(os.listdir("/proc/self/task")) == before
        assert "libvelocpy_core" not in open("/proc/self/maps").read()
        velocpy.open(host="1MiB").close()
        assert "libvelocpy_core" in open("/proc/self/maps").read()
        assert len(os.listdir("/proc/self/task")) > before
        """
    )
    assert done.returncode == 0, done.stderr


def test_import_pulls_no_framework(run_python: RunPython) -> None:
    done = run_python(
        """
        import sys, velocpy
        heavy = {"torch", "cupy", "jax", "tensorflow", "matplotlib", "pandas", "scipy", "rich", "ml_dtypes", "click"}
        assert not heavy & set(sys.modules), heavy & set(sys.modules)
        """
    )
    assert done.returncode == 0, done.stderr


def test_missing_core_message(run_python: RunPython, tmp_path: Path) -> None:
    done = run_python(
        """
        import velocpy
        for attempt in range(2):
            try:
                velocpy.open(host="1MiB")
            except velocpy.errors.CoreUnavailable as error:
                print(error)
        try:
            velocpy.build_info()
        except ImportError as error:
            print(error)
        """,
        env={"VELOCPY_CORE": str(tmp_path / "none.so")},
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    for line in lines:
        assert str(tmp_path / "none.so") in line
        assert "VELOCPY_CORE" in line


def test_library_that_is_no_core(run_python: RunPython) -> None:
    done = run_python(
        """
        import velocpy
        try:
            velocpy.open(host="1MiB")
        except velocpy.errors.CoreUnavailable as error:
            print(error)
        """,
        env={"VELOCPY_CORE": "libm.so.6"},
    )
    assert done.returncode == 0, done.stderr
    assert "is no core of velocpy" in done.stdout


def test_core_by_path(run_python: RunPython, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere.so"
    copy.write_bytes(Path(knobs.core_path()).read_bytes())
    done = run_python("import velocpy; print(velocpy.build_info()['core_path'])", env={"VELOCPY_CORE": str(copy)})
    assert done.stdout.strip() == str(copy), done.stderr


def test_eager_binding_is_fine_or_explained(run_python: RunPython) -> None:
    done = run_python("import velocpy; velocpy.open(host='1MiB').close(); print('open')", env={"LD_BIND_NOW": "1"})
    assert done.stdout.strip() == "open" or "LD_BIND_NOW" in done.stderr


def test_subinterpreter_import_is_clean_error(run_python: RunPython) -> None:
    done = run_python(
        """
        import faulthandler, sys
        faulthandler.dump_traceback_later(30, exit=True)
        code = "import velocpy"
        try:
            import _interpreters
        except ModuleNotFoundError:
            import _xxsubinterpreters
            other = _xxsubinterpreters.create()
            try:
                _xxsubinterpreters.run_string(other, code)
            except _xxsubinterpreters.RunFailedError as error:
                print(error)
            _xxsubinterpreters.destroy(other)
        else:
            for config in ("isolated", "legacy"):
                other = _interpreters.create(config)
                failure = _interpreters.exec(other, code)
                print(failure.type.__name__, failure.msg)
                _interpreters.destroy(other)
        import velocpy
        with velocpy.open(host="1MiB") as store:
            store.history("h").checkpoint(0, u=b"all is well here")
        """
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines
    for line in lines:
        assert "ImportError" in line
        assert "main interpreter" in line or "subinterpreter" in line  # Python's own word where it looks first


def test_init_idempotent() -> None:
    knobs.load_core()
    _core.load(knobs.core_path(), knobs._config())
    with pytest.raises(errors.InvalidArgument):
        _core.load(knobs.core_path(), '{"max_procs": 1234}')


def test_env_set_in_python_is_honoured(run_python: RunPython) -> None:
    done = run_python(
        """
        import os
        os.environ["VELOCPY_MAX_PROCS"] = "1"
        import velocpy
        print(velocpy.build_info()["core"]["max_procs"])
        """
    )
    assert done.stdout.strip() == "1", done.stderr


@pytest.mark.parametrize("variable", ["LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "VELOCPY_NODE_PROCESSES"])
def test_ranks_share_the_processors(run_python: RunPython, variable: str) -> None:
    done = run_python(
        "import velocpy, os; print(velocpy.build_info()['core']['max_procs'], len(os.sched_getaffinity(0)))",
        env={variable: "2"},
    )
    procs, cores = map(int, done.stdout.split())
    assert procs == max(1, min(8, cores // 2))


def test_another_version_asks_for_a_restart(run_python: RunPython) -> None:
    done = run_python(
        """
        import velocpy
        from velocpy import knobs
        knobs.__version__ = "999.0"
        for attempt in range(2):
            try:
                velocpy.open(host="1MiB")
            except velocpy.errors.CoreUnavailable as error:
                print("restart" in str(error))
        """
    )
    assert done.stdout.split() in (["True", "True"], []), done.stderr
    if not done.stdout:
        pytest.skip("this core has no version stamped into it")


def test_build_info() -> None:
    import velocpy

    info = velocpy.build_info()
    assert info["version"] == velocpy.__version__
    assert info["shim"]["abi_version"] == 12
    assert info["core"]["go"].startswith("go1.")


def test_status_enum_equal_in_header_and_python(root: Path) -> None:
    header = (root / "cshim" / "velocpy_abi.h").read_text()
    listed = dict(re.findall(r"^\s+VELOC_(?:E_)?(\w+) = (-?\d+),?\s*/\*", header, re.MULTILINE))
    python = {status.name: status.value for status in errors.Status}
    assert _core.status_codes() == python
    for name, value in python.items():
        if name != "OK":
            assert int(listed[name]) == value, name


def test_abi_version_matches_header(root: Path) -> None:
    header = (root / "cshim" / "velocpy_abi.h").read_text()
    declared = re.search(r"#define VELOC_ABI_VERSION (\d+)", header)
    assert declared is not None
    assert _core.shim_info()["abi_version"] == int(declared[1])
