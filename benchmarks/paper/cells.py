"""The cells of the evaluation: which shots, with which caches, by whom. Chosen by name on the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from benchmarks.engines.workload import GIB, HINTS, MIB, ORDERS, Workload, uniform, variable

LINK = ("keep", "ring", "velocpy")
LINK_CHECKED = (*LINK, "velocpy unchecked")
DISK = ("keep", "ring lazy", "ring eager", "velocpy")
PAPER = ("velocpy", "unified memory", "ring eager")
EVERYBODY = ("keep", "ring", "velocpy", "velocpy lru", "velocpy fifo", "synchronous", "unified memory", "adios2")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One shot played by several contenders."""

    figure: str  # what it belongs to: a bar, or a figure of the paper
    workload: Workload
    contenders: tuple[str, ...]
    rounds: int = 1
    processes: int = 1
    coupled: bool = False
    trace: bool = False
    sizes: str = "uniform"

    @property
    def name(self) -> str:
        """What distinguishes it, in words."""
        w = self.workload
        words = [
            f"{len(w.sizes)} {self.sizes}",
            w.order,
            f"hints {w.hints}",
            f"{w.interval * 1e3:g} ms",
            f"{_size(w.device)}/{_size(w.host)}",
        ]
        if w.disk:
            words.append("disk")
        if w.wait_flushed:
            words.append("after all flushes")
        if self.processes > 1:
            words.append(f"{self.processes} processes{', coupled' if self.coupled else ''}")
        return ", ".join(words)

    def caches(self) -> tuple[object, ...]:
        """Cells that agree in this can be played by the same engine, opened once."""
        w = self.workload
        return (w.sizes, w.device, w.host, w.disk, self.processes, self.coupled)


def _size(nbytes: int) -> str:
    return f"{nbytes / GIB:g} GiB" if nbytes >= GIB else f"{nbytes / MIB:g} MiB"


def _link(hints: Iterable[str], contenders: tuple[str, ...] = LINK_CHECKED, rounds: int = 3) -> list[Cell]:
    """The host holds everything, and the interval asks for the whole link."""
    return [
        Cell(f"link {h}", Workload(uniform(192), order=o, hints=h), contenders, rounds=rounds)
        for h in hints
        for o in ORDERS
    ]


def _disk(sizes: str) -> list[Cell]:
    """A third of the checkpoints has to go down to the disk."""
    # As many bytes beyond the caches, by time, that the disk is the bottleneck in either case.
    shot = uniform(192) if sizes == "uniform" else variable(total=27 * 10**9)
    return [
        Cell(
            "disk",
            Workload(shot, order=o, interval=10e-3, host=16 * GIB, disk=40 * GIB),
            DISK,
            sizes=sizes,
        )
        for o in ORDERS
    ]


def _paper(
    sizes: str,
    figure: str = "paper",
    *,
    hints: Iterable[str] = ("all",),
    contenders: tuple[str, ...] = PAPER,
    wait: bool = False,
    trace: bool = False,
    count: int = 384,
    orders: Iterable[str] = ORDERS,
) -> list[Cell]:
    """The paper's setting: 4 GiB, 32 GiB, 10 ms."""
    shot = uniform(count) if sizes == "uniform" else variable(total=count * 128 * MIB)
    return [
        Cell(
            figure,
            Workload(
                shot, order=o, hints=h, interval=10e-3, device=4 * GIB, host=32 * GIB, disk=56 * GIB, wait_flushed=wait
            ),
            contenders,
            sizes=sizes,
            trace=trace,
        )
        for h in hints
        for o in orders
    ]


def _alone(cells: Iterable[Cell]) -> list[Cell]:
    """The same shots by velocpy alone, in three rounds: enough for what is held against the bound."""
    return [dataclasses.replace(cell, contenders=("velocpy",), rounds=3) for cell in cells]


def _figure8(what: str) -> list[Cell]:
    """Irregular order, variable sizes: other intervals, or other device caches."""
    shot = variable(count=192)
    points = (
        [(i * 1e-3, 4 * GIB) for i in (2.5, 5, 10, 20, 40)]
        if what == "interval"
        else [(10e-3, d * GIB) for d in (2, 4, 8, 16)]
    )
    return [
        Cell(
            f"figure 8 {what}",
            Workload(shot, order="irregular", hints=h, interval=i, device=d, host=16 * GIB, disk=40 * GIB),
            ("velocpy", "ring eager", "unified memory"),
            sizes="variable",
        )
        for i, d in points
        for h in ("none", "all")
    ]


def _ranks() -> list[Cell]:
    """Several processes, each with caches of its own; one for each GPU where there are so many."""
    return [
        Cell(
            "processes",
            Workload(uniform(64), order="reverse", interval=10e-3, device=2 * GIB, host=9 * GIB),
            LINK,
            processes=processes,
            coupled=coupled,
        )
        for processes in (1, 2, 4)
        for coupled in ((False, True) if processes > 1 else (False,))
    ]


def _tiny() -> list[Cell]:
    """That it runs, on anything."""
    shot = tuple(256 * 1024 + 4321 * (i % 5) for i in range(24))
    return [
        Cell(
            "tiny",
            Workload(shot, order=o, hints=h, interval=5e-4, device=1 * MIB, host=4 * MIB, disk=64 * MIB),
            (*DISK, "velocpy lru", "synchronous", "ring page cache", "unified memory"),
            sizes="variable",
            trace=True,
        )
        for o, h in (("reverse", "all"), ("irregular", "one"), ("sequential", "none"))
    ]


