"""Sizes, rates and durations for people.

Sizes have binary units (1 KiB = 1024 bytes), as memory and budgets do, with the exact number of bytes beside them where
a few bytes decide. Rates have decimal ones (1 GB/s = 10^9 bytes a second), as data sheets of disks and links do. JSON
messages, arguments and results have bytes, and bytes a second. The core's package ``quantity`` writes the same texts.
"""

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
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        value /= 1024
        if abs(value) < 1023.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} EiB"


def counted(number: int, one: str, more: str = "") -> str:
    """A number of things, with their name in the singular or the plural: without ``more`` by an s.

    Examples
    --------
    >>> from velocpy.quantity import counted
    >>> counted(1, "fault"), counted(0, "fault"), counted(2, "history", "histories")
    ('1 fault', '0 faults', '2 histories')
    """
    return f"{number} {one}" if number == 1 else f"{number} {more or one + 's'}"


def exact(nbytes: int) -> str:
    """The same with the number of bytes, for messages in which a few bytes decide.

    Examples
    --------
    >>> from velocpy.quantity import exact
    >>> exact(17), exact(65537)
    ('17 B', '64.0 KiB (65537 bytes)')
    """
    return sized(nbytes) if nbytes < 1024 else f"{sized(nbytes)} ({nbytes} bytes)"


def rated(bytes_per_second: float) -> str:
    """A rate with three digits and a decimal unit.

    Examples
    --------
    >>> from velocpy.quantity import rated
    >>> rated(55.4e9), rated(2 << 30), rated(512)
    ('55.4 GB/s', '2.15 GB/s', '0.512 kB/s')
    """
    value = bytes_per_second
    for unit in ("kB/s", "MB/s", "GB/s"):
        value /= 1000
        if value < 999.5:
            return f"{value:.3g} {unit}"
    return f"{value / 1000:.3g} TB/s"


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
