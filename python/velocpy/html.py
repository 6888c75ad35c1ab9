"""Short HTML representations for notebooks.

Everything that a user named is escaped. There are no scripts, and text has no colour of its own, so that it can be read
on dark pages too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from .errors import TIERS, VelocError, WaitTimeout
from .figures import TierStats
from .interfaces import HistoryState, Key, LeaseState, PlanState, StoreState, TicketState
from .occupancy import parts
from .quantity import sized

#: Rows of a table; a history may have a million checkpoints.
ROWS = 10
#: Checkpoints of a lineage.
STRIPS = 40
#: Checkpoints that are looked up for a history's totals: a tenth of a second.
MOST = 100_000
#: Letters of a name or a key, and regions of a checkpoint.
LETTERS, REGIONS = 60, 4
#: Seconds for what a checkpoint says of its regions.
PATIENCE = 0.1


def store(shown: StoreState) -> str:
    """Tiers with their budgets, as bars too, and the histories with the most checkpoints."""
    try:
        stats = shown.stats()
    except VelocError as error:
        return titled(f"Store, {'closed' if shown.closed else type(error).__name__}", [])
    use = stats["tiers"]
    rows = [tier_row(name, use[name]) for name in TIERS if name in use]
    histories = sorted(stats["histories"].items(), key=lambda item: -item[1]["checkpoints"])
    found = [(_short(name), f"{each['checkpoints']} checkpoints") for name, each in histories[:ROWS]]
    tables = [table(("tier", "budget", "used", "", ""), rows), legend(use), table(("history", ""), found)]
    return titled(_store_title(shown), [*tables, _more(len(histories), "")])


def _store_title(shown: StoreState) -> str:
    how = "" if shown.path is None or not shown.durable else f" in {shown.path}"
    return f"Store{how}{', read-only' if shown._config['read_only'] else ''}"


def tier_row(name: str, tier: TierStats) -> tuple[Any, ...]:
    """Cells of a tier: name, budget, what is used, a bar, a share."""
    used, capacity = tier["used"], tier["capacity"]
    return name, sized(capacity), sized(used), Markup(_bar(tier)), _share(used, capacity)


def history(shown: HistoryState) -> str:
    """Totals, and the first and the last checkpoints: their sizes, what their regions are, tiers that have them."""
    title = f"History {_short(shown.name)}: {shown._status()}"
    try:
        keys = list(shown)
        first = keys if len(keys) <= ROWS + 1 else keys[: ROWS // 2]
        last = [] if len(keys) <= ROWS + 1 else keys[-(ROWS - ROWS // 2) :]
        rows = _rows(shown, first + last)
        totals = _totals(shown, keys)
    except VelocError:
        return titled(title, [])
    if skipped := len(keys) - len(first) - len(last):
        rows.insert(len(first), (f"… and {skipped} more", "", "", ""))
    return titled(title, [totals, table(("key", "size", "regions", "in"), rows)])


def _rows(shown: HistoryState, keys: list[Key]) -> list[tuple[str, str, str, str]]:
    rows, answers = [], True
    for key in keys:
        size, _, _, held, *_ = shown._core.lookup(key) or (0,) * 4  # dropped meanwhile
        regions = ""
        if answers:
            try:
                regions = _regions(shown, key, size)
            except WaitTimeout:  # a source that is not captured yet, or a disk that is busy: none of the next is asked
                answers = False
            except VelocError:
                regions = ""
        tiers = ", ".join(name for number, name in enumerate(TIERS) if held >> number & 1)
        rows.append((_short(key), sized(size), regions, tiers))
    return rows


def _regions(shown: HistoryState, key: Key, nbytes: int) -> str:
    """Types and shapes of the first regions, up to the last one that has bytes."""
    memory = shown._core.restore(key, (), False, True, PATIENCE)._held()  # as for its meta: no array moves
    words, seen, region = [], 0, 0
    while seen < nbytes and region < REGIONS:
        text, _, shape, _ = memory.description(region)
        words.append(_array(text, shape))
        seen += memory.nbytes(region)
        region += 1
    return ", ".join([*words, *(["…"] if seen < nbytes else [])])


def _array(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype:.{LETTERS}}[{' × '.join(map(str, shape))}]"


def _totals(shown: HistoryState, keys: list[Key]) -> str:
    """Bytes in all, and in each tier."""
    found = [each for key in keys[-MOST:] if (each := shown._core.lookup(key)) is not None]
    if not found:
        return ""
    words = [sized(sum(each[0] for each in found))]
    for number, name in enumerate(TIERS):
        held = [each[0] for each in found if each[3] >> number & 1]
        if held:
            words.append(f"{sized(sum(held))} in {name} ({len(held)})")
    of = f" (the last {MOST})" if len(keys) > MOST else ""
    return f"<p>{escape(' · '.join(words) + of)}</p>"


def ticket(shown: TicketState) -> str:
    """Key and state."""
    return titled(
        "Ticket",
        [table(("history", "key", "state"), [(_short(shown._history.name), _short(shown.key), shown._status())])],
    )


def lease(shown: LeaseState) -> str:
    """Regions, their types and shapes."""
    title = f"Lease of {_short(shown.key)}"
    if shown.released:
        return titled(f"{title}, released", [])
    memory = shown._held()
    labels = memory.labels()
    regions = [memory.find(label) for label in labels]
    sizes = [memory.nbytes(region) for region in regions]
    rows = [
        (_short(label), *map(str, memory.description(region)[0::2]), sized(nbytes))
        for label, region, nbytes in zip(labels[:ROWS], regions, sizes, strict=False)
    ]
    regions_table = table(("region", "dtype", "shape", "size"), rows)
    count = f"{len(labels)} region{'' if len(labels) == 1 else 's'}"
    words = f"{title}: {count}, {sized(sum(sizes))}{', writable' if memory.writable else ''}"
    return titled(words, [regions_table, _more(len(labels), "regions")])


def plan(shown: PlanState) -> str:
    """How far it was read."""
    return titled(type(shown).__name__, [f"<p>{escape(shown._status())}</p>"])


class Piece(NamedTuple):
    """Neighbouring columns of a strip."""

    origin: int
    columns: int
    colour: str
    words: str


class LineageRow(NamedTuple):
    """What a page shows of a checkpoint of a lineage; lengths in bytes."""

    key: Key
    form: str
    nbytes: int
    own_nbytes: int
    stored_nbytes: int
    strip: list[Piece]


def lineage(history: str, rows: Sequence[LineageRow], own: str) -> str:
    """For each checkpoint its size, what it takes, and a strip with the colours of the objects that have its bytes."""
    shown = rows[-STRIPS:]
    cells = [
        (_short(row.key), row.form, sized(row.nbytes), sized(row.own_nbytes), sized(row.stored_nbytes), _strip(row))
        for row in shown
    ]
    counted = f"{len(rows)} checkpoint{'' if len(rows) == 1 else 's'}"
    words = [f"<p>{escape(f'… {len(rows) - len(shown)} earlier ones are not shown')}</p>"] if len(rows) > STRIPS else []
    legend = f'<p><span style="color:{own}">■</span> {escape("bytes that are new in the checkpoint")}</p>'
    head = ("key", "form", "size", "new bytes", "takes on disk", "where its bytes lie")
    return titled(f"Lineage of {_short(history)}: {counted}", [*words, table(head, cells), legend])


def _strip(row: LineageRow) -> Markup:
    pieces = "".join(
        f'<div title="{escape(each.words)}" style="flex:{each.columns};background:{each.colour}"></div>'
        for each in row.strip
    )
    return Markup(f'<div style="{_FRAME.replace("14em", "28em")}">{pieces}</div>')


class Markup(str):
    """HTML that is complete: a table takes it as it is."""

    __slots__ = ()


def titled(title: str, parts: Iterable[str]) -> str:
    """Parts of a page below a title, which is text."""
    return f"<div><strong>{escape(title)}</strong>{''.join(parts)}</div>"


def table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    """A table; its cells are text, or `Markup`."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _cell(cell: Any) -> str:
    return f"<td>{cell if isinstance(cell, Markup) else escape(str(cell))}</td>"


