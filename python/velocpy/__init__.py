"""velocpy keeps the history of a computation across memory and disk and brings it back in the order it is needed in.

Examples
--------
>>> import numpy, velocpy
>>> with velocpy.open(host="64MiB", disk="256MiB") as store:
...     forward = store.history("forward")
...     forward.hint(reversed(range(4)))
...     for i in range(4):
...         _ = forward.checkpoint(i, u=numpy.full(3, i))
...     [state["u"].sum().item() for _, state in forward.restore_iter(last=True)]
[9, 6, 3, 0]
"""

from __future__ import annotations

import json as _json
from typing import Any as _Any

from . import _core, knobs
from ._version import __version__
from .errors import *  # noqa: F403
from .errors import __all__ as _errors
from .history import History
from .lease import Lease
from .plan import Advance, Drop, Last, Plan, Restore
from .simulate import simulate
from .store import Store, open  # noqa: A004
from .ticket import Ticket

__all__ = [
    "open",
    "Store",
    "History",
    "Ticket",
    "Lease",
    "Plan",
    "Restore",
    "Last",
    "Drop",
    "Advance",
    "simulate",
    "build_info",
    "__version__",
]
__all__ += _errors


def build_info() -> dict[str, _Any]:
    """Versions of the package, the shim and the core; loads the core.

    Examples
    --------
    >>> import velocpy
    >>> velocpy.build_info()["version"] == velocpy.__version__
    True
    """
    knobs.load_core()
    return {
        "version": __version__,
        "shim": _core.shim_info(),
        "core": _json.loads(_core.core_build_info()),
        "core_path": _core.loaded_from(),
    }
