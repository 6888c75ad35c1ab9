"""When checkpoints were captured: what the core says, as `datetime`, in JSON, and for people."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

_BEGIN = datetime(1970, 1, 1, tzinfo=timezone.utc)


def from_nanoseconds(since: int) -> datetime | None:
    """A time in UTC of so many nanoseconds since 1970, cut to microseconds; None of 0, which says that it is not known.

    Examples
    --------
    >>> from velocpy.times import from_nanoseconds
    >>> print(from_nanoseconds(1_700_000_000_123_456_789), from_nanoseconds(0))
    2023-11-14 22:13:20.123456+00:00 None
    """
    return None if since == 0 else _BEGIN + timedelta(microseconds=since // 1000)


def from_json(text: str | None) -> datetime | None:
    """A time in UTC as JSON has it: ISO 8601 with a Z; None of null.

    Examples
    --------
    >>> from velocpy.times import from_json
    >>> print(from_json("2023-11-14T22:13:20.123456Z"), from_json(None))
    2023-11-14 22:13:20.123456+00:00 None
    """
    return None if text is None else datetime.fromisoformat(f"{text.removesuffix('Z')}+00:00")


def for_json(time: datetime | None) -> str | None:
    """The reverse of `from_json`.

    Examples
    --------
    >>> from velocpy.times import for_json, from_json
    >>> for_json(from_json("2023-11-14T22:13:20.000000Z"))
    '2023-11-14T22:13:20.000000Z'
    """
    return None if time is None else time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def shown(time: datetime | None) -> str:
    """For people, in UTC; "-" of None."""
    return "-" if time is None else time.strftime("%Y-%m-%d %H:%M:%S UTC")
