"""What the demo says when it is done: facts for programs, tables for people."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from velocpy.errors import TIERS
from velocpy.figures import TierStats
from velocpy.quantity import rated, sized

from .run import Outcome

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
        "pointers": outcome.settings.pointers,
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
        "links": links(outcome),
        "reduction": reduction(outcome),
        "stats": outcome.stats,
        "pictures": pictures,
    }


def blocked(outcome: Outcome) -> dict[str, float]:
    """Seconds that the sweeps stood still, for room and for bytes: the calls, and the streams on a device."""
    waits = outcome.stats["waits_ns"]
    seconds = {"capture": waits["capture"], "restore": waits["restore"]}
    if "device" in outcome.budgets:
        seconds |= {name: waits[name] for name in ("capture_on_device", "restore_on_device")}
    return {reason: nanoseconds / 1e9 for reason, nanoseconds in seconds.items()}


def links(outcome: Outcome) -> dict[str, dict[str, float]]:
    """Bytes that crossed the link between each two tiers, and the rates measured there: bytes/s, 0 for unknown."""
    tiers = _tiers_of(outcome)
    return {
        f"{above} - {below}": {
            "down": tiers[below]["written_bytes"],
            "up": tiers[below]["read_bytes"],
            "down_bytes_per_s": tiers[above]["flush_bytes_per_s"],
            "up_bytes_per_s": tiers[above]["load_bytes_per_s"],
        }
        for above, below in pairwise(tiers)
    }


def reduction(outcome: Outcome) -> dict[str, float] | None:
    """What reducing the wavefields did, over all shots: in bytes and seconds; None where they are not reduced."""
    if outcome.settings.reduce is None:
        return None
    shots = [found for history in outcome.stats["histories"].values() if (found := history["reduction"])]
    return {
        "encoded": sum(shot["encoded"] for shot in shots),
        "plain": sum(shot["plain"] for shot in shots),
        "encoded_from": sum(shot["encoded_from"] for shot in shots),
        "encoded_to": sum(shot["encoded_to"] for shot in shots),
        "differences": sum(shot["differences"] for shot in shots),
        "first_bytes": sum(shot["first_bytes"] for shot in shots),
        "meta_bytes": sum(shot["meta_bytes"] for shot in shots),
        "encode_seconds": sum(shot["encode_ns"] for shot in shots) / 1e9,
        "decode_seconds": sum(shot["decode_ns"] for shot in shots) / 1e9,
    }


def memory(budgets: dict[str, int]) -> str:
    """The budgets above the disk, in words."""
    host = sized(budgets["host"])
    above = f"{sized(budgets['device'])} on the device and " if "device" in budgets else ""
    return f"{above}{host} of memory"


def _tiers_of(outcome: Outcome) -> dict[str, TierStats]:
    """The tiers' counters, the fastest first."""
    tiers = outcome.stats["tiers"]
    return {name: tiers[name] for name in TIERS if name in tiers}


def tables(outcome: Outcome) -> list[Table]:
    """The tables for people: the two runs side by side, what the tiers did, and what moved between them."""
    all_tables = [_runs(outcome), _tiers(outcome), _links(outcome)]
    saved = reduction(outcome)
    return all_tables if saved is None else [*all_tables, _reduction(outcome, saved)]


def _runs(outcome: Outcome) -> Table:
    survey, restores, on_device = outcome.survey, outcome.stats["restores"], "device" in outcome.budgets
    shots = len(survey.sources)
    count = "1 shot" if shots == 1 else f"{shots} shots"
    title = f"{count} of {survey.steps} steps, {sized(survey.history_bytes)} of wavefields each"
    if on_device:
        ways = "raw pointers" if outcome.settings.pointers else "arrays"
        title += f"; {ways} of {outcome.backend.name} on {outcome.backend.device}"
    place = "on the device" if on_device else "in memory"
    table = _table(title, ("", f"all {place}", "through velocpy"))
    waits = blocked(outcome)
    whole, budgets = sized(survey.history_bytes), outcome.budgets
    if on_device:
        table.add_row("device memory for wavefields", whole, sized(budgets["device"]))
        table.add_row("host memory for wavefields", "", sized(budgets["host"]))
    else:
        table.add_row("memory for wavefields", whole, sized(budgets["host"]))
    for sweep in ("forward", "reverse"):
        table.add_row(
            f"{sweep} sweeps", f"{outcome.reference.seconds[sweep]:.2f} s", f"{outcome.image.seconds[sweep]:.2f} s"
        )
    table.add_row("blocked, waiting for room", "", f"{waits['capture']:.2f} s")
    table.add_row("blocked, waiting for bytes", "", f"{waits['restore']:.2f} s")
    if on_device:
        table.add_row("the device waiting for room", "", f"{waits['capture_on_device']:.2f} s")
        table.add_row("the device waiting for bytes", "", f"{waits['restore_on_device']:.2f} s")
    table.add_row("prefetch distance, mean", "", f"{restores['prefetch_distance_mean']:.1f} checkpoints")
    table.add_row(f"found {place} when asked for", "", f"{100.0 * restores['hits'] / max(restores['count'], 1):.1f} %")
    return table


def _tiers(outcome: Outcome) -> Table:
    """What is captured counts for the fastest tier."""
    table = _table("", ("tier", "budget", "most used", "written", "read back", "evicted"))
    moved = outcome.stats["bytes"]
    for number, (name, tier) in enumerate(_tiers_of(outcome).items()):
        table.add_row(
            name,
            sized(tier["capacity"]),
            sized(tier["high_water"]),
            sized(tier["written_bytes"] if number else moved["captured"]),
            sized(tier["read_bytes"] if number else moved["restored"]),
            sized(tier["evicted_bytes"]),
        )
    return table


def _links(outcome: Outcome) -> Table:
    table = _table("", ("link", "down", "up", "down, rate", "up, rate"))
    for name, link in links(outcome).items():
        rates = (rated(link[rate]) if link[rate] else "" for rate in ("down_bytes_per_s", "up_bytes_per_s"))
        table.add_row(name, sized(link["down"]), sized(link["up"]), *rates)
    return table


def _reduction(outcome: Outcome, saved: dict[str, float]) -> Table:
    table = _table(f"wavefields reduced by {outcome.settings.reduce} on their way down", ("", "all shots"))
    encoded, before, after = (saved[name] for name in ("encoded", "encoded_from", "encoded_to"))
    table.add_row("encoded, and left as they were", f"{encoded:.0f}, {saved['plain']:.0f}")
    if encoded:
        table.add_row("bytes before, and after", f"{sized(int(before))}, {sized(int(after))}")
        table.add_row("ratio, and saved", f"{before / after:.2f}, {sized(int(before - after))}")
        if saved["meta_bytes"]:
            table.add_row("of these, refer to earlier ones", f"{saved['differences']:.0f}")
            table.add_row("bytes that no earlier one had", sized(int(saved["first_bytes"])))
            table.add_row("bytes of metadata", sized(int(saved["meta_bytes"])))
        table.add_row("time of these flushes", f"{saved['encode_seconds']:.2f} s")
        table.add_row("time of loads that decoded", f"{saved['decode_seconds']:.2f} s")
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
    place = "in memory" if outcome.backend.card is None else "in device memory, there and after its download"
    if outcome.proven:
        return f"[bold green]✔ the image is the one computed {place}, to the last bit[/]"
    if outcome.equal:
        return "[bold red]✘ the image shows nothing, so nothing is proven[/]"
    return f"[bold red]✘ the image differs from the one computed {place}[/]"
