"""Limits that schedulers set: where the core would not start, the process lives and is told, with both numbers."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from conftest import RunPython

import velocpy
from velocpy import _core, limits

GIB = 1 << 30

#: Leaves this process so many bytes of address space.
LIMIT = """
import os, resource, sys
def leave(nbytes):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + nbytes, resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize("left", [1 << 20, 512 << 20, 1 << 30, 2 << 30])
def test_too_little_address_space(run_python: RunPython, left: int) -> None:
    done = run_python(
        LIMIT
        + """
import velocpy.store
leave(int(sys.argv[1]))
attempts = [velocpy.build_info, velocpy.open]
attempts += [lambda host=host: velocpy.open(host=host) for host in ("1MiB", "64GiB")]
for attempt in attempts:
    try:
        attempt()
    except velocpy.errors.CoreUnavailable as error:
        print(error)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
velocpy.open(host="1MiB").close()
print("open")
""",
        str(left),
    )
    assert done.returncode == 0, done.stderr
    *refusals, last = done.stdout.splitlines()
    assert len(refusals) == 4
    for text in refusals:
        assert re.search(r"^RLIMIT_AS leaves [\d.]+ [MG]iB of address space, and the core needs [\d.]+ GiB: Go", text)
        assert "ulimit -v" in text
        assert "host" not in text
    assert "Nothing was loaded" in refusals[0]
    assert "Nothing was opened" in refusals[1]
    assert last == "open"


def test_too_little_address_space_for_a_core_that_is_loaded(run_python: RunPython) -> None:
    done = run_python(
        LIMIT
        + """
import velocpy.store
velocpy.build_info()
leave(100 << 20)
for host in ("1MiB", "auto"):
    try:
        velocpy.open(host=host)
    except velocpy.errors.CoreUnavailable as error:
        print(error)
"""
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    for text in done.stdout.splitlines():
        assert re.search(r"^RLIMIT_AS leaves [\d.]+ MiB .* needs 512.0 MiB: Go .*Nothing was opened", text)


def test_the_limit_of_the_documentation() -> None:
    """`ulimit -v 2000000`, as in docs/clusters.md."""
    program = (
        "import velocpy\ntry:\n    velocpy.open()\nexcept velocpy.errors.CoreUnavailable as error:\n    print(error)"
    )
    done = subprocess.run(
        ["sh", "-c", 'ulimit -v 2000000; exec "$@"', "sh", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert re.search(r"^RLIMIT_AS leaves [\d.]+ [MG]iB .* needs 3.0 GiB", done.stdout), done.stderr


@pytest.mark.parametrize("processors", ["2", "64"])
def test_what_is_needed_is_enough(run_python: RunPython, processors: str) -> None:
    """Also for stores at work on every thread that the core starts."""
    done = run_python(
        LIMIT
        + """
import numpy, tempfile, velocpy
from velocpy import knobs, limits
host = 32 << 20
leave(limits.room(knobs.max_procs()).needed_address_space + host + (16 << 20))
u = numpy.zeros(1 << 20, numpy.uint8)
for durable in (False, True):
    with tempfile.TemporaryDirectory() as path, velocpy.open(path, host=host, disk="1GiB", durable=durable) as store:
        history = store.history("h")
        for i in range(100):
            history.checkpoint(i, u=u)
        history.hint(reversed(range(100)))
        for i, state in history.restore_iter():
            assert not state["u"].any()
print("done")
""",
        env={"VELOCPY_MAX_PROCS": processors},
    )
    assert done.stdout == "done\n", done.stderr


def test_a_host_tier_that_leaves_too_little(run_python: RunPython) -> None:
    done = run_python(
        LIMIT
        + """
import velocpy
leave(7 << 30)
for _ in range(2):  # before the core is loaded, and after
    try:
        velocpy.open(host="5500MiB")
    except velocpy.errors.InvalidBudget as error:
        print(error)
    velocpy.open(host="1MiB").close()
"""
    )
    assert done.returncode == 0, done.stderr
    before, after = done.stdout.splitlines()
    for line in (before, after):
        assert re.search(r"^host is 5.4 GiB, RLIMIT_AS leaves [\d.]+ GiB .*Nothing was opened", line)


def test_auto_is_within_the_address_space(run_python: RunPython) -> None:
    done = run_python(
        LIMIT
        + """
import velocpy
from velocpy import budget
budget.available_memory = lambda: 1 << 40
leave(5 << 30)
for _ in range(2):  # before the core is loaded, and after
    with velocpy.open() as store:
        print(store.stats()["tiers"]["host"]["capacity"])
"""
    )
    assert done.returncode == 0, done.stderr
    for capacity in done.stdout.split():
        assert 64 << 20 <= int(capacity) <= 2 << 30


def test_too_few_threads(run_python: RunPython) -> None:
    """RLIMIT_NPROC stands for pids.max too: both refuse a thread."""
    done = run_python(
        """
        import os, resource
        import velocpy
        others = os.getuid() != 0
        if not others:
            os.setuid(65534)  # root may start any number
        resource.setrlimit(resource.RLIMIT_NPROC, (1 if others else 6, 100))
        try:
            velocpy.build_info()
        except velocpy.errors.CoreUnavailable as error:
            print(others, error)
        """
    )
    assert done.returncode == 0, done.stderr
    found = re.search(
        r"^(True|False) this process may start (\d+) more threads, and the core needs (\d+): Go", done.stdout
    )
    assert found, done.stdout
    assert "pids.max" in done.stdout
    assert int(found[2]) < int(found[3])
    assert found[1] == "True" or found[2] == "5"


def test_threads_that_can_be_started() -> None:
    assert [_core.startable_threads(count) for count in (-1, 0, 1, 40)] == [0, 0, 1, 40]


def test_stacks_count(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = limits.room(2).needed_address_space
    monkeypatch.setattr(limits, "_stack", lambda: GIB)
    assert limits.room(2).needed_address_space == usual + limits.room(2).needed_threads * (GIB - (8 << 20))


def test_the_doctor_tells() -> None:
    command = [sys.executable, "-m", "velocpy", "doctor", "--json", "--no-rates"]
    limited = subprocess.run(
        ["sh", "-c", 'ulimit -v 2000000; exec "$@"', "sh", *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    report = json.loads(limited.stdout)
    assert (limited.returncode, report["verdict"], report["gpus"]) == (1, "failed", 0)
    (finding,) = report["findings"]
    assert (finding["what"], finding["verdict"]) == ("address space", "failed")
    assert "RLIMIT_AS leaves" in finding["text"]
    assert finding["facts"]["bytes"] < finding["facts"]["needed_bytes"]
    assert "ulimit -v" in finding["remedy"]


def test_the_doctor_is_content() -> None:
    from velocpy.cli import diagnosis

    report = diagnosis.examine(rates=False)
    found = {finding["what"]: finding for finding in report["findings"]}
    assert found["address space"]["verdict"] == found["threads"]["verdict"] == "ok"
    assert found["threads"]["facts"]["startable"] == found["threads"]["facts"]["needed"]


def test_a_limit_is_no_reason_to_import(run_python: RunPython) -> None:
    done = run_python(LIMIT + "leave(1 << 28)\nimport velocpy\nprint(velocpy.errors.CoreUnavailable.__name__)")
    assert done.stdout == "CoreUnavailable\n", done.stderr
    assert velocpy.errors.CoreUnavailable is velocpy.errors.CoreUnavailable
