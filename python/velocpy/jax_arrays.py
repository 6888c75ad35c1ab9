"""Arrays of JAX: which of them can be captured, and the memory of those that lie on the host.

JAX is never imported here: only an application that has imported it has arrays of it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .errors import InvalidArgument, InvalidType


def is_array(array: Any) -> bool:
    """Whether this is an array of JAX; also one that a transformation traces."""
    jax = sys.modules.get("jax")
    kind = getattr(jax, "Array", None)
    return kind is not None and isinstance(array, kind)


def require_memory(array: Any, label: Any) -> None:
    """Refuses arrays that are not one piece of memory.

    Raises
    ------
    InvalidType
        The array is traced, is a key of ``jax.random``, or is spread over several devices.
    InvalidArgument
        It was deleted, or donated to a function.
    """
    jax = sys.modules["jax"]
    if isinstance(array, jax.core.Tracer):
        raise InvalidType(
            f"region {label!r} is traced by a transformation of JAX, and has no values yet; capture what the "
            "transformed function returns, or call the store from jax.experimental.io_callback."
        )
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        raise InvalidType(f"region {label!r} is a key of jax.random; give jax.random.key_data(key).")
    if array.is_deleted():
        raise InvalidArgument(f"region {label!r} was deleted, or donated to a function of JAX: its memory is gone.")
    if len(array.sharding.device_set) > 1:
        raise InvalidType(
            f"region {label!r} is spread over {len(array.sharding.device_set)} devices; give the data of its "
            "addressable_shards."
        )


def on_host(array: Any, label: Any) -> np.ndarray[Any, Any] | None:
    """The memory of an array on the host, which nobody may write; None for one on a device.

    The buffer protocol has no word for elements such as ``bfloat16``, and NumPy has one as soon as JAX is there.
    """
    require_memory(array, label)
    if next(iter(array.sharding.device_set)).platform != "cpu":
        return None
    return np.asarray(array)
