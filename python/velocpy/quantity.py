"""Bytes and seconds for people."""

from __future__ import annotations


def sized(nbytes: float) -> str:
    """A number of bytes with three digits and a decimal unit.

    Examples
    --------
    >>> sized(1_234_567), sized(17), sized(98_700_000_000)
    ('1.23 MB', '17 B', '98.7 GB')
    """
    value = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000.0
    return f"{value:.3g} TB"


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
