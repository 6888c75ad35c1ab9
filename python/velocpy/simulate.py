"""The engine's policies on a virtual clock: what a history would cost on a machine that is described, not there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from . import _core, knobs
from .choices import Flush, Hints, Policy


def simulate(
    sizes: Sequence[int],
    order: Iterable[int],
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

    Parameters
    ----------
    sizes
        Bytes of each checkpoint, in the order of writing.
    order
        Which are restored, as indices into ``sizes``.
    interval
        Seconds of computation before each call.
    tiers
        Fastest first: (capacity in bytes, bytes/s down to the next tier, bytes/s up from it); the rates of the last
        tier are not used.
    copy_rate
        Bytes/s of copies between the caller's arrays and the fastest tier.
    hints
        How much of the order is told: "none", "one" (the next restore), "all".
    policy
        Eviction: "score" (seed 000, algorithm 1), "lru", "fifo".
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
        tier, ``prefetch_distance_mean``, bytes ``written`` to and ``read`` from the lowest tier.

    Raises
    ------
    InvalidArgument
        For numbers that describe no machine or no shot.

    Examples
    --------
    A history eight times the host budget, on a disk of 1 GB/s, read backwards:

    >>> import velocpy
    >>> tiers = [(512 << 20, 1e9, 1e9), (8 << 30, 0, 0)]
    >>> shot = velocpy.simulate([64 << 20] * 64, reversed(range(64)), interval=0.1, tiers=tiers, copy_rate=10e9)
    >>> shot["hits"], round(shot["blocked"] / shot["lower_bound"], 1)
    (64, 1.0)
    """
    knobs.load_core()
    request = {
        "sizes": [int(n) for n in sizes],
        "order": [int(k) for k in order],
        "interval": float(interval),
        "tiers": [{"capacity": int(c), "write_rate": float(w), "read_rate": float(r)} for c, w, r in tiers],
        "copy_rate": float(copy_rate),
        "hints": hints,
        "policy": policy,
        "flush": flush,
        "last": last,
        "wait_flushed": wait_flushed,
    }
    answer: dict[str, Any] = json.loads(_core.simulate(json.dumps(request)))
    return answer
