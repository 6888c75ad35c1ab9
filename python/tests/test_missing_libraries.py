"""A module whose library is not installed says in one line what to install."""

from __future__ import annotations

import pytest
from conftest import RunPython

MODULES = {
    "velocpy.adjoint": ("checkpoint_schedules", "adjoint"),
    "velocpy.dcp": ("torch", "torch"),
    "velocpy.fs": ("fsspec", "fsspec"),
    "velocpy.integrations.hf": ("transformers", "hf"),
    "velocpy.integrations.lightning": ("lightning", "lightning"),
}


@pytest.mark.parametrize("module", MODULES)
def test_the_error_says_what_to_install(run_python: RunPython, module: str) -> None:
    library, extra = MODULES[module]
    done = run_python(
        """
        import importlib, sys
        from velocpy.extra import MissingExtra
        assert sys.argv[2] not in sys.modules
        sys.modules[sys.argv[2]] = None
        try:
            importlib.import_module(sys.argv[1])
        except MissingExtra as error:
            print(error)
        """,
        module,
        library,
    )
    assert done.stdout == (
        f"{module} needs {library}, which is not installed: pip install 'velocpy[{extra}]', or '.[{extra}]' in a "
        "checkout\n"
    ), done.stderr
