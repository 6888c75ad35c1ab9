"""Which checkpoints of a stored history have the bytes of which: the picture of a lineage.

A de-duplicated checkpoint consists of its own object, which has the bytes that are new in it, and of objects that
earlier checkpoints have written. `lineage` reads from a store's directory how the regions are put together. It reads
the metadata of these objects and none of their data, and may go on beside a process that writes to the store.

Examples
--------
A table of which one entry changes from checkpoint to checkpoint:

>>> import numpy, tempfile, velocpy
>>> from velocpy.lineage import lineage
>>> directory = tempfile.TemporaryDirectory()
>>> table = numpy.random.default_rng(0).random(16384)  # 128 KiB
>>> with velocpy.open(directory.name, host="16MiB", disk="1GiB") as store:
...     history = store.history("run", reduce="tree", chunk=64)
...     for step in range(3):
...         table[4096 * step] += 1
...         history.checkpoint(step, table=table).wait("disk")
>>> found = lineage(directory.name, "run", bins=16)
>>> print(found.text(16))
history 'run': '#' new in the checkpoint, '+' new in part
0  ################
1  aaaa+aaaaaaaaaaa
2  aaaaaaaa+aaaaaaa
<BLANKLINE>
a  0
>>> [(origin.key, origin.nbytes) for origin in found.checkpoints[2].origins]
[(0, 130944), (1, 64), (2, 64)]
>>> directory.cleanup()
"""

from __future__ import annotations

import string
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import html
from .errors import InvalidArgument
from .ondisk import Key, Path, View, bytes_of_key, bytes_of_text, describe_in
from .origins import OWN_COLOUR, CheckpointOrigins, Identity, Origin, RegionOrigins, colours_of, objects_of
from .quantity import sized

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CheckpointOrigins", "Lineage", "Origin", "RegionOrigins", "lineage"]

#: Checkpoints that are read where no keys are given: the latest ones.
LATEST = 100
#: Bins that a region has at most.
MOST_BINS = 4096
#: Columns of a row of characters, and of a strip in a notebook.
COLUMNS, STRIP = 64, 160
#: Letters of the other objects, in the order in which they were written; the rest has the last one.
LETTERS = string.ascii_lowercase + string.ascii_uppercase + string.digits + "*"
#: Letters of a key or a name.
LONGEST = 40
#: Characters of bytes that are in the checkpoint's own object, and of parts with some of these.
OWN, SOME = "#", "+"


@dataclass(frozen=True, repr=False)
class Lineage:
    """Where the bytes of checkpoints of a history lie. A notebook shows it as a table, and `print` as characters."""

    history: str
    checkpoints: tuple[CheckpointOrigins, ...]

    def objects(self) -> dict[Identity, Key | None]:
        """The objects that any of the checkpoints consists of, from the earliest on, with the keys as `Origin.key`."""
        return objects_of(self.checkpoints)

    def __repr__(self) -> str:
        return f"<Lineage history={self.history!r} checkpoints={len(self.checkpoints)}>"

    def __str__(self) -> str:
        return self.text()

    def text(self, columns: int = COLUMNS) -> str:
        """A row of so many characters for each checkpoint, and below which object each letter means."""
        return "\n".join(self.lines(columns))

    def lines(self, columns: int = COLUMNS) -> Iterator[str]:
        """The same line by line."""
        objects = self.objects()
        rows = [each.columns(columns) for each in self.checkpoints]
        others = {
            checkpoint.identity(place)
            for checkpoint, row in zip(self.checkpoints, rows, strict=True)
            for place, new in row
            if not new
        }
        shown = [each for each in objects if each in others]
        letters = {each: LETTERS[min(place, len(LETTERS) - 1)] for place, each in enumerate(shown)}
        keys = [_spelt(each.key) for each in self.checkpoints]
        width = max(map(len, keys), default=0)
        yield f"history {_spelt(self.history)}: {OWN!r} new in the checkpoint, {SOME!r} new in part"
        for key, checkpoint, row in zip(keys, self.checkpoints, rows, strict=True):
            last = len(checkpoint.origins) - 1
            yield f"{key:<{width}}  " + "".join(
                OWN if place == last else SOME if new else letters[checkpoint.identity(place)] for place, new in row
            )
        if shown:
            yield ""
        for each in shown:
            of = objects[each]
            yield f"{letters[each]}  {f'dropped, number {each[1]}' if of is None else _spelt(of)}"

    def _repr_html_(self) -> str:
        colours = colours_of(self.objects())
        return html.lineage(self.history, [_row(each, colours) for each in self.checkpoints], OWN_COLOUR)

    def plot(self) -> Figure:
        """Draws each checkpoint as a bar along its bytes, coloured by the objects that have these.

        New bytes are orange, over the lower half of the bar where they are the smaller part of a bin. Those of earlier
        checkpoints are blue, and grey where the checkpoint was dropped or replaced; the darker, the later. Behind a bar
        stands what the checkpoint takes by itself in the data files.

        Returns
        -------
        matplotlib.figure.Figure
            A notebook shows it by itself; ``savefig`` writes it.

        Raises
        ------
        MissingLibrary
            Without matplotlib. It is an ImportError too.

        Examples
        --------
        >>> import numpy, tempfile, velocpy
        >>> from velocpy.lineage import lineage
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     with velocpy.open(directory, host="16MiB", disk="1GiB") as store:
        ...         _ = store.history("run", reduce="tree").checkpoint(0, u=numpy.arange(20_000.0))
        ...     figure = lineage(directory, "run").plot()
        >>> figure.axes[0].get_title(loc="left")
        "'run': 1 checkpoint, 156.2 KiB"
        """
        from .plot.lineage import draw_lineage

        return draw_lineage(self.history, self.checkpoints)


