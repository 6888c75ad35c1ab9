"""Bytes and seconds for people."""

from __future__ import annotations


def sized(nbytes: float) -> str:
    """A number of bytes with one decimal and a binary unit, the only kind that messages and commands use.

    Examples
    --------
    >>> from velocpy.quantity import sized
    >>> sized(17), sized(1536), sized(3 << 30)
    ('17 B', '1.5 KiB', '3.0 GiB')
    """
    value = float(nbytes)
    if abs(value) < 1023.5:
        return f"{value:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if abs(value) < 1023.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TiB"


def timed(seconds: float) -> str:
    """A duration with three digits.

    Examples
    --------
    >>> timed(0.0000012), timed(0.0123), timed(4)
    ('1.2 µs', '12.3 ms', '4 s')
    """
    for unit, part in (("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * part:
            return f"{seconds / part:.3g} {unit}"
    return f"{seconds:.3g} s"
