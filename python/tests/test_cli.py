"""The command: what goes where, exit codes, and what is imported when."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import velocpy
from velocpy.cli import main

SMALL = ["--size", "40x48", "--steps", "200", "--shots", "1"]

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "velocpy", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def test_version() -> None:
    result = command("--version")
    assert result.returncode == 0
    assert velocpy.__version__ in result.stdout
    assert result.stderr == ""


def test_help_names_every_command() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    for name in main.commands:
        assert f"  {name} " in result.stdout


def test_info_is_build_info() -> None:
    result = invoke("info", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["build"] == velocpy.build_info()
    text = invoke("info").stdout
    assert all(line.split()[0] in velocpy.build_info() for line in text.splitlines())
    assert velocpy.__version__ in text


def test_version_imports_nothing_heavy(run_python: Command) -> None:
    result = run_python(
        """
        import sys
        from velocpy.cli import main
        try:
            main(["--help"], prog_name="velocpy")
        except SystemExit as exit:
            assert exit.code == 0
        heavy = {"matplotlib", "rich", "torch", "checkpoint_schedules", "pyrevolve"} & set(sys.modules)
        assert not heavy, heavy
        from velocpy import _core
        assert not _core.loaded()
        """
    )
    assert result.returncode == 0, result.stderr


def test_bench_is_passed_on() -> None:
    result = command("bench", "--help")
    assert result.returncode == 0
    assert "Usage: velocpy bench" in result.stdout
    assert "--quick" in result.stdout
    assert command("bench", "no-such-thing").returncode == 2


def test_demo_as_json(tmp_path: Path) -> None:
    result = command("demo", *SMALL, "--json", "--out", str(tmp_path / "a b"))
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["proven"] is True
    assert facts["history_bytes"] == 40 * 48 * 4 * 200
    assert facts["stats"]["captures"] == 200
    assert facts["stats"]["restores"]["count"] == 200
    for picture in facts["pictures"].values():
        assert Path(picture).read_bytes().startswith(b"\x89PNG")
    assert len(facts["pictures"]) == 2
    trace = json.loads(gzip.decompress(Path(facts["trace"]).read_bytes()))
    assert sum(event.get("cat") == "capture" for event in trace["traceEvents"]) == 200


def test_demo_for_people(tmp_path: Path) -> None:
    result = command("demo", *SMALL, "--out", str(tmp_path))
    assert result.returncode == 0
    for words in ("to the last bit", "blocked", "prefetch distance", "host", "disk", "timeline.png", "trace.json.gz"):
        assert words in result.stdout
    assert "migrating through velocpy" in result.stderr
    assert "100%" in result.stderr


def test_quiet_is_quiet(tmp_path: Path) -> None:
    result = command("demo", *SMALL, "--quiet", "--out", str(tmp_path))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_demo_fails_when_the_image_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from velocpy.demo.migration import InHistory

    class Wrong(InHistory):
        def keep(self, step: int, field: Any) -> None:
            super().keep(step, field * 1.0001 if step == 100 else field)

    monkeypatch.setattr("velocpy.demo.run.InHistory", Wrong)
    result = invoke("demo", *SMALL, "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "differs" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--size", "12 parsecs"],
        ["--size", "40x40x40"],
        ["--dim", "4"],
        ["--host-fraction", "0"],
        ["--host-fraction", "nan"],
        ["--steps", "-3"],
        ["--device", "cuda", "--backend", "numpy"],
        ["--device", "cuda:"],
        ["--device", "mps"],
        ["--backend", "cupy"],
        ["--pointers"],
        ["--device-fraction", "0.5"],
        ["--device", "cuda", "--device-fraction", "0"],
        ["--backend", "fortran"],
        ["--no-such-option"],
        ["--path", __file__],
    ],
)
def test_wrong_use(arguments: list[str], tmp_path: Path) -> None:
    result = invoke("demo", *arguments, "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert "Error" in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_found_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = invoke("demo", *SMALL, "--out", str(tmp_path / "file" / "out"))
    assert result.exit_code == 2
    assert "cannot be made" in result.stderr


def test_the_disk_tier_lies_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    original = velocpy.open

    def watched(path: Any = None, **options: Any) -> Any:
        opened.append(path)
        return original(path, **options)

    monkeypatch.setattr(velocpy, "open", watched)
    assert invoke("demo", *SMALL, "--quiet", "--out", str(tmp_path), "--path", str(tmp_path / "disk")).exit_code == 0
    assert opened == [tmp_path / "disk"]
    assert list((tmp_path / "disk").iterdir()) == []


def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C ends a run with code 130, without a traceback, and leaves no file of the disk tier."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "velocpy",
            "demo",
            "--steps",
            "100000",
            "--out",
            str(tmp_path),
            "--path",
            str(tmp_path / "d"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert "velocpy: interrupted" in stderr
    assert "Traceback" not in stderr
    assert stdout == ""


@pytest.mark.parametrize(
    ("module", "extra", "more"),
    [("rich", "demo", []), ("matplotlib", "demo", []), ("torch", "torch", ["--backend", "torch"])],
)
def test_a_missing_library_is_one_line(module: str, extra: str, more: list[str], run_python: Command) -> None:
    result = run_python(
        """
        import sys
        missing, *arguments = sys.argv[1:]
        sys.modules[missing] = None
        from velocpy.cli import main
        main(arguments, prog_name="velocpy")
        """,
        module,
        "demo",
        *SMALL,
        *more,
    )
    assert result.returncode == 1
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert f"pip install 'velocpy[{extra}]'" in result.stderr
    assert module in result.stderr


def test_a_missing_cupy_is_one_line(run_python: Command) -> None:
    result = run_python(
        """
        import sys
        sys.modules["cupy"] = None
        from velocpy.cli import main
        main(["demo", "--device", "cuda", "--backend", "cupy"], prog_name="velocpy")
        """
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        "velocpy: the cupy backend needs cupy, which is not installed: pip install cupy-cuda13x"
    ]


def test_no_device_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    result = command("demo", "--device", "cuda", "--out", str(tmp_path), env=hidden)
    assert (result.returncode, result.stdout) == (1, ""), result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("velocpy: no device: ")


@pytest.mark.parametrize("option", ["--folder", "--path"])
def test_a_folder_that_cannot_be_made_is_found_before_anything_runs(
    option: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("velocpy.demo.command.show", lambda *_, **__: pytest.fail("it ran"))
    (tmp_path / "file").touch()
    result = invoke("demo", *SMALL, "--out", str(tmp_path), option, str(tmp_path / "file" / "disk"))
    assert result.exit_code == 2
    assert "--folder" in result.stderr
    assert "cannot be made" in result.stderr


def test_a_failing_store_is_one_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise velocpy.errors.TierFull("no room in tier 'disk'", tier="disk")

    monkeypatch.setattr(velocpy.History, "checkpoint", full)
    result = invoke("demo", *SMALL, "--quiet", "--out", str(tmp_path))
    assert result.exit_code == 13
    assert result.stderr.strip() == "velocpy: no room in tier 'disk'"


def test_a_closed_reader_is_no_traceback() -> None:
    script = f"'{sys.executable}' -m velocpy info --json | head -c 1"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in result.stderr
