"""The software that a result on a device depends on."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import velocpy


def software() -> dict[str, str]:
    """What the result depends on, beside the machine's facts."""
    found = {"core": str(velocpy.build_info().get("core", {}).get("revision", "unknown"))[:12]}
    with contextlib.suppress(OSError):
        match = re.search(r"\d{3,}(\.\d+)+", Path("/proc/driver/nvidia/version").read_text())
        found["driver"] = match.group() if match else "unknown"
    with contextlib.suppress(ImportError):
        import torch

        found["torch"] = str(torch.__version__)
    return found
