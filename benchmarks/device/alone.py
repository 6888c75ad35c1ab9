"""Results of benchmarks that run on a machine with nothing but kernels: neither a built velocpy nor Go."""

from __future__ import annotations

import datetime
import importlib.util
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import ROOT

if TYPE_CHECKING:
    from velocpy.bench.report import Report


def new_report(name: str, settings: dict[str, Any]) -> Report:
    """A report of velocpy.bench, from the checkout: the package itself cannot be imported before it is built."""
    module_name = "velocpy_bench_report"
    path = ROOT / "python" / "velocpy" / "bench" / "report.py"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"the checkout has no {path.relative_to(ROOT)}")
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    report: Report = module.Report(name, settings)
    return report


def machine(command: str, commit: str) -> dict[str, Any]:
    """Facts as velocpy.bench.machine tells them."""
    cpu = [
        line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu[0] if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "go": "without Go",
        "commit": commit or head(),
        "load": [round(x, 2) for x in os.getloadavg()],
        "command": command,
    }


def head() -> str:
    """The commit of the checkout, with ``+`` when it has changes; empty if git does not know."""
    git = ["git", "-C", str(ROOT)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        dirty = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return commit.stdout.strip() + ("+" if dirty.stdout.strip() else "")


def finish(report: Report, facts: dict[str, Any], out: Path | None) -> None:
    """Prints the report, writes it as JSON if a path is given, and ends the process: 1 if something was wrong."""
    report.show()
    if out is not None:
        text = json.dumps(report.facts(facts), indent=1, ensure_ascii=False)
        out.write_text(text + "\n", encoding="utf-8")
    sys.exit(any(not bar.holds for bar in report.bars if not bar.measured))
