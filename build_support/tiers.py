"""The picture of the tiers in the README: ``python -m build_support.tiers > docs/tiers.svg``; a test compares."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html import escape

TIERS = (
    ("device", 'device="4GiB"', "GPU memory, if there is one"),
    ("host", 'host="32GiB"', "memory of the process, pinned for GPUs"),
    ("disk", 'disk="200GiB"', "files, which may outlive the process"),
)
# Pixels.
WIDTH, MARGIN, HEIGHT, GAP = 640, 150, 56, 46


def picture() -> str:
    """The text of an SVG file."""
    height = len(TIERS) * HEIGHT + (len(TIERS) - 1) * GAP + 40
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">\n'
    title = "<title>Checkpoints are flushed down the tiers and prefetched up again</title>\n"
    page = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n'
    marker = (
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L10 5L0 10z" fill="#444444"/></marker></defs>\n'
    )
    return head + title + page + marker + "".join(f"{part}\n" for part in _parts()) + "</svg>\n"


def _parts() -> Iterator[str]:
    right = WIDTH - MARGIN
    for number, (name, budget, what) in enumerate(TIERS):
        top = 20 + number * (HEIGHT + GAP)
        yield (
            f'<rect x="{MARGIN}" y="{top}" width="{right - MARGIN}" height="{HEIGHT}" rx="6" '
            'fill="#eef3fa" stroke="#4a6fa5"/>'
        )
        yield _text(MARGIN + 14, top + 23, name, 'font-weight="bold" font-size="16"')
        yield _text(right - 14, top + 23, budget, 'text-anchor="end" font-family="monospace" font-size="14"')
        yield _text(MARGIN + 14, top + 43, what, 'font-size="13" fill="#444444"')
        if number:
            middle = top - GAP // 2 + 5
            yield _arrow(MARGIN + 100, top - GAP + 2, top - 2)
            yield _text(MARGIN + 88, middle, "flush", 'text-anchor="end" font-size="13"')
            yield _arrow(right - 100, top - 2, top - GAP + 2)
            yield _text(right - 88, middle, "prefetch", 'font-size="13"')
    middle = 20 + HEIGHT // 2 + 5
    yield _text(MARGIN - 12, middle, "checkpoint() →", 'text-anchor="end" font-size="14"')
    yield _text(right + 12, middle, "→ restore()", 'font-size="14"')


def _text(x: int, y: int, text: str, style: str) -> str:
    return f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>'


def _arrow(x: int, start: int, end: int) -> str:
    return (
        f'<line x1="{x}" y1="{start}" x2="{x}" y2="{end}" stroke="#444444" stroke-width="1.5" marker-end="url(#tip)"/>'
    )


if __name__ == "__main__":
    sys.stdout.write(picture())
