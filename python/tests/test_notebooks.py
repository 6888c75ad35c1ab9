"""The notebooks run from top to bottom, are committed with their outputs, and would notice wrong bytes."""

from __future__ import annotations

import base64
import re
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FIRST = ROOT / "notebooks" / "first_history.ipynb"
TOUR = ROOT / "docs" / "tour.ipynb"
#: How many pictures are in each of them.
PICTURES = {"adjoint": 4, "first_history": 2, "store_on_disk": 3, "training": 2, "two_runs": 2, "tour": 3}
#: What else they need.
LIBRARIES = {"adjoint": "checkpoint_schedules", "training": "torch"}

#: The kernel's own libraries warn about their sockets and loops.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def executed(notebook: Any, folder: Path) -> Any:
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}
    ).execute()
    return joined(notebook)


def joined(notebook: Any) -> Any:
    """The same, where each cell prints in one output: what it prints may come in several pieces."""
    for cell in notebook.cells:
        whole: list[Any] = []
        for output in cell.get("outputs", ()):
            if whole and output.output_type == whole[-1].output_type == "stream" and output.name == whole[-1].name:
                whole[-1].text += output.text
            else:
                whole.append(output)
        if "outputs" in cell:
            cell.outputs = whole
    return notebook


def outputs(notebook: Any, kind: str) -> list[str]:
    """All outputs of a MIME type, in order."""
    return [
        output["data"][kind]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if kind in output.get("data", {})
    ]


def test_the_page_names_all_notebooks() -> None:
    page = (ROOT / "docs" / "notebooks.md").read_text()
    found = [Path(name).stem for name in re.findall(r"\]\(([\w/.]+)\.ipynb\)", page)]
    assert sorted(found) == sorted(path.stem for path in [*NOTEBOOKS, TOUR]) == sorted(PICTURES)


@pytest.mark.parametrize("path", [*NOTEBOOKS, TOUR], ids=lambda path: path.stem)
def test_committed_with_outputs(path: Path) -> None:
    """Every cell was executed once, in order, without a warning; only temporary names tell anything of the machine."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        assert "execution" not in cell.metadata  # the hours of the run
        for output in cell.outputs:
            assert output.output_type in ("execute_result", "display_data", "stream"), output
            assert output.get("name") != "stderr", output.text
    shown = re.sub(r"/tmp/tmp\w+", "", "".join(str(text) for text in texts(notebook)))
    assert not re.search(r"(^|[\s\"'>])/\w+/\w", shown), shown
    assert len(outputs(notebook, "image/png")) == PICTURES[path.stem]
    if path in (FIRST, TOUR):
        assert len(outputs(notebook, "text/html")) >= 5
    assert path.stat().st_size < 300_000


def texts(notebook: Any) -> list[str]:
    """All that the outputs say in words."""
    words = [output.text for cell in notebook.cells for output in cell.get("outputs", ()) if "text" in output]
    return words + outputs(notebook, "text/plain") + outputs(notebook, "text/html")


def kind(output: Any) -> tuple[str, list[str]]:
    return output.output_type, sorted(output.get("data", {}))


def require_pictures(notebook: Any) -> None:
    """Every picture of it shows something."""
    from matplotlib.image import imread

    for data in outputs(notebook, "image/png"):
        assert imread(BytesIO(base64.b64decode(data))).std() > 0.05


def test_first_history(tmp_path: Path) -> None:
    committed = nbformat.read(FIRST, as_version=4)
    notebook = executed(nbformat.read(FIRST, as_version=4), tmp_path)
    for cell, now in zip(committed.cells, notebook.cells, strict=True):
        assert list(map(kind, cell.get("outputs", ()))) == list(map(kind, now.get("outputs", ())))
    assert outputs(notebook, "text/plain") == outputs(committed, "text/plain")
    pages = "".join(outputs(notebook, "text/html"))
    for words in ("Store", "History", "Ticket", "disk"):
        assert words in pages
    assert not list(tmp_path.iterdir())
    require_pictures(notebook)


def read(name: str) -> Any:
    if name in LIBRARIES and find_spec(LIBRARIES[name]) is None:
        pytest.skip(f"{LIBRARIES[name]} is not installed")
    return joined(nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4))


def streams(notebook: Any) -> list[str]:
    """What its cells print, without numbers, times, checksums and the width of columns."""
    printed = [output.text for cell in notebook.cells for output in cell.get("outputs", ()) if "text" in output]
    return [" ".join(re.sub(r"\b[0-9a-f]{16}\b|-?\d+(\.\d+)?(e[+-]?\d+)?", "0", text).split()) for text in printed]


@pytest.mark.parametrize("name", ["adjoint", "store_on_disk", "training", "two_runs"])
def test_it_runs(name: str, tmp_path: Path) -> None:
    """Cell by cell it gives outputs of the kinds that are committed, with the same words; its assertions hold."""
    committed, notebook = read(name), executed(read(name), tmp_path)
    for cell, now in zip(committed.cells, notebook.cells, strict=True):
        assert list(map(kind, cell.get("outputs", ()))) == list(map(kind, now.get("outputs", ()))), cell.source
    assert outputs(notebook, "text/plain") == outputs(committed, "text/plain")
    assert streams(notebook) == streams(committed)
    require_pictures(notebook)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "original", "wrong"),
    [
        ("first_history", 'forward.checkpoint(n, {"u": u}', 'forward.checkpoint(n, {"u": u + (n == 7)}'),
        ("first_history", "reversed(range(STEPS))", "range(STEPS)"),
        ("adjoint", "forward.checkpoint(n, u=u)", "forward.checkpoint(n, u=u + (n == 7) / 2**30)"),
        ("store_on_disk", "numpy.full((512, 512), n,", "numpy.full((512, 512), n + (n == 7),"),
        ("two_runs", "n == 23", "n == 24"),
    ],
)
def test_it_notices_what_is_wrong(name: str, original: str, wrong: str, tmp_path: Path) -> None:
    """Changed so that other bytes, or another order, come back, a notebook fails by its own assertions."""
    notebook = read(name)
    changed = [cell for cell in notebook.cells if original in cell.source]
    assert changed
    changed[0].source = changed[0].source.replace(original, wrong)
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="AssertionError"):
        executed(notebook, tmp_path)


def test_the_tour_runs(tmp_path: Path) -> None:
    """Cell by cell it gives outputs of the kinds that are committed; their texts are equal where no time is in them."""
    committed = nbformat.read(TOUR, as_version=4)
    again = executed(nbformat.read(TOUR, as_version=4), tmp_path)
    for cell, now in zip(committed.cells, again.cells, strict=True):
        if cell.cell_type == "code":
            kinds = [sorted(output["data"]) for output in cell.outputs]
            assert kinds == [sorted(output["data"]) for output in now.outputs]
    assert outputs(again, "text/plain") == outputs(committed, "text/plain")
