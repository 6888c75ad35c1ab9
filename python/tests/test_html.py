"""What notebooks show of stores, histories, leases and tickets: short, escaped, and right."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import velocpy
from velocpy import html

EVIL = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a&b", "</td></table>", "\udc80", "x" * 10_000]


class Page(HTMLParser):
    """The tags and the text of a page, which is well formed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self._open: list[str] = []
        self.names: set[str] = set()
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


TAGS = {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "p", "span"}


@pytest.fixture
def store() -> Iterator[velocpy.Store]:
    with velocpy.open(host="1MiB", disk="16MiB", timeline=100) as store:
        yield store


@pytest.mark.parametrize("name", EVIL)
def test_what_users_name_is_text(store: velocpy.Store, name: str) -> None:
    history = store.history(name)
    ticket = history.checkpoint(name, {name: np.zeros(3)})
    plan = velocpy.Plan([name])
    with history.restore(name) as lease:
        for shown in (store, history, lease, ticket, plan):
            page = Page(shown._repr_html_())
            assert page.tags <= TAGS
            assert page.names <= {"style", "title"}
            assert len(page.text) < 1000
        assert repr(name)[1:20] in Page(history._repr_html_()).text


def test_no_colour_of_text_or_page(store: velocpy.Store) -> None:
    """A dark theme sets both; the squares of the legend alone have a colour."""
    store.history("h").checkpoint(0, u=np.zeros(3))
    page = store._repr_html_()
    colours = re.findall(r"(?<![-\w])color:(#\w+)\">(.)", page)
    assert colours
    assert all(letter == "■" for _, letter in colours)
    for tag in ("div", "table", "td", "th", "p", "strong"):
        assert not re.search(rf"<{tag}[^>]*[\s;\"]color:", page)


def test_bars_are_what_is_used(store: velocpy.Store) -> None:
    history = store.history("h")
    for n in range(8):
        history.checkpoint(n, u=np.zeros(1 << 13)).wait("disk")
    with history.restore(7):
        use = store.stats()["tiers"]
        page = store._repr_html_()
    bars = dict(re.findall(r"<tr><td>(host|disk)</td>(.*?)</tr>", page))
    for name, tier in use.items():
        widths = [float(width) for width in re.findall(r"width:([0-9.]+)%", bars[name])]
        assert sum(widths) == pytest.approx(100 * tier["used"] / tier["capacity"], abs=0.1)
    assert "shown by leases" in page
    assert page.index("<td>host</td>") < page.index("<td>disk</td>")


def test_rows_of_a_history(store: velocpy.Store) -> None:
    history = store.history("h")
    history.checkpoint("a", u=np.zeros((2, 3), np.float32), empty=np.zeros(0), n=np.zeros((), np.int16))
    history.checkpoint("b", [np.zeros(1)] * 9)
    history.checkpoint("c", u=np.zeros(0))
    text = Page(history._repr_html_()).text
    assert "'a'26 B<f4[2 × 3], <f8[0], <i2[]host" in text
    assert "'b'72 B<f8[1], <f8[1], <f8[1], <f8[1], …host" in text
    assert "'c'0 Bhost" in text
    assert "98 B · 98 B in host (3)" in text
    before, events = store.stats(), store.timeline()
    history._repr_html_()
    history.meta("a")
    after = store.stats()
    assert (after["restores"], after["bytes"]) == (before["restores"], before["bytes"])
    assert store.timeline() == events


def test_a_page_reads_nothing_from_disk(store: velocpy.Store) -> None:
    history = store.history("h")
    for n in range(40):
        history.checkpoint(n, u=np.zeros(1 << 13)).wait("disk")
    assert history.tiers(0) == ("disk",)
    before = read_by_process()
    assert "<f8[8192]disk" in Page(history._repr_html_()).text
    assert history.tiers(0) == ("disk",)
    assert read_by_process() - before < 1 << 16


def read_by_process() -> int:
    """Bytes that this process has asked the system to read."""
    return int(re.findall(r"rchar: (\d+)", Path("/proc/self/io").read_text())[0])


def test_a_page_does_not_wait_for_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that is not captured in time leaves the regions out of the rows behind it, too."""
    monkeypatch.setattr(html, "PATIENCE", 0)
    with velocpy.open(host="1MiB") as store:
        history = store.history("h")
        history.checkpoint("before", u=np.zeros(1 << 12))
        history.checkpoint("lent", u=np.zeros(1 << 16))
        with history.restore("lent"):  # so that the next one has no room until the lease ends, however long that takes
            ticket = history.checkpoint("waits", u=np.zeros(1 << 16), copy=False, timeout=60)
            history.checkpoint("behind", u=np.zeros(1 << 12))
            text = Page(history._repr_html_()).text
            assert not ticket.captured
        assert "'before'32.0 KiB<f8[4096]host" in text
        assert "'waits'512.0 KiB'behind'32.0 KiBhost" in text
        history.drop("lent")
        ticket.wait(timeout=30)
        assert "'behind'32.0 KiB<f8[4096]host" in Page(history._repr_html_()).text


def test_a_lease_is_summed_up(store: velocpy.Store) -> None:
    history = store.history("h")
    history.checkpoint(0, [np.zeros(4)] * 30)
    with history.restore(0) as lease:
        text = Page(lease._repr_html_()).text
    assert "30 regions, 960 B" in text
    assert "… and 20 more regions" in text
    assert "released" in lease._repr_html_()
    with history.restore(0, last=True) as lease:
        assert "writable" in lease._repr_html_()


@pytest.mark.alone
def test_many_checkpoints_and_histories() -> None:
    with velocpy.open(host="256MiB") as store:
        history = store.history("h")
        for n in range(100_000):
            history.checkpoint(n, u=np.zeros(1))
        began = time.perf_counter()
        page = history._repr_html_()
        assert time.perf_counter() - began < 2  # a tenth of it on an idle machine
        assert len(page) < 4000
        assert "781.2 KiB in host (100000)" in page
        assert "… and 99990 more" in page
        assert "<td>99999</td>" in page
        for n in range(50):
            store.history(f"h{n}").checkpoint(0, u=np.zeros(1))
        page = store._repr_html_()
        assert len(page) < 4000
        assert "… and 41 more" in page


def test_totals_are_of_those_looked_up(store: velocpy.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MOST", 5)
    history = store.history("h")
    for n in range(7):
        history.checkpoint(n, u=np.zeros(1))
    assert "40 B · 40 B in host (5) (the last 5)" in history._repr_html_()


def test_pages_of_what_is_closed(tmp_path: object) -> None:
    store = velocpy.open(str(tmp_path), host="1MiB", disk="1MiB")
    history = store.history("h")
    ticket = history.checkpoint(0, u=np.zeros(1))
    assert str(tmp_path) in store._repr_html_()
    store.close()
    for shown in (store, history, ticket):
        assert "closed" in shown._repr_html_()
    with velocpy.open(str(tmp_path), mode="r") as store:
        assert "read-only" in store._repr_html_()
        assert "<f8[1]" in Page(store.history("h")._repr_html_()).text