def _quick() -> list[Cell]:
    """Three minutes on a GPU that is new to us: everybody once, small caches."""
    link = Workload(uniform(64), order="reverse", device=1 * GIB, host=9 * GIB)
    disk = Workload(variable(count=64), order="irregular", interval=10e-3, device=1 * GIB, host=4 * GIB, disk=16 * GIB)
    everybody = tuple(c for c in EVERYBODY if c != "adios2")
    return [
        Cell("quick", link, everybody),
        Cell("quick", dataclasses.replace(link, order="irregular", hints="one"), LINK),
        Cell("quick", dataclasses.replace(link, order="sequential", hints="none"), LINK),
        Cell("quick", disk, DISK, sizes="variable", trace=True),
    ]


def _cores() -> list[Cell]:
    """What two cores are compared by: velocpy alone, over the link and with a disk."""
    link = [("reverse", "all"), ("irregular", "one"), ("sequential", "none")]
    disk = Workload(uniform(96), order="reverse", interval=10e-3, host=7 * GIB, disk=24 * GIB)
    return [
        *(Cell("cores", Workload(uniform(192), order=o, hints=h), ("velocpy",), rounds=3) for o, h in link),
        Cell("cores", disk, ("velocpy",), rounds=2),
    ]


GROUPS: dict[str, Callable[[], list[Cell]]] = {
    "tiny": _tiny,
    "quick": _quick,
    "cores": _cores,
    "link": lambda: _link(("all", "one", "none")),
    "link-everybody": lambda: _link(("all",), EVERYBODY, rounds=1),
    "disk-uniform": lambda: _disk("uniform"),
    "disk-variable": lambda: _disk("variable"),
    "disk-page-cache": lambda: [
        dataclasses.replace(cell, figure="page cache", contenders=("velocpy", "ring page cache", "synchronous"))
        for cell in _disk("uniform")
    ],
    "policies": lambda: [
        dataclasses.replace(cell, figure="policies", contenders=("velocpy", "velocpy lru", "velocpy fifo"))
        for cell in _disk("variable")
    ],
    "paper-uniform": lambda: _paper("uniform"),
    "paper-variable": lambda: _paper("variable"),
    "disk-alone": lambda: _alone([*_disk("uniform"), *_disk("variable")]),
    "paper-alone": lambda: _alone([*_paper("uniform"), *_paper("variable")]),
    "figure5-uniform": lambda: _paper("uniform", "figure 5", hints=HINTS, wait=True, count=192),
    "figure5-variable": lambda: _paper("variable", "figure 5", hints=HINTS, wait=True, count=192),
    "figure6-uniform": lambda: _paper("uniform", "figure 6", hints=HINTS, count=384),
    "figure6-variable": lambda: _paper("variable", "figure 6", hints=HINTS, count=384),
    "figure7": lambda: _paper(
        "uniform", "figure 7", hints=HINTS, contenders=("velocpy",), trace=True, orders=("sequential",)
    ),
    "figure8-interval": lambda: _figure8("interval"),
    "figure8-cache": lambda: _figure8("cache"),
    "processes": _ranks,
}

# What a figure is, for readers of the papers.
ABOUT = {
    "cores": "velocpy alone: the host holds everything, or a third of the bytes has to go to the disk.",
    "link": "The host holds everything; the interval asks for the whole link, as 10 ms did of the paper's shared one. "
    "Unchecked: without checksums, as the ring, which takes none.",
    "disk": "A third of the bytes has to go to the disk and come back.",
    "page cache": "As the disk's cells, beside a ring that spills through the page cache, beyond its budget.",
    "policies": "A third of the bytes has to go to the disk and come back; by eviction policy.",
    "paper": "The setting of Maurya et al., HPDC'23, sec. 5: 4 GiB on the device, 32 GiB of host memory, SSD, 10 ms.",
    "figure 5": "As figure 5 of Maurya et al., HPDC'23: the restores wait for all flushes.",
    "figure 6": "As figure 6 of Maurya et al., HPDC'23: the restores follow the captures at once.",
    "figure 7": "As figure 7 of Maurya et al., HPDC'23: how many of the next checkpoints are ready at each restore.",
    "figure 8 interval": "As figure 8a of Maurya et al., HPDC'23: compute intervals, irregular order, variable sizes.",
    "figure 8 cache": "As figure 8b of Maurya et al., HPDC'23: device caches, irregular order, variable sizes.",
    "processes": "One process for each GPU, or several on one; coupled ones meet in every iteration.",
}

# What stands for several.
SETS: dict[str, tuple[str, ...]] = {
    "bars": ("link", "disk-uniform", "disk-variable", "paper-uniform", "paper-variable"),
    "all": tuple(name for name in GROUPS if name not in ("tiny", "quick", "cores")),
}


def chosen(names: str) -> list[Cell]:
    """The cells of names with commas between, a colon and an order behind those of which no other is wanted.

    Unknown ones are a ValueError that lists the known.

    >>> [cell.workload.order for cell in chosen("disk-uniform")]
    ['sequential', 'reverse', 'irregular']
    >>> [cell.workload.order for cell in chosen("disk-uniform:reverse,paper-variable:irregular")]
    ['reverse', 'irregular']
    """
    cells: list[Cell] = []
    for choice in names.split(","):
        name, _, order = choice.partition(":")
        if order and order not in ORDERS:
            raise ValueError(f"no order {order!r}; there are {', '.join(ORDERS)}")
        for group in SETS.get(name, (name,)):
            if group not in GROUPS:
                raise ValueError(f"no cells {group!r}; there are {', '.join((*GROUPS, *SETS))}")
            cells += [cell for cell in GROUPS[group]() if order in ("", cell.workload.order)]
    return cells


def together(cells: Iterable[Cell]) -> list[list[Cell]]:
    """The cells in groups that one engine each can play."""
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.caches(), []).append(cell)
    return list(groups.values())