def lineage(path: Path, history: str, keys: Iterable[Key] | None = None, *, bins: int = 256) -> Lineage:
    """Where the bytes of checkpoints of a history lie, of which the data are not read.

    Parameters
    ----------
    path
        The store.
    history
        Its name.
    keys
        Which checkpoints; None: the latest 100 of those that this version of velocpy can read, as they became durable.
    bins
        Into how many parts each region is cut, 1 to 4096. The result has 16 bytes and more for each of them.

    Returns
    -------
    Lineage
        The checkpoints in the order of ``keys``.

    Raises
    ------
    CheckpointNotFound
        There is no such history, or no such checkpoint, or not any more.
    DamagedStore
        Metadata of an object are missing or were changed; the message names the object and its file.
    InvalidArgument
        ``bins`` is out of range, or a checkpoint is stored as later versions of velocpy do.
    NotAStore, FormatTooNew, TierIOError
        As `velocpy.ondisk.contents`.

    Examples
    --------
    A checkpoint that is not de-duplicated consists of one object:

    >>> import numpy, tempfile, velocpy
    >>> from velocpy.lineage import lineage
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with velocpy.open(directory, host="16MiB", disk="1GiB") as store:
    ...         _ = store.history("run").checkpoint(7, u=numpy.zeros(1000))
    ...     (found,) = lineage(directory, "run", [7], bins=2).checkpoints
    >>> found.form, found.lineage, found.origins
    ('raw', None, (Origin(number=None, key=7, stored_nbytes=8192, nbytes=8000),))
    >>> found.regions
    (RegionOrigins(name='u', nbytes=8000, shares={0: 8000}, bins=(0, 0), own=(4000, 4000)),)
    """
    if not 1 <= bins <= MOST_BINS:
        raise InvalidArgument(f"bins is {bins}; give a number from 1 to {MOST_BINS}.")
    with View(path) as view:
        if keys is None:
            rows = view.lines("rows", history=bytes_of_text(history), head="{")
            keys = deque((facts["key"] for facts in rows if facts["readable"]), maxlen=LATEST)
        return Lineage(history, tuple(_located(view, history, key, bins) for key in keys))


def _located(view: View, history: str, key: Key, bins: int) -> CheckpointOrigins:
    described = describe_in(view, history, key)
    named: dict[str, Any] = {"history": bytes_of_text(history), "key": bytes_of_key(key)}
    facts, _ = view.ask("row", **named)
    origins = tuple(
        Origin(each["number"], each["key"], each["stored_bytes"], each["bytes"])
        for each in view.lines("lineage", what="objects", **named)
    )
    regions = tuple(
        RegionOrigins(region.name, each["bytes"], dict(each["shares"]), tuple(each["bins"]), tuple(each["own"]))
        for region, each in zip(
            described.regions, view.lines("lineage", what="regions", bins=bins, **named), strict=True
        )
    )
    return CheckpointOrigins(
        described.key, described.serial, described.form, facts["lineage"], described.nbytes, origins, regions
    )


def _spelt(name: Key) -> str:
    """A name or a key as Python writes it, which has no character that a terminal might obey."""
    text = repr(name)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _row(checkpoint: CheckpointOrigins, colours: dict[Identity, str]) -> html.LineageRow:
    """What a page shows of a checkpoint."""
    strip: list[html.Piece] = []
    own = len(checkpoint.origins) - 1
    for place, new in checkpoint.columns(STRIP):
        place = own if new else place
        colour = OWN_COLOUR if new else colours[checkpoint.identity(place)]
        if strip and strip[-1].origin == place:
            strip[-1] = strip[-1]._replace(columns=strip[-1].columns + 1)
        else:
            strip.append(html.Piece(place, 1, colour, _words(checkpoint, place)))
    return html.LineageRow(
        checkpoint.key, checkpoint.form, checkpoint.nbytes, checkpoint.own_nbytes, checkpoint.stored_nbytes, strip
    )


def _words(checkpoint: CheckpointOrigins, place: int) -> str:
    """Which object it is, for people."""
    origin = checkpoint.origins[place]
    if place == len(checkpoint.origins) - 1:
        return f"its own object: {sized(origin.nbytes)}"
    of = "a dropped checkpoint" if origin.key is None else f"{origin.key!r:.60}"
    return f"object {origin.number}, of {of}: {sized(origin.nbytes)}"
