"""What all commands have in common: exit codes, JSON messages, examples, colour, and what goes where."""

from __future__ import annotations

import errno
import json
import re
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

import velocpy
from velocpy import errors
from velocpy.archive import push
from velocpy.bench import __main__ as measured
from velocpy.cli import diagnosis, exits, main, output

ROOT = Path(__file__).resolve().parents[2]


def invoke(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(main, list(arguments), **options)


def every_command(group: click.Group = main, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from every_command(command, (*above, name))
        else:
            yield (*above, name)


COMMANDS = sorted(every_command())

#: A quick run of each; {tmp} is an empty directory, {store} a store with checkpoint 7 of history run, {file} another.
RUNS = {
    ("info",): [],
    ("doctor",): ["{tmp}", "--no-rates"],
    ("bench",): ["memory", "disk", "--quick", "--out", "{tmp}"],
    ("demo",): ["--size", "40x48", "--steps", "60", "--shots", "1", "--quiet", "--out", "{tmp}"],
    ("ls",): ["{store}", "run"],
    ("show",): ["{store}", "run", "7"],
    ("check",): ["{store}", "--read-data"],
    ("diff",): ["{store}", "{store}"],
    ("gc",): ["{store}", "--dry-run"],
    ("backup",): ["{store}", "{store}-copy"],
    ("export",): ["{store}", "run", "7", "{tmp}/state.npz"],
    ("import",): ["{file}", "{store}", "run", "8"],
    ("push",): ["{store}", "{tmp}/archive"],
    ("pull",): ["{archive}", "{tmp}/again", "--rank", "0"],
    ("dcp", "export"): ["{dcp}", "a", "{tmp}/files"],
    ("dcp", "import"): ["{files}", "{tmp}/run", "a"],
    ("top",): ["--count", "1", "--interval", "0.1"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_json_and_examples_that_parse(command: tuple[str, ...]) -> None:
    help_ = invoke(*command, "--help")
    assert help_.exit_code == 0
    assert " --json " in help_.stdout
    _, _, end = help_.stdout.partition("Examples:\n")
    examples = [line.strip() for line in end.splitlines() if line.strip()]
    assert examples, "an example belongs into the help"
    assert any("--json" in example for example in examples)
    for example in examples:
        words = shlex.split(example)
        assert tuple(words[: len(command) + 1]) == ("velocpy", *command)
        assert len(example) <= 76
        parsed = invoke(*words[1:], "--help")  # which knows no option that is not there
        assert parsed.exit_code == 0, parsed.output


@pytest.mark.parametrize("command", COMMANDS)
def test_every_line_of_json_is_a_message(
    command: tuple[str, ...], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    beside = tmp_path_factory.mktemp("beside")
    with velocpy.open(beside / "store", host="16MiB", disk="1GiB") as store:
        store.history("run").checkpoint(7, u=np.arange(3.0))
    np.savez(beside / "state.npz", u=np.arange(3.0))
    places = {"tmp": tmp_path, "store": beside / "store", "file": beside / "state.npz"}
    if command == ("pull",):
        places["archive"] = beside / "archive"
        push([places["store"]], places["archive"])
    if command[0] == "dcp":
        places |= checkpoints_of_dcp(beside)
    arguments = [argument.format(**places) for argument in RUNS[command]]
    with velocpy.open(host="1MiB") as at_work:
        at_work.publish()
        result = invoke(*command, *arguments, "--json")
    assert result.exit_code == 0, result.output
    messages = [json.loads(line) for line in result.stdout.splitlines()]
    assert messages
    for message in messages:
        assert list(message)[:2] == ["message_type", "version"]
        assert re.fullmatch("[a-z_]+", message["message_type"])
        assert message["version"] == output.VERSION
        assert len(message) > 2


def checkpoints_of_dcp(folder: Path) -> dict[str, Path]:
    """One in a store, and the same one in DCP's own files."""
    torch = pytest.importorskip("torch")
    import torch.distributed.checkpoint as dcp

    from velocpy.dcp import Writer, to_files

    with warnings.catch_warnings(), Writer(folder / "dcp", host="16MiB", disk="64MiB") as writer:
        warnings.simplefilter("ignore")  # of one process alone
        dcp.save({"w": torch.ones(3)}, storage_writer=writer, checkpoint_id="a", no_dist=True)
        to_files(folder / "dcp", "a", folder / "files")
    return {"dcp": folder / "dcp", "files": folder / "files"}


def test_messages_are_json_whatever_the_numbers() -> None:
    facts = {"nan": float("nan"), "many": [1.5, float("inf"), (float("-inf"),)], "text": "ü\n"}
    line = output.message("kind", facts)
    assert "\n" not in line
    assert json.loads(line) == {
        "message_type": "kind",
        "version": 1,
        "nan": None,
        "many": [1.5, None, [None]],
        "text": "ü\n",
    }
    with pytest.raises(ValueError, match="version"):
        output.message("kind", {"version": 2})


def test_the_help_and_the_page_list_the_codes() -> None:
    help_ = invoke("--help").stdout
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    listed = [(int(code), text) for code, text in re.findall(r"^ +(\d+)  (\S.*)$", help_, re.MULTILINE)]
    written = [(int(code), text) for code, text in re.findall(r"^\| (\d+) \| (.*?) \|$", page, re.MULTILINE)]
    assert listed == written == [(code.value, code.meaning) for code in exits.Exit]
    assert [code.value for code in exits.Exit] == [0, 1, 2, 3, 10, 11, 12, 13, 20, 130]


def test_the_page_has_every_command() -> None:
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert f"`velocpy {' '.join(command)}" in page


def test_errors_have_their_codes() -> None:
    def named(name: str, base: type[Exception] = velocpy.errors.VelocError) -> Exception:
        known = getattr(errors, name, None)
        return (known or type(name, (base,), {}))("it went wrong")

    for error, code in (
        (named("NotAStore"), 10),
        (named("StoreLocked"), 11),
        (named("FormatTooNew"), 12),
        (named("DamagedStore"), 3),
        (named("ReadOnlyStore"), 1),
        (errors.CorruptCheckpoint(), 3),
        (errors.BelatedCorruption(), 3),
        (errors.TierFull(), 13),
        (errors.InvalidBudget(), 2),
        (errors.CheckpointNotFound(), 1),
        (errors.CoreUnavailable(), 1),
        (OSError(errno.ENOSPC, "full"), 13),
        (OSError(errno.EDQUOT, "quota"), 13),
        (OSError(errno.EIO, "disk"), 1),
        (KeyboardInterrupt(), 130),
        (ValueError(), 1),
    ):
        assert exits.code_of(error) == code, error
    full = errors.TierIOError("no room")
    full.errno = errno.ENOSPC
    assert exits.code_of(full) == 13


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "x"), 13, "No space left"),
        (OSError(errno.EACCES, "Permission denied", "x"), 1, "Permission denied"),
        (errors.CorruptCheckpoint("changed"), 3, "changed"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_goes_wrong_is_one_line(
    error: BaseException, code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(diagnosis, "examine", fail)
    result = invoke("doctor", "--json")
    assert result.exit_code == code
    assert result.stdout == ""
    assert re.fullmatch(rf"velocpy: .*{words}.*\n", result.stderr)


def test_an_interrupted_benchmark_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(**_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(measured.BENCHMARKS, "memory", stop)
    result = invoke("bench", "memory")
    assert result.exit_code == 130
    assert result.stderr.strip() == "velocpy: interrupted"


@pytest.mark.parametrize("command", [["bench", "memory", "--quick"], ["painted"]])
def test_no_color(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    painted = click.Command("painted", callback=lambda: click.secho("text", fg="red"))
    monkeypatch.setitem(main.commands, "painted", painted)
    coloured = {}
    for value in ("", "1"):
        monkeypatch.setenv("NO_COLOR", value)
        result = invoke(*command, color=True)
        assert result.exit_code == 0
        coloured[value] = "\x1b[" in result.stdout
    assert coloured == {"": True, "1": False}
