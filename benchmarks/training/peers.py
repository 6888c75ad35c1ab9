"""The stager of PyTorch, as its version allows it to be used."""

from __future__ import annotations

from functools import cache
from typing import Any


def stager(*options: bool) -> Any:
    """A ``DefaultStager`` with these ``StagingOptions``; all of them are True where none is given."""
    from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

    class MadeAnew(DefaultStager):
        """Copies one state only: it begins anew with each."""

        used = False

        def stage(self, state_dict: Any, **given: Any) -> Any:
            if self.used:
                self.close()
                super().__init__(self._config)
            self.used = True
            return super().stage(state_dict, **given)

    kind = DefaultStager if reusable() else MadeAnew
    return kind(StagingOptions(*options))


@cache
def reusable() -> bool:
    """Whether one stager copies several states, which that of torch 2.11 does not."""
    from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

    probe = DefaultStager(StagingOptions(False, False, False, False))
    try:
        for _ in range(2):
            probe.stage({"probe": [1.0]})
    except KeyError:
        return False
    finally:
        probe.close()
    return True


def remarks() -> list[str]:
    """What a report says of it."""
    if reusable():
        return []
    return ["This version's DefaultStager copies one state only: each snapshot begins with a new one, without memory."]
