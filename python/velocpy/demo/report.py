"""What the demo says when it is done: facts for programs, tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .run import Outcome
from .sizes import sized

if TYPE_CHECKING:
    from rich.table import Table


def facts(outcome: Outcome, pictures: dict[str, str]) -> dict[str, Any]:
    """The result as JSON-able values; times in seconds, sizes in bytes."""
    survey, restores = outcome.survey, outcome.stats["restores"]
    return {
        "proven": outcome.proven,
        "bitwise_equal": outcome.equal,
        "image_sha256": outcome.digest,
        "backend": outcome.backend.name,
        "device": outcome.backend.device,
        "shape": list(survey.earth.shape),
        "shots": len(survey.sources),
        "steps": survey.steps,
        "checkpoint_bytes": survey.field_bytes,
        "history_bytes": survey.history_bytes,
        "budgets": outcome.budgets,
        "seconds": {"all_in_memory": outcome.reference.seconds, "through_velocpy": outcome.image.seconds},
        "blocked_seconds": blocked(outcome),
        "prefetch_distance": restores["prefetch_distance_mean"],
        "hit_rate": restores["hits"] / max(restores["count"], 1),
        "stats": outcome.stats,
        "pictures": pictures,
    }


def blocked(outcome: Outcome) -> dict[str, float]:
    """Seconds that the sweeps stood still: for room, and for bytes."""
    waits = outcome.stats["waits_ns"]
    return {reason: waits[reason] / 1e9 for reason in ("capture", "restore")}


def tables(outcome: Outcome) -> list[Table]:
    """The tables for people: the two runs side by side, and what the tiers did."""
    return [_runs(outcome), _tiers(outcome)]


def _runs(outcome: Outcome) -> Table:
    survey, restores = outcome.survey, outcome.stats["restores"]
    shots = len(survey.sources)
    count = "1 shot" if shots == 1 else f"{shots} shots"
    title = f"{count} of {survey.steps} steps, {sized(survey.history_bytes)} of wavefields each"
    table = _table(title, ("", "all in memory", "through velocpy"))
    waits = blocked(outcome)
    table.add_row("memory for wavefields", sized(survey.history_bytes), sized(outcome.budgets["host"]))
    for sweep in ("forward", "reverse"):
        table.add_row(
            f"{sweep} sweeps", f"{outcome.reference.seconds[sweep]:.2f} s", f"{outcome.image.seconds[sweep]:.2f} s"
        )
    table.add_row("blocked, waiting for room", "", f"{waits['capture']:.2f} s")
    table.add_row("blocked, waiting for bytes", "", f"{waits['restore']:.2f} s")
    table.add_row("prefetch distance, mean", "", f"{restores['prefetch_distance_mean']:.1f} checkpoints")
    table.add_row("found in memory when asked for", "", f"{100.0 * restores['hits'] / max(restores['count'], 1):.1f} %")
    return table


def _tiers(outcome: Outcome) -> Table:
    table = _table("", ("tier", "budget", "most used", "written", "read back", "evicted"))
    captured = outcome.stats["bytes"]["captured"]
    for name, tier in sorted(outcome.stats["tiers"].items(), key=lambda item: item[0] != "host"):
        table.add_row(
            name,
            sized(tier["capacity"]),
            sized(tier["high_water"]),
            sized(captured if name == "host" else tier["written_bytes"]),
            sized(outcome.stats["bytes"]["restored"] if name == "host" else tier["read_bytes"]),
            sized(tier["evicted_bytes"]),
        )
    return table


def _table(title: str, headings: tuple[str, ...]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number == 0 else "right", style="cyan" if number == 0 else None)
    return table


def verdict(outcome: Outcome) -> str:
    """One line, in rich's markup."""
    if outcome.proven:
        return "[bold green]✔ the image is the one computed in memory, to the last bit[/]"
    if outcome.equal:
        return "[bold red]✘ the image shows nothing, so nothing is proven[/]"
    return "[bold red]✘ the image differs from the one computed in memory[/]"
