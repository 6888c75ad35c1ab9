"""When a loss has gone astray: it is no number, or far above the losses before it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from statistics import median
from typing import Any

from velocpy.checks import require_whole
from velocpy.errors import InvalidArgument

from .encoding import is_tensor

#: The standard deviation of a normal distribution in units of its median absolute deviation.
_DEVIATION = 1.4826


class LossGuard:
    """Tells which losses a training should not go on with.

    A loss is refused if it is not finite, or if it is more than ``threshold`` deviations above the median of the last
    ``window`` losses that were accepted. The deviation is estimated from the median absolute deviation, so that one
    outlier among the losses hides no other one, and is at least ``floor`` times the median. Losses that were refused
    are not part of the window.

    Parameters
    ----------
    window
        So many losses are looked back at.
    threshold
        In standard deviations. None: only losses that are not finite are refused.
    warmup
        The first so many losses are refused only if they are not finite.
    floor
        The least deviation, as a share of the median's absolute value: where the losses hardly differ, a loss above
        the median by less than ``threshold * floor`` of it passes. Where all of them are 0, every finite loss does.

    Examples
    --------
    >>> from velocpy.training import LossGuard
    >>> guard = LossGuard(window=50, warmup=5)
    >>> [guard.refuses(2.0 + 0.01 * (step % 3)) for step in range(10)].count(None)
    10
    >>> guard.refuses(9.0)
    'the loss 9 is 174 deviations above 2.01, the median of the last 10'
    >>> guard.refuses(float("nan"))
    'the loss is nan'
    >>> guard.refuses(2.02) is None
    True
    """

    def __init__(
        self, window: int = 100, threshold: float | None = 6.0, *, warmup: int = 20, floor: float = 0.02
    ) -> None:
        self._window = require_whole("window", window, 2)
        self._warmup = require_whole("warmup", warmup, 0)
        if threshold is not None and not threshold > 0:
            raise InvalidArgument(f"threshold is {threshold!r}; give a number of deviations above 0, or None.")
        if not 0 <= floor < math.inf:
            raise InvalidArgument(f"floor is {floor!r}; give a share of the median, 0 or more.")
        self._threshold = threshold
        self._floor = floor
        self._accepted: deque[float] = deque(maxlen=self._window)
        self._seen = 0

    def refuses(self, loss: Any) -> str | None:
        """Why the training should not go on from this loss, in words; None if it may.

        ``loss`` is a number, or anything that ``float()`` takes; a tensor on a device is waited for.
        """
        value = float(loss.detach() if is_tensor(loss) else loss)
        self._seen += 1
        if not math.isfinite(value):
            return f"the loss is {value:g}"
        if self._threshold is not None and self._seen > self._warmup and len(self._accepted) > 1:
            middle = median(self._accepted)
            spread = _DEVIATION * median(abs(each - middle) for each in self._accepted)
            spread = max(spread, self._floor * abs(middle))
            if spread > 0 and value - middle > self._threshold * spread:
                above, count = (value - middle) / spread, len(self._accepted)
                return f"the loss {value:g} is {above:.0f} deviations above {middle:g}, the median of the last {count}"
        self._accepted.append(value)
        return None

    def state_dict(self) -> dict[str, Any]:
        """The losses looked back at: a guard is a part of a `Checkpointer`, and goes back with the training."""
        return {"accepted": list(self._accepted), "seen": self._seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Sets them; the window is the guard's own."""
        self._accepted = deque((float(each) for each in state["accepted"]), maxlen=self._window)
        self._seen = int(state["seen"])


def finite(tensors: Iterable[Any]) -> bool:
    """Whether all elements of tensors are finite. Waits for their device."""
    return all(bool(each) for each in [tensor.isfinite().all() for tensor in tensors])
