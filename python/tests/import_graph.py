"""Which modules of a package import which, read from their sources: nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

Graph = dict[str, set[str]]


def modules_of(package: Path) -> dict[str, Path]:
    """The files of a package's modules by name, stubs of compiled modules included."""
    found: dict[str, Path] = {}
    for file in sorted([*package.rglob("*.py"), *package.rglob("*.pyi")]):
        parts = file.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def graph_of(package: Path) -> Graph:
    """What each module of the package imports of it: at its top, under TYPE_CHECKING, or inside of a function.

    ``from . import name`` imports the module ``name`` where there is one, and the package itself otherwise. That Python
    runs a package before its modules counts for nothing: every module would import its package.
    """
    files = modules_of(package)
    return {name: set(_imported(name, file, files)) - {name} for name, file in files.items()}


def _imported(name: str, file: Path, files: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(), str(file))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = name.split(".") if file.stem == "__init__" else name.split(".")[:-1]
                parts = parts[: len(parts) + 1 - node.level]
                base = ".".join([*parts, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                if full in files or base in files:
                    yield full if full in files else base


def circles(graph: Graph) -> list[list[str]]:
    """The groups of modules that import each other, directly or by others (Tarjan, SIAM J. Comput. 1972)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in number:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], number[other])
        if lowest[module] == number[module]:
            place = stack.index(module)
            group = stack[place:]
            del stack[place:]
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in number:
            visit(module)
    return found
