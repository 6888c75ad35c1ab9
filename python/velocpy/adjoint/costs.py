"""What saving and restoring costs, in the unit that schedules count in: one step of the forward computation."""

from __future__ import annotations

from typing import Any


def weights(store: Any, nbytes: int, step_seconds: float) -> dict[str, float]:
    """The cost of writing and reading a checkpoint on disk, from the rates that a store has measured so far.

    Parameters
    ----------
    nbytes
        Size of a checkpoint.
    step_seconds
        Time of one forward step.

    Returns
    -------
    dict
        ``wd`` and ``rd``, as `checkpoint_schedules.HRevolve` and `VelocStorage` take them. Before anything was moved
        they stand on what the store assumes of a disk; without a disk tier they are 0.

    Examples
    --------
    >>> import velocpy
    >>> with velocpy.open(host="1MiB") as store:
    ...     weights(store, nbytes=100_000, step_seconds=0.01)
    {'wd': 0.0, 'rd': 0.0}
    """
    disk = store.costs().get("disk", {})
    return {
        name: nbytes / rate / step_seconds if (rate := disk.get(way)) else 0.0
        for name, way in (("wd", "write"), ("rd", "read"))
    }
