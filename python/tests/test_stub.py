"""The hand-written stub of the extension against the signatures that the extension writes into its docstrings.

stubtest, in `make lint`, compares the names; it cannot see the parameters of functions written in C++.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from velocpy import _core

STUB = Path(_core.__file__).with_name("_core.pyi")
EXACT = {"None", "bool", "bytes", "int", "str"}


def functions() -> Iterator[tuple[str, ast.FunctionDef, object]]:
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node, getattr(_core, node.name)
        elif isinstance(node, ast.ClassDef):
            for method in (m for m in node.body if isinstance(m, ast.FunctionDef)):
                if any(ast.unparse(d) == "property" for d in method.decorator_list):
                    continue
                yield f"{node.name}.{method.name}", method, getattr(getattr(_core, node.name), method.name)


FUNCTIONS = {name: (stub, value) for name, stub, value in functions()}


def parameters(signature: str) -> list[str]:
    """The names in "a: x[y, z], b: w"; commas inside brackets separate no parameters."""
    while signature != (signature := re.sub(r"\[[^\[\]]*\]", "", signature)):
        pass
    return [part.split(":")[0].strip() for part in signature.split(",") if part.strip()]


def test_the_stub_says_something() -> None:
    assert {"load", "Store.__init__", "History.checkpoint", "History.restore"} <= FUNCTIONS.keys()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_stub_has_the_parameters_of_the_extension(name: str) -> None:
    stub, value = FUNCTIONS[name]
    written = re.match(rf"{stub.name}\((.*)\) -> (.*)", value.__doc__ or "")
    assert written, f"{name} has no signature in its docstring"
    assert [argument.arg for argument in stub.args.args] == parameters(written[1])
    assert not stub.args.kwonlyargs
    assert not stub.args.defaults or "=" in written[1]
    if written[2] in EXACT and stub.returns is not None:
        assert ast.unparse(stub.returns) == written[2]
