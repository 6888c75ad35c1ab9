"""Settings of a store that change its speed and never what it gives back: `Tuning`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from .checks import require_choice, require_whole
from .choices import FlushRule, Pinning, Policy
from .deprecation import warn
from .errors import InvalidArgument, InvalidType

__all__ = ["Tuning"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tuning:
    """How a store works, for `velocpy.open`: to make it faster on one machine, or to compare ways.

    The default of each is what most programs want. None of them changes the bytes that a restore gives of a checkpoint
    that is not damaged.

    Parameters
    ----------
    flush
        When checkpoints are written to the tier below. "lazy": when space will be needed; "eager": at once; "auto":
        "eager" for a durable store and "lazy" for others.
    policy
        Which checkpoint leaves a full tier. "score" reads the plan, the sizes and the gaps (Maurya et al., HPDC'23,
        algorithm 1); "lru" and "fifo" are there for comparison.
    pinning
        How host memory is registered with the CUDA driver, so that devices reach it at full speed. "pipeline" touches
        and registers it piece by piece while the store works; "concurrent", "sequential" and "direct" are the
        strategies of Maurya et al., HiPC'22; "auto" chooses among the four by a model of what the application captures
        and of what the machine does; "off" never registers it.
    prefetch
        Whether checkpoints are brought back before they are restored.
    guess
        Whether the store guesses the order of restores where no plan tells it.
    together
        Whether small checkpoints whose flushes have queued up leave a device together, encoded by one launch (Maurya et
        al., HiPC'23, section III) or copied with one wait, or each alone.
    checksum
        Whether captures take checksums at all. Without them nothing can be verified.
    lookahead
        How many restores of a lazy plan are read ahead, from 1 up.
    workers
        How many disk transfers run at once each way, beside those that restores wait for. None: chosen by the store.
    copiers
        Threads for large copies in memory. None: chosen by the store.
    direct
        Whether disk transfers bypass the page cache (O_DIRECT). None: chosen by the store.

    Raises
    ------
    InvalidArgument, InvalidType
        A value cannot be what it is.

    Examples
    --------
    >>> import velocpy
    >>> with velocpy.open(host="16MiB", disk="64MiB", tuning=velocpy.Tuning(policy="lru", workers=2)) as store:
    ...     store
    <Store host 16.0 MiB, disk 64.0 MiB: 0 histories>
    """

    flush: FlushRule = "auto"
    policy: Policy = "score"
    pinning: Pinning = "auto"
    prefetch: bool = True
    guess: bool = True
    together: bool = True
    checksum: bool = True
    lookahead: int = 1024
    workers: int | None = None
    copiers: int | None = None
    direct: bool | None = None

    def __post_init__(self) -> None:
        require_choice("flush", self.flush, FlushRule)
        require_choice("policy", self.policy, Policy)
        require_choice("pinning", self.pinning, Pinning)
        require_whole("lookahead", self.lookahead, 1)
        for name, count in (("workers", self.workers), ("copiers", self.copiers)):
            if count is not None:
                require_whole(name, count, 1)

    def _config(self) -> dict[str, Any]:
        """What the core is told, but for ``flush`` and ``pinning``, which depend on the store's tiers."""
        config: dict[str, Any] = {
            "policy": self.policy,
            "checksum": bool(self.checksum),
            "prefetch": bool(self.prefetch),
            "guess": bool(self.guess),
            "together": bool(self.together),
        }
        if self.workers is not None:
            config["workers"] = self.workers
        if self.copiers is not None:
            config["copiers"] = self.copiers
        if self.direct is not None:
            config["direct"] = bool(self.direct)
        return config


class FormerKeywords(TypedDict, total=False):
    """The keywords of `velocpy.open` that have become fields of `Tuning`; they work for one version."""

    flush: FlushRule
    policy: Policy
    pinning: Pinning
    prefetch: bool
    guess: bool
    checksum: bool
    lookahead: int
    workers: int | None
    copiers: int | None
    direct: bool | None


def tuning_of(tuning: Tuning | None, former: Mapping[str, Any]) -> Tuning:
    """The tuning that `velocpy.open` was given, by its own argument or by former keywords.

    Raises
    ------
    TypeError
        A keyword has never been one.
    InvalidArgument, InvalidType
        Both were given, a former keyword's value cannot be what it is, or ``tuning`` is no `Tuning`.
    """
    if tuning is not None and not isinstance(tuning, Tuning):
        raise InvalidType(f"tuning is a {type(tuning).__name__}; give a velocpy.Tuning, as in Tuning(policy='lru').")
    for name in former:
        if name not in FormerKeywords.__annotations__:
            raise TypeError(f"open() got an unexpected keyword argument {name!r}")
    if not former:
        return Tuning() if tuning is None else tuning
    words = ", ".join(f"{name}=…" for name in former)
    if tuning is not None:
        raise InvalidArgument(f"open() was given tuning= and {words}: put all of it into the velocpy.Tuning.")
    made = Tuning(**former)
    warn(f"open({words})", f"open(tuning=velocpy.Tuning({words}))", 2)
    return made
