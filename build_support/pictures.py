"""The pictures of the README that show velocpy at work: ``python -m build_support.pictures docs``.

They are captured from real runs: the demo's image and timeline, and what ``velocpy ls`` and ``show`` print of a store.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

#: What the terminal shows; the first word of each command, ``velocpy``, is left out.
COMMANDS = (("ls", "run-1"), ("ls", "run-1", "train"), ("show", "run-1", "train", "2"))
# Pixels.
LINE, CHARACTER, MARGIN = 18, 7.8, 16


def write_store(path: Path) -> None:
    """A durable store with two histories."""
    import numpy as np

    import velocpy

    with velocpy.open(path, host="16MiB", disk="256MiB") as store:
        train = store.history("train")
        for step in range(3):
            layer = {"weight": np.full((64, 64), step, np.float32), "bias": np.full(64, step, np.float32)}
            train.checkpoint(step, model={"layer": layer}, optim={"lr": 0.1}, meta={"loss": round(1 / (step + 1), 3)})
            store.wait("disk")  # one after the other, as they are listed
        store.history("forward").checkpoint(0, u=np.zeros(1000))


def session(folder: Path) -> list[str]:
    """The lines of a terminal in which the commands ran."""
    lines = []
    for command in COMMANDS:
        done = subprocess.run(
            [sys.executable, "-m", "velocpy", *command], cwd=folder, capture_output=True, text=True, check=True
        )
        lines += [" ".join(("$ velocpy", *command)), *done.stdout.rstrip().splitlines(), ""]
    return lines[:-1]


def terminal(lines: list[str]) -> str:
    """The text of an SVG file with these lines."""
    width = round(max(map(len, lines)) * CHARACTER) + 2 * MARGIN
    height = len(lines) * LINE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        'font-family="monospace" font-size="13">',
        "<title>velocpy ls and velocpy show</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#1b2330"/>',
    ]
    for number, line in enumerate(lines):
        colour = "#f0a04b" if line.startswith("$ ") else "#dfe7f1"
        place = f'x="{MARGIN}" y="{MARGIN + number * LINE + 13}"'
        # Each line has the width that its characters have, whatever font the reader's machine takes.
        extent = f'textLength="{round(len(line) * CHARACTER)}" lengthAdjust="spacingAndGlyphs"'
        parts.append(f'<text {place} fill="{colour}" xml:space="preserve" {extent}>{escape(line)}</text>')
    return "\n".join([*(part for part in parts if not part.endswith("></text>")), "</svg>\n"])


def main(target: Path) -> None:
    """Write the three pictures into the folder ``target``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_store(folder / "run-1")
        (target / "terminal.svg").write_text(terminal(session(folder)), encoding="utf-8")
        demo = [sys.executable, "-m", "velocpy", "demo", "--quiet", "--out", str(folder / "out")]
        subprocess.run(demo, cwd=folder, check=True)
        for picture in ("image", "timeline"):
            shutil.copyfile(folder / "out" / f"{picture}.png", target / f"demo-{picture}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
