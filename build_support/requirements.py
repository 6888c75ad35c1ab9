"""Tells pip what the package and its extras require: ``python -m build_support.requirements dev,docs``.

The environment of the tests is installed from it while the core is built. Python 3.10 has no reader of TOML: there
nothing is told, and pip reads the requirements of the package once that is installed.
"""

from __future__ import annotations

import sys
from pathlib import Path


def requirements(extras: list[str]) -> list[str]:
    """The requirements of the package and of these extras."""
    try:
        import tomllib
    except ImportError:
        return []
    text = (Path(__file__).resolve().parents[1] / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    return [*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra])]


if __name__ == "__main__":
    sys.stdout.write("".join(f"{each}\n" for each in requirements(sys.argv[1].split(","))))
