"""The engine's policies on a virtual clock: what histories would cost on a machine that is described, not there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from . import _core, knobs
from .choices import Flush, Hints, Policy
from .errors import InvalidArgument, InvalidType
from .plan import Advance

#: The restores of one history, in their order.
Order = Iterable[int | Advance]


def simulate(
    sizes: Sequence[int] | Mapping[str, Sequence[int]],
    order: Order | Mapping[str, Order],
    *,
    interval: float,
    tiers: Sequence[tuple[int, float, float]],
    copy_rate: float,
    hints: Hints = "all",
    policy: Policy = "score",
    flush: Flush = "lazy",
    last: bool = True,
    wait_flushed: bool = False,
) -> dict[str, Any]:
    """Plays a forward sweep of checkpoints and the restores after it, with the code that runs a store.

    Several histories that share the tiers are given as mappings from their names. In each step the application then
    computes, and captures the next checkpoint of each history that has any left, one after the other. The restores
    after it go step by step in the same way.

    Parameters
    ----------
    sizes
        Bytes of each checkpoint, in the order of writing; or such a list for each history.
    order
        Which are restored, as indices into ``sizes``; or such an order for each history. `Advance` lets steps pass
        without a restore of that history. As in a plan it is a hint, too: what the history needs behind it is needed
        that much later.
    interval
        Seconds of computation in each step, before its calls.
    tiers
        Fastest first: (capacity in bytes, bytes/s down to the next tier, bytes/s up from it); the rates of the last
        tier are not used.
    copy_rate
        Bytes/s of copies between the caller's arrays and the fastest tier.
    hints
        How much of the order is told: "none", "one" (the next restore), "all".
    policy
        Eviction: "score" (Maurya et al., HPDC'23, algorithm 1), "lru", "fifo".
    flush
        "lazy" or "eager", as for `velocpy.open`.
    last
        Every restore is the last of its checkpoint.
    wait_flushed
        The restores begin when everything lies in the lowest tier.

    Returns
    -------
    dict
        Seconds: ``blocked`` (in calls, copies included), ``capture_blocked``, ``restore_blocked``, ``copying``,
        ``lower_bound`` (no policy blocks for less), ``elapsed``. Also ``hits`` of ``restores`` found in the fastest
        tier, ``prefetch_distance_mean``, bytes ``written`` to and ``read`` from the lowest tier. Of several
        histories ``histories`` has by name what their own calls cost: ``capture_blocked``, ``restore_blocked``,
        ``hits``, ``restores``, ``prefetch_distance_mean``.

    Raises
    ------
    InvalidArgument
        For numbers that describe no machine or no shot, and for histories with sizes but no order, or the reverse.
    InvalidType
        For orders that hold anything but indices and `Advance`, and for sizes of one history beside orders of several.

    Examples
    --------
    A history eight times the host budget, on a disk of 1 GB/s, read backwards:

    >>> from velocpy.plan import Advance
    >>> from velocpy.simulate import simulate
    >>> tiers = [(512 << 20, 1e9, 1e9), (8 << 30, 0, 0)]
    >>> shot = simulate([64 << 20] * 64, reversed(range(64)), interval=0.1, tiers=tiers, copy_rate=10e9)
    >>> shot["hits"], round(shot["blocked"] / shot["lower_bound"], 1)
    (64, 1.0)

    An adjoint that reads its state backwards in each step, and a large field in every fourth one. With 512 MiB of
    host memory some fields are waited for, with 1536 MiB none is:

    >>> sizes = {"state": [64 << 20] * 64, "field": [256 << 20] * 16}
    >>> order = {"state": range(63, -1, -1), "field": [op for k in range(15, -1, -1) for op in (Advance(3), k)]}
    >>> for host in (512, 1536):
    ...     tiers = [(host << 20, 1e9, 1e9), (8 << 30, 0, 0)]
    ...     both = simulate(sizes, order, interval=0.15, tiers=tiers, copy_rate=10e9)
    ...     for name, part in sorted(both["histories"].items()):
    ...         print(host, name, part["hits"], "of", part["restores"])
    512 field 10 of 16
    512 state 64 of 64
    1536 field 16 of 16
    1536 state 64 of 64
    """
    request = {
        **_histories(sizes, order),
        "interval": float(interval),
        "tiers": [{"capacity": int(c), "write_rate": float(w), "read_rate": float(r)} for c, w, r in tiers],
        "copy_rate": float(copy_rate),
        "hints": hints,
        "policy": policy,
        "flush": flush,
        "last": last,
        "wait_flushed": wait_flushed,
    }
    knobs.load_core()
    answer: dict[str, Any] = json.loads(_core.simulate(json.dumps(request)))
    return answer


def _histories(
    sizes: Sequence[int] | Mapping[str, Sequence[int]], order: Order | Mapping[str, Order]
) -> dict[str, list[Any]]:
    """What a request says of its history, or of several."""
    if not isinstance(sizes, Mapping):
        if isinstance(order, Mapping):
            raise InvalidType("order is a mapping, sizes is not: several histories take a mapping from names for both.")
        return _history(sizes, order)
    if not isinstance(order, Mapping):
        raise InvalidType("sizes is a mapping, order is not: several histories take a mapping from names for both.")
    if not sizes:
        raise InvalidArgument("sizes names no history.")
    for name in [*sizes, *order]:
        if not isinstance(name, str):
            raise InvalidType(f"The name of a history is a str, not {name!r}.")
        if name not in sizes or name not in order:
            raise InvalidArgument(f"History {name!r} is not in both of sizes and order.")
    return {"histories": [{"name": name, **_history(sizes[name], order[name])} for name in sizes]}


def _history(sizes: Sequence[int], order: Order) -> dict[str, list[Any]]:
    return {"sizes": [int(n) for n in sizes], "order": [turn for op in order for turn in _turn(op)]}


def _turn(op: int | Advance) -> list[Any]:
    """One element of an order as JSON; none for steps that are none."""
    if isinstance(op, Advance):
        return [{"advance": op.steps}] if op.steps else []
    if isinstance(op, bool) or not isinstance(op, Integral):
        raise InvalidType(f"An order holds indices into sizes and Advance, not {op!r}.")
    return [int(op)]
