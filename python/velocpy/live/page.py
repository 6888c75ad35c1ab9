"""A live view as HTML, for notebooks."""

from __future__ import annotations

from velocpy import html

from .change import Change
from .words import facts, per_second, title, wait_row


def page(shown: Change, ended: str = "") -> str:
    """Tiers with bars and rates, what was captured and restored, and waits by reason.

    Parameters
    ----------
    ended
        Why the view does not go on; "": it does.
    """
    rows = [
        (*html.tier_row(tier.name, tier.now), *map(per_second, (tier.written, tier.read, tier.evicted)))
        for tier in shown.tiers
    ]
    head = ("tier", "budget", "used", "", "", "written", "read", "evicted")
    parts = [html.table(head, rows), html.legend({tier.name: tier.now for tier in shown.tiers})]
    parts.append(html.table(("now", ""), facts(shown)))
    if shown.waits:
        parts.append(html.table(("waited", "now", "in all"), map(wait_row, shown.waits)))
    return html.titled(title(shown) + (f" ({ended})" if ended else ""), parts)
