"""Short HTML representations for notebooks. Everything that a user named is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

from .budget import size_text
from .errors import TIERS, VelocError

if TYPE_CHECKING:
    from .history import History
    from .lease import Lease
    from .plan import Plan
    from .store import Store
    from .ticket import Ticket

#: Rows of a table; a history may have a million checkpoints.
ROWS = 10


def store(shown: Store) -> str:
    """Tiers and histories."""
    try:
        use = shown.stats()["tiers"]
    except VelocError as error:
        return _titled(f"Store, {'closed' if shown.closed else type(error).__name__}", [])
    tiers = [
        (name, size_text(tier["capacity"]), size_text(tier["used"]), _share(tier["used"], tier["capacity"]))
        for name, tier in sorted(use.items(), key=lambda item: TIERS.index(item[0]))
    ]
    histories = [(history.name, history._status()) for history in shown.histories]
    return _titled("Store", [_table(("tier", "budget", "used", ""), tiers), _table(("history", ""), histories)])


def history(shown: History) -> str:
    """The first keys, their sizes and where their bytes are."""
    title = f"History {shown.name!r}: {shown._status()}"
    rows = []
    try:
        keys = list(shown)
        for key in keys[:ROWS]:
            found = shown._core.lookup(key)
            if found is not None:
                rows.append((repr(key), size_text(found[0]), ", ".join(shown.tiers(key))))
    except VelocError:
        return _titled(title, [])
    more = [] if len(keys) <= ROWS else [f"<p>… and {len(keys) - ROWS} more</p>"]
    return _titled(title, [_table(("key", "size", "in"), rows), *more])


def ticket(shown: Ticket) -> str:
    """Key and state."""
    return _titled(
        "Ticket", [_table(("history", "key", "state"), [(shown._history.name, repr(shown.key), shown._status())])]
    )


def lease(shown: Lease) -> str:
    """Regions, their types and shapes."""
    if shown.released:
        return _titled(f"Lease of {shown.key!r}, released", [])
    memory = shown._held()
    rows = [(str(label), *map(str, memory.description(memory.find(label))[0::2])) for label in memory.labels()[:ROWS]]
    return _titled(f"Lease of {shown.key!r}", [_table(("region", "dtype", "shape"), rows)])


def plan(shown: Plan) -> str:
    """How far it was read."""
    return _titled(type(shown).__name__, [f"<p>{escape(shown._status())}</p>"])


def _titled(title: str, parts: Iterable[str]) -> str:
    return f"<div><strong>{escape(title)}</strong>{''.join(parts)}</div>"


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""
