"""What `velocpy ls` prints: the histories of a store, or the checkpoints of one, in an order of the user's choice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from velocpy.ondisk import Path, View, bytes_of_text, meta_of

from .output import finite, message

#: Line above the columns, which the core writes.
HEADINGS = {
    "histories": f"{'checkpoints':>11}{'size':>11}  {'latest (UTC)':<19}  history",
    "rows": f"{'size':>10}{'on disk':>11}{'regions':>9}{'meta':>10}{'version':>10}  {'captured (UTC)':<19}  key",
}

Facts = dict[str, Any]


def _time_order(time: str | None) -> str:
    """Those without a time first: they are of older versions."""
    return time or ""


def _key_order(key: int | str) -> tuple[bool, int | str]:
    """Numbers before texts, which cannot be compared with them."""
    return isinstance(key, str), key


#: What lines can be sorted by.
ORDERS: dict[str, dict[str, Callable[[Facts], Any]]] = {
    "histories": {
        "name": lambda facts: facts["history"],
        "size": lambda facts: facts["bytes"] + facts["kept_bytes"],
        "checkpoints": lambda facts: facts["checkpoints"],
        "version": lambda facts: facts["last_serial"],
        "latest": lambda facts: _time_order(facts["latest"]),
    },
    "rows": {
        "key": lambda facts: _key_order(facts["key"]),
        "size": lambda facts: facts["bytes"],
        "disk": lambda facts: facts["stored_bytes"],
        "regions": lambda facts: facts["regions"],
        "meta": lambda facts: facts["meta_bytes"],
        "version": lambda facts: facts["serial"],
        "captured": lambda facts: _time_order(facts["captured"]),
    },
}


def listing(
    path: Path,
    history: str | None,
    *,
    as_json: bool = False,
    sort: str | None = None,
    reverse: bool = False,
    with_meta: bool = False,
) -> Iterator[bytes]:
    """The text to be printed, piece by piece: a table with a heading, or with ``as_json`` one message a line.

    Sorted, or with meta, all lines are in memory at once; else they come as the core makes them.
    """
    op = "histories" if history is None else "rows"
    request = {} if history is None else {"history": bytes_of_text(history)}
    head = message("history" if history is None else "checkpoint", {})[:-1] + ", "
    heading = b"" if as_json else f"{HEADINGS[op]}{'  meta' if with_meta else ''}\n".encode()
    with View(path) as view:
        if sort is None and not reverse and not with_meta:
            for page in view.pages(op, **request, head=head if as_json else ""):
                yield heading + page
                heading = b""
            return
        rows = list(view.lines(op, **request, head=head))
        lines = _lines(view, op, request) if not as_json else [b""] * len(rows)
        if with_meta:
            lines = [_with_meta(view, facts, line) for facts, line in zip(rows, lines, strict=True)]
        order = list(range(len(rows)))
        if sort is not None:
            order.sort(key=lambda place: ORDERS[op][sort](rows[place]))
        yield heading
        for place in reversed(order) if reverse else order:
            yield (json.dumps(finite(rows[place]), allow_nan=False).encode() if as_json else lines[place]) + b"\n"


def _lines(view: View, op: str, request: dict[str, Any]) -> list[bytes]:
    return b"".join(view.pages(op, **request, head="")).split(b"\n")[:-1]


def _with_meta(view: View, facts: Facts, line: bytes) -> bytes:
    """The line with the checkpoint's meta behind it; the facts have it too."""
    facts["meta"] = meta_of(view, facts["history"], facts["key"]) if facts["meta_bytes"] else None
    return line + b"  " + (b"-" if facts["meta"] is None else json.dumps(facts["meta"]).encode())
