"""What the doctor tries in a directory: every verdict provoked, and a disk that does not answer."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import velocpy
from velocpy.cli import diagnosis, main
from velocpy.trial import child, files, filesystem, locks, owner, rates, space, system, watch
from velocpy.trial import place as places
from velocpy.trial.course import COURSE
from velocpy.trial.finding import Finding, refused
from velocpy.trial.place import Place

ROOM = ".velocpy-doctor-*"

Mounting = Callable[..., Path]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place
    assert list(tmp_path.glob(ROOM)) == []


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Mounting]:
    """Mounts file systems where that is allowed, and skips the test elsewhere."""
    points = []

    def mount(type_: str, options: str) -> Path:
        point = tmp_path / f"mounted{len(points)}"
        point.mkdir()
        try:
            done = subprocess.run(["mount", "-t", type_, "-o", options, type_, point], capture_output=True, check=False)
        except FileNotFoundError:
            pytest.skip("no mount here")
        if done.returncode:
            pytest.skip(f"{type_} cannot be mounted here")
        points.append(point)
        return point

    yield mount
    for point in points:
        subprocess.run(["umount", "-f", "-l", point], check=True)


def allowing(seconds: float) -> dict[str, Any]:
    return {name: dataclasses.replace(trial, seconds=seconds) for name, trial in COURSE.items()}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here depends on how busy the disk of the tests is."""
    monkeypatch.setattr(watch, "COURSE", allowing(60))
    monkeypatch.setattr(watch, "ALL", 120.0)
    monkeypatch.setattr(watch, "START", 60.0)


def refusing(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, code: int, when: Callable[..., bool]) -> None:
    """Lets a call fail with an errno when its arguments are such."""
    original = getattr(module, name)

    def call(*arguments: Any, **options: Any) -> Any:
        if when(*arguments):
            raise OSError(code, os.strerror(code))
        return original(*arguments, **options)

    monkeypatch.setattr(module, name, call)


