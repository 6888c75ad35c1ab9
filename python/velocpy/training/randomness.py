"""The generators of random numbers that a training step draws from, as a state."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np


class GlobalRandom:
    """The generators that belong to the process: of Python, NumPy, and torch on the CPU and on each CUDA device.

    Those of torch are part of it when torch has been imported, and those of CUDA when a CUDA device is in use.
    """

    def state_dict(self) -> dict[str, Any]:
        """The states of all of them now."""
        state: dict[str, Any] = {
            "python": python_state(random.getstate()),
            "numpy": np.random.get_state(legacy=False),
        }
        torch = sys.modules.get("torch")
        if torch is not None:
            state["torch"] = torch.get_rng_state()
            if torch.cuda.is_initialized():
                state["cuda"] = torch.cuda.get_rng_state_all()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Sets the generators that the state has; CUDA devices that it has no state for keep theirs."""
        random.setstate(python_tuple(state["python"]))
        np.random.set_state(state["numpy"])
        if "torch" in state:
            import torch

            torch.set_rng_state(state["torch"].cpu())
            for device, generator in enumerate(state.get("cuda", ())[: torch.cuda.device_count()]):
                torch.cuda.set_rng_state(generator.cpu(), device)


class Generator:
    """One generator that a training owns: of torch, NumPy (numpy.random.RandomState, too) or Python."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    @staticmethod
    def is_one(value: Any) -> bool:
        """Whether this is a generator of a kind that is known."""
        torch = sys.modules.get("torch")
        return isinstance(value, (np.random.Generator, np.random.RandomState, random.Random)) or (
            torch is not None and isinstance(value, torch.Generator)
        )

    def state_dict(self) -> dict[str, Any]:
        """Its state now."""
        if isinstance(self._generator, np.random.Generator):
            return {"numpy": dict(self._generator.bit_generator.state)}
        if isinstance(self._generator, np.random.RandomState):
            return {"numpy": self._generator.get_state(legacy=False)}
        if isinstance(self._generator, random.Random):
            return {"python": python_state(self._generator.getstate())}
        return {"torch": self._generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Sets it."""
        if isinstance(self._generator, np.random.Generator):
            self._generator.bit_generator.state = state["numpy"]
        elif isinstance(self._generator, np.random.RandomState):
            self._generator.set_state(state["numpy"])
        elif isinstance(self._generator, random.Random):
            self._generator.setstate(python_tuple(state["python"]))
        else:
            self._generator.set_state(state["torch"].cpu())


def python_state(state: tuple[Any, ...]) -> dict[str, Any]:
    """The state of a random.Random with its 625 words as an array."""
    version, words, gauss = state
    return {"version": version, "words": np.array(words, np.uint32), "gauss": gauss}


def python_tuple(state: dict[str, Any]) -> tuple[Any, ...]:
    """The same as random.setstate takes it."""
    return state["version"], tuple(state["words"].tolist()), state["gauss"]
