"""No two modules of the package import each other, by whatever way."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_graph import circles, graph_of


def test_the_package_has_no_import_circle(root: Path) -> None:
    graph = graph_of(root / "python" / "velocpy")
    assert "velocpy._core" in graph["velocpy.store"]
    assert "velocpy.plot.tiers" in graph["velocpy.store"], "imports inside of functions count"
    assert circles(graph) == []


@pytest.mark.parametrize(
    "back",
    [
        "from .one import x",
        "from . import one",
        "from p import one",
        "import p.one",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .one import x",
        "def f():\n    from .one import x",
        "from .three import y",
    ],
)
def test_a_circle_is_found(tmp_path: Path, back: str) -> None:
    package = tmp_path / "p"
    package.mkdir()
    files = {"__init__": "", "one": "from .two import x", "two": "x = 1", "three": "from . import one"}
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    assert circles(graph_of(package)) == []
    (package / "two.py").write_text(back)
    (found,) = circles(graph_of(package))
    assert {"p.one", "p.two"} <= set(found)


def test_a_package_that_its_modules_import_from_is_a_circle(tmp_path: Path) -> None:
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text("from .one import x\ny = 1")
    (package / "one.py").write_text("from . import y\nx = 1")
    assert circles(graph_of(package)) == [["p", "p.one"]]
