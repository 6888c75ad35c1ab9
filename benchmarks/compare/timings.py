"""The timings in the report of a benchmark, by names that are the same in every run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

#: The tail of single calls, and calls that a run makes once, say too little to be held to a bar.
SHOWN_ONLY = re.compile(r"p99|^first\b")


class Form(NamedTuple):
    """How the rows of a benchmark are read."""

    #: Columns that name a row. Columns that differ from run to run, such as measured ones, are none of them.
    labels: tuple[str, ...]
    #: Columns that are timings. Their unit is the end of their name.
    figures: str
    #: Timings that do not depend on the core, by label and column.
    baseline: str = "(?!)"


class Timing(NamedTuple):
    """One timing of one run."""

    value: float
    #: Whether more is better: a rate.
    rate: bool
    #: Whether it is held to the bar.
    held: bool
    #: Whether it belongs to a baseline, which does not depend on the core.
    baseline: bool = False


FORMS: dict[str, Form] = {
    "small": Form(("what",), r"median µs|p99 µs", r"numpy copies"),
    "capture": Form(("MiB",), r".* GB/s", r"memcpy"),
    "lease": Form(("bytes",), r".*µs"),
    "sweep": Form(("interval", "hints"), r"blocked s|of it copying s"),
    "disk": Form((), r"(velocpy|disk) (write|read) GB/s", r"disk (write|read)"),
    "durable": Form(("stream", "who"), r"GB/s", r"who (?!velocpy)"),
    "scale": Form(("checkpoints", "order"), r"(checkpoint|lease|into|drop) µs", r"a dict of copies"),
    "device": Form(
        ("what",),
        r"(first, )?host median µs|host p99 µs|device µs|GB/s",
        r"what (copy\(\)|copies of|ring: |training-like sequence, (alone|plain))",
    ),
    "shot": Form(("shot",), r"blocked s|(checkpoint|restore)( p99)? µs"),
    "coldstart": Form(("start",), r"blocked s|open ms|first captured ms"),
}


def timings(result: Mapping[str, Any]) -> dict[str, Timing]:
    """The timings of a report, as `Report.facts` gives it, by row and column.

    >>> row = {"what": "checkpoint()", "median µs": 4.0, "p99 µs": 9.0, "calls": 3}
    >>> found = timings({"benchmark": "small", "rows": [row]})
    >>> [(name, timing.value, timing.held) for name, timing in found.items()]
    [('what checkpoint(), median µs', 4.0, True), ('what checkpoint(), p99 µs', 9.0, False)]

    Raises
    ------
    ValueError
        Two rows have the same name.
    """
    form = FORMS[str(result["benchmark"]).partition("-")[0]]  # shot and coldstart add the names of their cells
    found: dict[str, Timing] = {}
    for row in result["rows"]:
        if any(label not in row for label in form.labels):
            continue
        for column, value in row.items():
            if not re.fullmatch(form.figures, column):
                continue
            name = ", ".join([*(f"{label} {row[label]}" for label in form.labels), column])
            if name in found:
                raise ValueError(f"{result['benchmark']}: two rows are named {name!r}")
            baseline = re.search(form.baseline, name) is not None
            held = not baseline and SHOWN_ONLY.search(column) is None
            found[name] = Timing(float(value), column.endswith("/s"), held, baseline)
    return found
