"""The doctor: what it says of this machine, of one without a GPU, and of requests that make no sense."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from conftest import RunPython

import velocpy
from velocpy import _core, knobs
from velocpy.cli import diagnosis, main
from velocpy.trial import filesystem, system

no_gpu = pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *arguments])


def by_name(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["what"]: finding for finding in report["findings"]}


def finding(verdict: str, **more: Any) -> dict[str, Any]:
    return {"what": "copies", "verdict": verdict, "text": "found", **more}


def report(verdict: str, gpus: int, *findings: dict[str, Any]) -> dict[str, Any]:
    return {"verdict": verdict, "gpus": gpus, "findings": list(findings)}


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], None]:
    """Lets the command see a report that is given to it."""

    def give(answer: dict[str, Any]) -> None:
        monkeypatch.setattr(diagnosis, "examine", lambda *_, **__: answer)

    return give


@no_gpu
def test_a_machine_without_a_gpu() -> None:
    result = invoke()
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1].startswith("no GPU: the host and disk tiers work")
    assert "libcuda.so.1" in result.stdout
    assert result.stderr == ""


@no_gpu
def test_json_without_a_gpu() -> None:
    result = invoke("--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["gpus"] == 0
    assert found["verdict"] in ("ok", "warning")
    findings = by_name(found)
    assert findings["host and disk tiers"]["verdict"] == "ok"
    assert findings["driver"]["verdict"] == "not there"
    assert findings["driver"]["remedy"].endswith(".")
    assert findings["management library"]["verdict"] == "not there"
    assert findings["kernels' file"]["facts"]["path"].startswith(str(Path(velocpy.__file__).parent))
    assert not any("device" in f for f in found["findings"])


@no_gpu
def test_a_gpu_that_was_asked_for_and_is_not_there() -> None:
    result = invoke("--device", "0")
    assert result.exit_code == 1
    assert "cuda:0 device" in result.stdout
    assert "1 failed; no GPU can be used" in result.stdout


@pytest.mark.gpu
def test_this_gpu() -> None:
    result = invoke("--json", "--device", "0")
    assert result.exit_code == 0, result.stdout
    found = json.loads(result.stdout)
    assert found["gpus"] == 1
    findings = by_name(found)
    for name in ("driver", "device", "kernels", "pinning", "copies"):
        assert findings[name]["verdict"] in ("ok", "warning"), findings[name]
    rates = findings["copies"]["facts"]
    assert rates["within"] > rates["to_host"] > 1e9
    assert rates["both"] > 1e9


def test_hidden_devices_are_no_failure(run_python: RunPython) -> None:
    done = run_python(
        """
        from velocpy.cli import main
        main(["doctor"], prog_name="velocpy")
        """,
        env={"CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 0, done.stdout
    assert "no GPU: the host and disk tiers work" in done.stdout


@pytest.mark.parametrize("arguments", [["--device", "-1"], ["--device", "all"], ["--fast"], ["here", "there"]])
def test_wrong_use(arguments: list[str]) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""


def test_exit_codes_and_last_lines(examined: Callable[[dict[str, Any]], None]) -> None:
    for answer, code, last in (
        (report("ok", 1, finding("ok")), 0, "1 GPU can be used; nothing to complain about"),
        (report("ok", 0, finding("not there")), 0, "no GPU: the host and disk tiers work"),
        (report("warning", 0, finding("warning")), 0, "no GPU: the host and disk tiers work; 1 warning"),
        (report("warning", 8, *[finding("warning")] * 2), 0, "8 GPUs can be used; 2 warnings"),
        (report("failed", 2, finding("failed")), 1, "1 failed; 2 GPUs can be used"),
        (report("failed", 0, finding("failed")), 1, "1 failed; no GPU can be used"),
    ):
        examined(answer)
        result = invoke()
        assert result.exit_code == code
        assert result.stdout.splitlines()[-1] == last
        assert json.loads(invoke("--json").stdout) == {"message_type": "doctor", "version": 1} | answer


@pytest.mark.parametrize(("verdict", "code"), [("ok", 0), ("warning", 20), ("failed", 1)])
def test_strict_minds_warnings(verdict: str, code: int, examined: Callable[[dict[str, Any]], None]) -> None:
    examined(report(verdict, 0, finding(verdict)))
    assert invoke("--strict").exit_code == code
    assert invoke("--strict", "--json").exit_code == code


def test_what_is_not_ok_says_what_helps() -> None:
    for found in diagnosis.examine(rates=False)["findings"]:
        assert (found["verdict"] == "ok") == ("remedy" not in found), found


def test_what_helps_stands_below_what_is_wrong() -> None:
    answer = report("warning", 1, finding("ok"), finding("warning", device=11, text="slow", remedy="Look at the slot."))
    assert list(diagnosis.lines(answer)) == [
        "ok       copies          found",
        "warning  cuda:11 copies  slow",
        "                         Look at the slot.",
        "1 GPU can be used; 1 warning",
    ]


def test_lines_are_broken_for_terminals() -> None:
    answer = report("ok", 1, finding("ok", text="word " * 50, remedy="help " * 50))
    shown = list(diagnosis.lines(answer, 60))
    assert max(map(len, shown)) <= 60
    assert " ".join(" ".join(shown[:-1]).split()) == "ok copies " + "word " * 50 + "help " * 49 + "help"


def test_a_disk_that_cannot_be_written_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise velocpy.errors.TierFull("no room in tier 'disk'", tier="disk")

    monkeypatch.setattr(velocpy.History, "checkpoint", full)
    result = invoke("--no-rates")
    assert result.exit_code == 1
    assert "no room in tier 'disk'" in result.stdout


def test_bytes_that_come_back_changed_are_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    original = velocpy.History.checkpoint

    def wrong(history: velocpy.History, key: int, *, state: Any) -> Any:
        return original(history, key, state=state + (key == 5))

    monkeypatch.setattr(velocpy.History, "checkpoint", wrong)
    found = diagnosis.examine(rates=False)
    assert by_name(found)["host and disk tiers"]["text"] == "checkpoints came back changed"
    assert found["verdict"] == "failed"


def test_devices_below_zero() -> None:
    with pytest.raises(velocpy.errors.InvalidArgument):
        diagnosis.examine(-1)


@pytest.mark.parametrize(
    "request_text",
    [
        "",
        "{",
        "null {}",
        "[]",
        "7",
        '"x"',
        "{} {}",
        '{"device": -1}',
        '{"device": 1.5}',
        '{"device": 1e400}',
        '{"device": "0"}',
        '{"device": 99999999999999999999}',
        '{"kernels": 3}',
        '{"kernels": ["a"]}',
        '{"rates": 1}',
        '{"no such thing": 1}',
        "[" * 100_000,
        '{"kernels": "' + "x" * 100_000,
        "\0",
    ],
)
def test_hostile_requests(request_text: str) -> None:
    knobs.load_core()
    with pytest.raises(velocpy.errors.InvalidArgument):
        _core.doctor(request_text)


@pytest.mark.parametrize("path", ["", "/", "no/such/file", "nul\0inside", "x" * 100_000, "/dev/null", "\ud800"])
def test_hostile_paths_are_findings(path: str) -> None:
    knobs.load_core()
    answer = json.loads(_core.doctor(json.dumps({"kernels": path, "rates": False})))
    kernels = by_name(answer)["kernels' file"]
    assert kernels["verdict"] in ("failed", "not there")
    assert kernels["text"]


def test_the_directory_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    found = by_name(diagnosis.examine(rates=False))["temporary files"]
    directory = Path(tempfile.gettempdir())
    assert str(directory) in found["text"]
    assert found["facts"]["path"] == str(directory)
    assert found["facts"]["free_bytes"] > 0
    monkeypatch.setattr(filesystem, "MEMORY", frozenset([system.magic(directory)]))
    found = by_name(diagnosis.examine(rates=False))["temporary files"]
    assert found["verdict"] == "warning"
    assert "memory" in found["text"]
    assert "TMPDIR" in found["remedy"]


def test_no_directory_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    report = diagnosis.examine(rates=False)
    assert by_name(report)["temporary files"]["verdict"] == "failed"
    assert report["verdict"] == "failed"