def _short(name: Any) -> str:
    """A name or a key as Python writes it: a text is told from a number, and what cannot be printed is spelt out."""
    text = repr(name)
    return text if len(text) <= LETTERS else f"{text[:LETTERS]}…"


def _more(count: int, what: str) -> str:
    return "" if count <= ROWS else f"<p>{escape(f'… and {count - ROWS} more {what}'.rstrip())}</p>"


#: The text's own colour, so that it shows on light and on dark pages.
_FRAME = "display:flex;width:14em;height:0.9em;border:1px solid currentColor;border-radius:3px;overflow:hidden"


def _bar(tier: TierStats) -> str:
    """A tier's budget, with what is used of it by state."""
    whole = max(tier["capacity"], tier["used"], 1)
    filled = "".join(
        f'<div title="{escape(part.name)}: {sized(part.nbytes)}" '
        f'style="width:{100 * part.nbytes / whole:.2f}%;background:{part.colour}"></div>'
        for part in parts(tier)
    )
    return f'<div style="{_FRAME}">{filled}</div>'


def legend(use: Mapping[str, TierStats]) -> str:
    """The colours of the bars of these tiers, in words."""
    there = dict.fromkeys((part.name, part.colour) for tier in use.values() for part in parts(tier))
    words = "&ensp;".join(f'<span style="color:{colour}">■</span> {escape(name)}' for name, colour in there)
    return f"<p>{words}</p>" if words else ""


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""