def by_name(findings: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    assert len({finding["what"] for finding in findings}) == len(findings)
    for finding in findings:
        assert (finding["verdict"] == "ok") == ("remedy" not in finding), finding
        assert finding.get("remedy", ".").endswith((".", ")."))
    return {finding["what"]: finding for finding in findings}


# The whole course.


def test_an_ordinary_directory(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("stays")
    began = time.monotonic()
    findings = by_name(watch.run(str(tmp_path)))
    assert time.monotonic() - began < 180  # the guard against hangs
    assert list(findings) == list(COURSE)
    for name in ("directory", "durable writes", "locks"):
        assert findings[name]["verdict"] in ("ok", "warning"), findings[name]
    assert findings["store"]["verdict"] == "not there"
    syncs = findings["durable writes"]["facts"]
    assert 0 < syncs["fdatasync_median_seconds"] <= syncs["fdatasync_max_seconds"]
    assert findings["disk rates"]["facts"]["write_bytes_per_second"] > 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["other"]


def test_no_rates_measures_none(tmp_path: Path) -> None:
    assert list(by_name(watch.run(str(tmp_path), rates=False))) == [name for name in COURSE if name != watch.RATES]


def test_names_of_any_bytes(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff \n'$x"
    os.mkdir(odd)  # noqa: PTH102
    report = diagnosis.examine(rates=False, path=os.fsdecode(odd))
    assert by_name(report["findings"])["durable writes"]["verdict"] in ("ok", "warning")
    result = CliRunner().invoke(main, ["doctor", os.fsdecode(odd), "--no-rates", "--json"])
    assert "\n" in json.loads(result.stdout)["path"]
    assert result.exit_code in (0, 1)


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_paths_that_name_nothing(path: str) -> None:
    with pytest.raises(velocpy.errors.InvalidArgument):
        diagnosis.examine(rates=False, path=path)
    assert CliRunner().invoke(main, ["doctor", path]).exit_code == 2


@pytest.mark.parametrize(("name", "words"), [("none", "mkdir"), ("file", "Name a directory"), ("loop", "circle")])
def test_what_is_no_directory(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    findings = by_name(watch.run(str(tmp_path / name)))
    assert list(findings) == ["directory"]
    assert findings["directory"]["verdict"] == "failed"
    assert words in findings["directory"]["remedy"]
    assert CliRunner().invoke(main, ["doctor", str(tmp_path / name), "--no-rates"]).exit_code == 1


def test_a_directory_that_cannot_be_written(mounted: Mounting) -> None:
    findings = by_name(watch.run(str(mounted("tmpfs", "ro,size=1m"))))
    assert list(findings) == ["directory", "store", "file system", "free space", "quota"]
    assert findings["directory"]["verdict"] == "failed"
    assert "for writing" in findings["directory"]["remedy"]


def test_a_directory_of_somebody_else(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    if os.access(tmp_path, os.W_OK):
        tmp_path.chmod(0o700)
        pytest.skip("this user may write anywhere")
    finding = by_name(watch.run(str(tmp_path)))["directory"]
    tmp_path.chmod(0o700)
    assert finding["verdict"] == "failed"
    assert "right to write" in finding["remedy"]


def test_memory_is_not_durable(mounted: Mounting) -> None:
    point = mounted("tmpfs", "size=128m")
    findings = by_name(watch.run(str(point)))
    assert findings["file system"]["verdict"] == "warning"
    assert "not durable" in findings["file system"]["text"]
    assert findings["file system"]["facts"]["type"] == "tmpfs"
    assert findings["disk rates"]["facts"]["bytes"] <= 16 << 20
    assert findings["free space"]["verdict"] == "warning"
    assert findings["durable writes"]["verdict"] == "ok"
    assert CliRunner().invoke(main, ["doctor", str(point), "--no-rates"]).exit_code == 0
    assert CliRunner().invoke(main, ["doctor", str(point), "--no-rates", "--strict"]).exit_code == 20


def test_a_full_disk(mounted: Mounting) -> None:
    point = mounted("tmpfs", "size=64k")
    with contextlib.suppress(OSError), (point / "all").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    findings = by_name(watch.run(str(point)))
    for name in ("free space", "durable writes", "holes"):
        assert findings[name]["verdict"] == "failed", findings[name]
    assert findings["durable writes"]["facts"]["errno"] == "ENOSPC"
    assert "Free space" in findings["durable writes"]["remedy"]
    assert findings["disk rates"]["verdict"] == "not there"
    assert [entry.name for entry in point.iterdir()] == ["all"]


def test_no_inodes_left(mounted: Mounting) -> None:
    point = mounted("tmpfs", "size=1m,nr_inodes=2")
    (point / "last").touch()
    findings = by_name(watch.run(str(point)))
    assert findings["directory"]["facts"]["errno"] == "ENOSPC"
    assert findings["free space"]["verdict"] == "failed"


def test_an_overlay(tmp_path: Path, mounted: Mounting) -> None:
    for name in ("lower", "upper", "work"):
        (tmp_path / name).mkdir()
    layers = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    point = mounted("overlay", layers)
    findings = by_name(watch.run(str(point), rates=False))
    assert findings["file system"]["verdict"] == "warning"
    assert "container" in findings["file system"]["text"]
    assert findings["durable writes"]["verdict"] in ("ok", "warning")


# The process that tries, and its watcher.


def saying(monkeypatch: pytest.MonkeyPatch, code: str) -> list[list[str]]:
    """Lets a script stand for the process that tries. Gives the names that it was asked for, each time."""
    asked: list[list[str]] = []
    begin = """
import json, os, signal, sys, time
def say(**message):
    os.write(1, json.dumps(message).encode() + b"\\n")
def find(name):
    say(begun=name)
    say(finding={"what": name, "verdict": "ok", "text": "found"})
names = sys.argv[1:]
"""

    def command(_: str, names: list[str]) -> list[str]:
        asked.append(list(names))
        return [sys.executable, "-I", "-c", begin + code, *names]

    monkeypatch.setattr(watch, "command", command)
    monkeypatch.setattr(watch, "COURSE", allowing(2))
    return asked


def test_a_trial_without_an_answer_is_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hanging = """
for name in names:
    if name == "locks":
        say(begun=name)
        time.sleep(60)
    find(name)
say(begun="cleaning up")
"""
    asked = saying(monkeypatch, hanging)
    findings = by_name(watch.run(str(tmp_path)))
    assert list(findings) == list(COURSE)
    assert findings["locks"]["verdict"] == "failed"
    assert findings["locks"]["text"] == "no answer within 2 s"
    assert findings["locks"]["facts"] == {"waited_seconds": 2}
    assert [finding["verdict"] for finding in findings.values()].count("ok") == len(COURSE) - 1
    names = list(COURSE)
    assert asked == [names, names[names.index("locks") + 1 :]]


def test_patience_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    saying(monkeypatch, "find(names[0]); say(begun=names[1]); time.sleep(60)")
    findings = watch.run(str(tmp_path))
    names = list(COURSE)
    assert [finding["what"] for finding in findings] == [*names[:4], "other trials"]
    assert [finding["verdict"] for finding in findings] == ["ok", "failed", "ok", "failed", "not there"]
    assert findings[-1]["text"] == f"left out: {', '.join(names[4:])}"


def test_a_directory_without_an_answer_is_all_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    saying(monkeypatch, "say(begun=names[0]); time.sleep(60)")
    assert list(by_name(watch.run(str(tmp_path)))) == ["directory"]


def test_all_of_it_has_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    saying(monkeypatch, "for name in names: find(name); time.sleep(0.2)")
    monkeypatch.setattr(watch, "ALL", 1.0)
    began = time.monotonic()
    findings = watch.run(str(tmp_path))
    assert time.monotonic() - began < 10
    assert "failed" in [finding["verdict"] for finding in findings]
    assert findings[-1]["what"] == "other trials"


def test_a_process_that_does_not_begin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    saying(monkeypatch, "time.sleep(60)")
    monkeypatch.setattr(watch, "START", 0.3)
    assert by_name(watch.run(str(tmp_path)))["directory"]["text"].endswith("did not begin within 0.3 s")


def test_the_process_takes_little_with_it() -> None:
    code = watch._BOOT.replace("main(request", "print(*sys.modules) or (request")
    argument = watch.command("/none", [])[-1]
    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, argument], capture_output=True, text=True, check=True
    )
    modules = set(told.stdout.split())
    assert "velocpy.trial.child" in modules
    assert not {"numpy", "velocpy._core", "velocpy.errors", "click"} & modules


def test_cleaning_up_without_an_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    saying(monkeypatch, "for name in names: find(name)\nsay(begun='cleaning up'); time.sleep(60)")
    monkeypatch.setattr(watch, "CLEAN", 0.2)
    findings = by_name(watch.run(str(tmp_path)))
    assert list(findings) == [*COURSE, "cleaning up"]
    assert findings["cleaning up"]["text"] == "no answer within 0.2 s"


def test_a_process_that_dies_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dying = "for name in names:\n    say(begun=name)\n    if name == 'locks': os.kill(os.getpid(), 9)\n    find(name)"
    saying(monkeypatch, dying + "\nsay(begun='cleaning up')")
    findings = by_name(watch.run(str(tmp_path)))
    assert list(findings) == list(COURSE)
    assert findings["locks"]["text"] == "the process that tried it ended by signal 9"
    saying(monkeypatch, "sys.exit(3)")
    assert watch.run(str(tmp_path))[0]["text"] == "the process that tried it ended with status 3"


def test_a_process_that_will_not_end_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deaf = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); say(begun='directory'); time.sleep(60)"
    saying(monkeypatch, f"signal.signal(signal.SIGTERM, signal.SIG_IGN); {deaf}")
    monkeypatch.setattr(watch, "GRACE", 0.2)
    watch.run(str(tmp_path))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_what_a_trial_did_not_expect_is_a_finding(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    monkeypatch.setitem(child.COURSE, "locks", dataclasses.replace(COURSE["locks"], look=lambda _: 1 // 0))
    finding = child.attempt("locks", place)
    assert finding.verdict == "failed"
    assert "ZeroDivisionError" in finding.text


def test_a_disk_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A real one: a FUSE file system behind which nobody stands."""
    monkeypatch.setattr(watch, "COURSE", COURSE)
    point = tmp_path / "stalled"
    point.mkdir()
    try:
        fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        pytest.skip("no FUSE here")
    try:
        options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
        if system._libc.mount(b"nobody", os.fsencode(point), b"fuse", 0, options) < 0:
            pytest.skip("FUSE cannot be mounted here")
        try:
            began = time.monotonic()
            result = CliRunner().invoke(main, ["doctor", str(point), "--no-rates", "--json"])
            took = time.monotonic() - began
        finally:
            subprocess.run(["umount", "-f", "-l", point], check=True)
    finally:
        os.close(fuse)
    assert result.exit_code == 1
    finding = by_name(json.loads(result.stdout)["findings"])["directory"]
    assert finding["text"] == f"no answer within {COURSE['directory'].seconds:g} s"
    assert took < 30  # the guard against hangs


def room_in(folder: Path, patience: float = 30) -> Path:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        for room in folder.glob(ROOM):
            return room
        time.sleep(0.005)
    raise AssertionError("no room was made")


def gone(room: Path, patience: float = 30) -> bool:
    end = time.monotonic() + patience
    while room.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return not room.exists()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A doctor at work in an empty directory, and its room."""
    folder = tmp_path / "looked at"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "velocpy", "doctor", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process, room_in(folder)
        finally:
            process.kill()


def test_an_interrupted_doctor_leaves_nothing(running: tuple[subprocess.Popen[str], Path]) -> None:
    process, room = running
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr.strip()) == (130, "", "velocpy: interrupted")
    assert not room.exists()


def test_a_killed_doctor_leaves_nothing(running: tuple[subprocess.Popen[str], Path]) -> None:
    process, room = running
    process.kill()
    process.communicate(timeout=60)
    assert gone(room)


# The room, and what is left of others.


def killed_doctor(folder: Path) -> Path:
    """What is left when the process that tries is killed too."""
    code = "import sys, time; from velocpy.trial.place import Place; p = Place(sys.argv[1]); "
    code += "(p.room / 'data').write_text('x'); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (room,) = folder.glob(ROOM)
        with Place(folder) as place:
            assert place.remove_strays() == 0, "it lives"
        process.kill()
    return room


def test_strays_of_killed_doctors_are_removed(tmp_path: Path) -> None:
    stray = killed_doctor(tmp_path)
    assert (stray / "data").exists()
    finding = by_name(watch.run(str(tmp_path), rates=False))["directory"]
    assert finding["text"] == "it can be written; 1 left by killed doctors removed"
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_stray_stays(tmp_path: Path) -> None:
    here, dead = places._machine(), 2**22 + 1  # no process has a number that large
    assert not places._lives(dead)
    names = {
        "another's": f".velocpy-doctor-{here ^ 1:08x}-{dead}-{0:016x}",
        "ours alive": f".velocpy-doctor-{here:08x}-{os.getpid()}-{0:016x}",
        "longer": f".velocpy-doctor-{here:08x}-{dead}-{0:016x}x",
        "scratch": f".velocpy-scratch-{here:08x}-{dead}-{0:016x}",
        "file": f".velocpy-doctor-{here:08x}-{dead}-{1:016x}",
        "link": f".velocpy-doctor-{here:08x}-{dead}-{2:016x}",
        "deep": f".velocpy-doctor-{here:08x}-{dead}-{3:016x}",
    }
    for what, name in names.items():
        if what == "file":
            (tmp_path / name).touch()
        elif what == "link":
            (tmp_path / name).symlink_to(tmp_path)
        else:
            (tmp_path / name).mkdir()
    (tmp_path / names["deep"] / "below").mkdir()  # no doctor makes that
    (tmp_path / names["deep"] / "below" / "data").touch()
    place = Place(tmp_path)
    assert place.remove_strays() == 0
    assert {entry.name for entry in tmp_path.iterdir()} == set(names.values())
    assert (tmp_path / names["deep"] / "below" / "data").exists()
    old = time.time() - places.STRAY_AGE - 60
    os.utime(tmp_path / names["another's"], (old, old))
    assert place.remove_strays() == 1
    assert not (tmp_path / names["another's"]).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives directories away")
def test_strays_of_others_stay(tmp_path: Path) -> None:
    stray = killed_doctor(tmp_path)
    os.chown(stray, 65534, -1)
    assert Place(tmp_path).remove_strays() == 0
    os.chown(stray, os.geteuid(), -1)
    assert Place(tmp_path).remove_strays() == 1


# Each trial.


def test_findings_say_what_helps() -> None:
    with pytest.raises(ValueError, match="remedy"):
        Finding("failed", "broken")
    with pytest.raises(ValueError, match="remedy"):
        Finding("ok", "fine", "Do something.")
    for code in errno.errorcode:
        assert refused(OSError(code, "")).remedy
    assert refused(OSError("no number")).verdict == "failed"


def test_directories_that_cannot_be_synced(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    refusing(monkeypatch, files.os, "fsync", errno.EINVAL, lambda _: True)
    finding = files.look_at_durable_writes(place)
    assert finding.verdict == "warning"
    assert finding.facts["directory_fsync_seconds"] is None


def test_slow_syncs(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    monkeypatch.setattr(files.os, "fdatasync", lambda _: time.sleep(0.06))
    monkeypatch.setattr(files, "ENOUGH", 0.1)
    finding = files.look_at_durable_writes(place)
    assert finding.verdict == "warning"
    assert finding.facts["rounds"] == 2, "a slow disk is not asked twenty times"
    assert finding.facts["fdatasync_median_seconds"] >= 0.06


@pytest.mark.parametrize(("call", "code"), [("fdatasync", errno.EIO), ("pwrite", errno.EDQUOT), ("fsync", errno.EIO)])
def test_writes_that_fail(call: str, code: int, monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    refusing(monkeypatch, files.os, call, code, lambda *_: True)
    finding = child.attempt("durable writes", place)
    assert finding.verdict == "failed"
    assert finding.facts == {"errno": errno.errorcode[code]}


def test_writes_cut_short(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    monkeypatch.setattr(files.os, "pwrite", lambda fd, data, at: len(data) - 1)
    assert child.attempt("durable writes", place).facts == {"errno": "ENOSPC"}


def test_bytes_that_change(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(files.os, "pwrite", lambda fd, data, at: pwrite(fd, bytes(len(data)), at))
    monkeypatch.setattr(files.os, "pwritev", lambda fd, data, at: len(data[0]))
    monkeypatch.setattr(files.os, "preadv", lambda fd, data, at: len(data[0]))
    for name in ("durable writes", "direct I/O", "disk rates"):
        finding = child.attempt(name, place)
        assert finding.verdict == "failed", name
        assert finding.text == "what was written came back changed"


def no_direct(fd: Any, flags: int, *_: Any) -> bool:
    return bool(flags & os.O_DIRECT)


def test_no_direct_io(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    refusing(monkeypatch, files.os, "open", errno.EINVAL, no_direct)
    finding = files.look_at_direct_io(place)
    assert finding.verdict == "warning"
    assert "no direct I/O" in finding.text
    measured = rates.look(place)
    assert measured.facts["direct"] is False
    assert measured.text.endswith("through the page cache")
    assert measured.facts["bytes"] <= rates.MOST_IN_MEMORY


def test_direct_io_that_fails(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    refusing(monkeypatch, files.os, "open", errno.EIO, no_direct)
    for name in ("direct I/O", "disk rates"):
        assert child.attempt(name, place).facts == {"errno": "EIO"}


def test_direct_io(place: Place) -> None:
    finding = files.look_at_direct_io(place)
    assert finding.verdict in ("ok", "warning")
    assert (place.room / "direct").stat().st_size == (files.BLOCK if finding.verdict == "ok" else 0)


def test_no_unnamed_files(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    usual = files.look_at_unnamed_files(place)
    assert usual.verdict in ("ok", "not there")
    assert "cannot get one" not in usual.text
    if usual.verdict == "ok":
        (place.room / "linked").unlink()
        with monkeypatch.context() as patched:
            refusing(patched, files.os, "link", errno.ENOENT, lambda *_: True)
            assert "cannot get one" in files.look_at_unnamed_files(place).text
    unnamed = os.O_TMPFILE
    refusing(monkeypatch, files.os, "open", errno.EOPNOTSUPP, lambda _, flags, *__: flags & unnamed == unnamed)
    assert files.look_at_unnamed_files(place).verdict == "not there"


def test_no_fallocate(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    refusing(monkeypatch, system, "fallocate", errno.EOPNOTSUPP, lambda *_: True)
    assert files.look_at_preallocation(place).verdict == "not there"
    assert files.look_at_holes(place).verdict == "warning"
    assert rates.look(place).verdict in ("ok", "warning")


def test_fallocate(place: Place) -> None:
    finding = files.look_at_preallocation(place)
    if finding.verdict == "ok":
        assert finding.facts["allocated_bytes"] >= 1 << 20
    punched = files.look_at_holes(place)
    assert punched.verdict in ("ok", "warning")
    if punched.verdict == "ok":
        assert (place.room / "punched").read_bytes()[1 << 19 :] != bytes(1 << 19)


def test_holes_that_are_none(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    monkeypatch.setattr(system, "fallocate", lambda *_: None)
    assert files.look_at_holes(place).verdict == "failed"
    assert files.look_at_preallocation(place).verdict == "failed"


def test_files_that_are_not_sparse(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    monkeypatch.setattr(files.os, "ftruncate", lambda fd, size: os.pwrite(fd, bytes(size), 0))
    assert files.look_at_sparse_files(place).verdict == "not there"


def test_no_attributes(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    refusing(monkeypatch, files.os, "setxattr", errno.ENOTSUP, lambda *_: True)
    assert files.look_at_attributes(place).verdict == "not there"


def test_names_without_case(place: Place) -> None:
    assert files.look_at_case(place).verdict == "ok"
    (place.room / "case").touch()
    assert files.look_at_case(place).verdict == "warning"


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EACCES])
def test_no_locks(code: int, monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    refusing(monkeypatch, locks.fcntl, "lockf", code, lambda *_: True)
    finding = locks.look(place)
    assert finding.verdict == "failed"
    assert "one process alone" in (finding.remedy or "")


def test_locks(place: Place) -> None:
    assert locks.look(place).verdict == "ok"


def test_locks_that_keep_nobody_out(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    monkeypatch.setattr(locks.fcntl, "lockf", lambda *_: None)  # in this process alone
    assert locks.look(place).text == "two processes had the same lock"


def test_locks_that_are_never_given_up(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    refusing(monkeypatch, locks.fcntl, "lockf", errno.EIO, lambda _, kind: False)
    original = locks.fcntl.lockf
    monkeypatch.setattr(locks.fcntl, "lockf", lambda fd, kind: None if kind == fcntl.LOCK_UN else original(fd, kind))
    finding = locks.look(place)
    assert finding.verdict == "failed"
    assert "kept out of one given up" in finding.text


def test_slow_rates(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    monkeypatch.setattr(rates, "SLOW", 1e15)
    monkeypatch.setattr(rates, "LONG", 0.05)
    finding = rates.look(place)
    assert finding.verdict == "warning"
    assert finding.facts["bytes"] >= rates.LANES * rates.PIECE


def test_little_is_written_to_memory(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    monkeypatch.setattr(rates, "MOST_IN_MEMORY", rates.LANES * rates.PIECE)
    monkeypatch.setattr(system, "magic", lambda _: 0x01021994)
    assert rates.look(place).facts["bytes"] == rates.LANES * rates.PIECE


def free(monkeypatch: pytest.MonkeyPatch, **changes: int) -> None:
    usual = {"f_frsize": 4096, "f_blocks": 1 << 30, "f_bavail": 1 << 29, "f_files": 10**6, "f_favail": 10**5}
    answer = type("statvfs", (), usual | changes)
    monkeypatch.setattr(space.os, "statvfs", lambda _: answer)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "ok"),
        ({"f_files": 0, "f_favail": 0}, "ok"),
        ({"f_bavail": 1000}, "warning"),
        ({"f_favail": 999}, "warning"),
        ({"f_bavail": 0}, "failed"),
        ({"f_favail": 0}, "failed"),
        ({"f_blocks": 0, "f_bavail": 0}, "not there"),
    ],
)
def test_free_space(changes: dict[str, int], verdict: str, monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    free(monkeypatch, **changes)
    assert space.look(place).verdict == verdict


def test_too_little_room_for_rates(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    free(monkeypatch, f_bavail=1000)
    assert rates.look(place).verdict == "not there"


@pytest.mark.parametrize(
    ("user", "group", "verdict", "left"),
    [
        (None, None, "not there", None),
        ((0, 0), (0, 0), "not there", None),
        ((1 << 30, 5), None, "ok", (1 << 40) - 5),
        ((1 << 30, 5), (1 << 30, 7), "ok", (1 << 40) - 7),
        (None, (1 << 20, 1), "warning", (1 << 30) - 1),
        ((1 << 10, 2 << 20), None, "failed", 0),
    ],
)
def test_quotas(
    user: tuple[int, int] | None,
    group: tuple[int, int] | None,
    verdict: str,
    left: int | None,
    monkeypatch: pytest.MonkeyPatch,
    place: Place,
) -> None:
    def quota(fd: int, kind: int, owner: int) -> system.Quota:
        limits = (user, group)[kind]
        if limits is None:
            raise OSError(errno.ESRCH, "no quota")
        return system.Quota(hard=limits[0], used=limits[1])

    monkeypatch.setattr(system, "quota", quota)
    finding = space.look_at_quota(place)
    assert finding.verdict == verdict
    assert finding.facts.get("left_bytes") == left


def test_quota_asks_the_kernel(tmp_path: Path) -> None:
    """Which has no quota here, or one; but neither a wrong number nor a wrong argument."""
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        system.quota(fd, 0, os.geteuid())
    except OSError as error:
        assert error.errno in (errno.ESRCH, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EPERM)  # noqa: PT017
    finally:
        os.close(fd)


# Kinds of file systems.

MOUNTS = r"""
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:30 / /scratch rw,noatime shared:1 - lustre 10.0.0.1@tcp:/fs rw,flock,lazystatfs
31 30 0:31 / /scratch/a\040b rw master:2 shared:3 - nfs4 server:/x rw,vers=4.2
32 22 0:32 / /scratch2 rw - fuse.sshfs host: rw
33 22 0:33 / /over rw - ext4 /dev/vdb rw
34 22 0:34 / /over rw - overlay overlay rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "point", "type_"),
    [
        ("/home", "/", "ext4"),
        ("/scratch", "/scratch", "lustre"),
        ("/scratch/x", "/scratch", "lustre"),
        ("/scratch/a b/c", "/scratch/a b", "nfs4"),
        ("/scratch/a", "/scratch", "lustre"),
        ("/scratch2/x", "/scratch2", "fuse.sshfs"),
        ("/scratchy/x", "/", "ext4"),
        ("/over/x", "/over", "overlay"),
    ],
)
def test_mounts(path: str, point: str, type_: str) -> None:
    found = filesystem.mount_of(Path(path), MOUNTS)
    assert found is not None
    assert (found.point, found.type) == (point, type_)


def test_no_mounts() -> None:
    assert filesystem.mount_of(Path("/home"), "") is None


@pytest.mark.parametrize(
    ("number", "type_", "options", "verdict", "words"),
    [
        (0xEF53, "ext4", "rw", "ok", "ext4, mounted on"),
        (0x0BD00BD0, "lustre", "rw,flock", "ok", "lustre"),
        (0x0BD00BD0, "lustre", "rw,localflock", "warning", "only within a machine"),
        (0x0BD00BD0, "lustre", "rw", "warning", "not at all"),
        (0x6969, "nfs4", "rw", "warning", "the server's"),
        (0x01021994, "tmpfs", "rw", "warning", "not durable"),
        (0x794C7630, "overlay", "rw", "warning", "container"),
        (0x65735546, "fuse.sshfs", "rw", "warning", "fuse.sshfs"),
        (0x73717368, "squashfs", "ro", "warning", "cannot be written"),
        (0x1234, "brandnewfs", "rw", "ok", "brandnewfs (0x1234)"),
        (0x1234, None, "", "ok", "unknown"),
        (0x6969, None, "", "warning", "NFS"),
        (0x0BD00BD0, None, "", "ok", "Lustre"),
    ],
)
def test_kinds(
    number: int,
    type_: str | None,
    options: str,
    verdict: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    place: Place,
) -> None:
    monkeypatch.setattr(system, "magic", lambda _: number)
    line = f"1 0 0:1 / / rw - {type_} source {options}\n" if type_ else ""
    monkeypatch.setattr(filesystem, "_mountinfo", lambda: line)
    finding = filesystem.look(place)
    assert finding.verdict == verdict
    assert words in finding.text
    assert finding.facts["magic"] == number


def test_the_magic_is_the_kernels(tmp_path: Path) -> None:
    told = subprocess.run(["stat", "-f", "-c", "%t", tmp_path], capture_output=True, text=True, check=True)
    assert system.magic(tmp_path) == int(told.stdout, 16)
    with pytest.raises(FileNotFoundError):
        system.magic(tmp_path / "none")


# A store that lies there.

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held(lock: Path) -> Iterator[int]:
    """Another process that has a lock."""
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def test_a_store_and_its_writer(place: Place) -> None:
    assert owner.look(place).verdict == "not there"
    (place.path / owner.IDENTITY).write_bytes(bytes(8192))
    assert owner.look(place).text == "a store lies here, and nobody writes it"
    (place.path / owner.LOCK).touch()
    assert owner.look(place).text == "a store lies here, and nobody writes it"
    with held(place.path / owner.LOCK) as process:
        finding = owner.look(place)
        assert finding.verdict == "ok"
        assert finding.facts["process"] == process
        assert f"process {process} (" in finding.text
    assert owner.look(place).text == "a store lies here, and nobody writes it"


def test_a_store_that_is_none(place: Place) -> None:
    (place.path / owner.IDENTITY).mkdir()
    assert owner.look(place).verdict == "warning"
    (place.path / owner.IDENTITY).rmdir()
    (place.path / owner.IDENTITY).touch()
    (place.path / owner.LOCK).symlink_to("/etc/passwd")
    assert owner.look(place).verdict == "warning"


def test_a_lock_that_is_a_pipe_holds_nobody_up(place: Place) -> None:
    (place.path / owner.IDENTITY).touch()
    os.mkfifo(place.path / owner.LOCK)
    assert owner.look(place).verdict in ("ok", "warning")


def test_writers_that_are_not_known(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    (place.path / owner.IDENTITY).touch()
    for process in (0, 2**22 + 1):
        monkeypatch.setattr(owner, "holder", lambda _, process=process: process)
        assert "another machine or container" in owner.look(place).text


def test_the_doctor_takes_no_lock_from_its_own_process(tmp_path: Path) -> None:
    for name in (owner.IDENTITY, owner.LOCK):
        (tmp_path / name).write_bytes(b"as it was")
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in (owner.IDENTITY, owner.LOCK)}
    with (tmp_path / owner.LOCK).open("r+b") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        finding = by_name(watch.run(str(tmp_path), rates=False))["store"]
        assert finding["facts"]["process"] == os.getpid()
        code = f"from velocpy.trial.owner import holder; from pathlib import Path; print(holder(Path({lock.name!r})))"
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert int(told.stdout) == os.getpid(), "the lock was given up"
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in before} == before
    assert {entry.name for entry in tmp_path.iterdir()} == set(before)
