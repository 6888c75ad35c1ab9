"""A live view for terminals, drawn by rich."""

from __future__ import annotations

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from velocpy.figures import TierStats
from velocpy.occupancy import parts
from velocpy.quantity import sized

from .change import Change
from .words import facts, per_second, title, wait_row

#: Letters of a bar.
_WIDTH = 24


def screen(shown: Change, ended: str = "") -> Group:
    """The same as `velocpy.live.page.page`, as a renderable."""
    heading = Text(legible(title(shown)), style="bold")
    if ended:
        heading.append(f" ({ended})", style="dim")
    return Group(heading, _tiers(shown), _legend(shown), _facts(shown), *([_waits(shown)] if shown.waits else []))


def legible(text: str) -> str:
    r"""A text in which no character is one that a terminal might obey.

    Examples
    --------
    >>> from velocpy.live.screen import legible
    >>> legible("größe"), legible("a\x1b[2J")
    ('größe', 'a\\x1b[2J')
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _tiers(shown: Change) -> Table:
    table = _table(("tier", "budget", "used", "", "", "written", "read", "evicted"))
    table.columns[3].justify = "left"
    for tier in shown.tiers:
        used, capacity = tier.now["used"], tier.now["capacity"]
        share = f"{100 * used / capacity:.0f} %" if capacity else ""
        rates = map(per_second, (tier.written, tier.read, tier.evicted))
        table.add_row(tier.name, sized(capacity), sized(used), bar(tier.now), share, *rates)
    return table


def bar(tier: TierStats) -> Text:
    """A tier's budget as a row of letters, with what is used of it by state."""
    whole = max(tier["capacity"], tier["used"], 1)
    text, upto, letters = Text(), 0, 0
    for part in parts(tier):
        upto += part.nbytes
        more = round(_WIDTH * upto / whole) - letters
        text.append("█" * more, style=part.colour)
        letters += more
    return text.append("·" * (_WIDTH - letters), style="dim")


def _legend(shown: Change) -> Text:
    there = dict.fromkeys((part.name, part.colour) for tier in shown.tiers for part in parts(tier.now))
    text = Text()
    for name, colour in there:
        text.append("■ ", style=colour).append(f"{name}  ")
    return text


def _facts(shown: Change) -> Table:
    table = _table(("now", ""))
    for row in facts(shown):
        table.add_row(*row)
    return table


def _waits(shown: Change) -> Table:
    table = _table(("waited", "now", "in all"))
    for wait in shown.waits:
        table.add_row(*wait_row(wait))
    return table


def _table(headings: tuple[str, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    return table
