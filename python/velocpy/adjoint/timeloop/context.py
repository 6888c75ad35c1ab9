"""What a step depends on besides its state: torch's default generators, and autocast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch


class Generators:
    """The default generators of the CPU and of the CUDA devices in use."""

    def __init__(self, devices: Iterable[torch.device]) -> None:
        self._devices = sorted({device.index for device in devices if device.type == "cuda"})

    def read(self) -> dict[str, torch.Tensor]:
        """Their states, as regions of a checkpoint."""
        states = {"generator/cpu": torch.get_rng_state()}
        for index in self._devices:
            states[f"generator/cuda:{index}"] = torch.cuda.get_rng_state(index)
        return states

    def write(self, regions: Mapping[str, torch.Tensor]) -> None:
        """Puts them into the states that `read` gave."""
        torch.set_rng_state(regions["generator/cpu"])
        for index in self._devices:
            torch.cuda.set_rng_state(regions[f"generator/cuda:{index}"], index)

    @contextmanager
    def preserved(self) -> Iterator[None]:
        """Afterwards they stand where they stood before."""
        before = self.read()
        try:
            yield
        finally:
            self.write(before)


class NoGenerators(Generators):
    """Leaves all generators alone."""

    def __init__(self) -> None:
        super().__init__(())

    def read(self) -> dict[str, torch.Tensor]:
        return {}

    def write(self, regions: Mapping[str, torch.Tensor]) -> None:
        pass


@dataclass(frozen=True)
class Autocast:
    """The autocast state of some types of devices."""

    states: tuple[tuple[str, bool, torch.dtype], ...]

    @classmethod
    def present(cls, devices: Iterable[torch.device]) -> Autocast:
        """That of this moment, of this thread."""
        kinds = sorted({"cpu", *(device.type for device in devices)})
        return cls(tuple((kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds))

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The same state, without the cache of casts.

        That cache would hold casts across steps. One made without a graph would then hide its weight from a graph.
        """
        with ExitStack() as stack:
            for kind, enabled, dtype in self.states:
                if enabled or torch.is_autocast_enabled(kind):
                    stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=False))
            yield
