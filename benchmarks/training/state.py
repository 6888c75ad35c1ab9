"""A model with the state of AdamW, and steps that a device computes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from velocpy.bench.timing import median

TENSORS = 200  # parameters of the model
SIDE = 4096  # of the matrices that a step multiplies on a GPU
PRODUCTS = 24  # of one step


class Training:
    """Parameters and moments of ``size`` bytes in all, in fp32, as AdamW has them."""

    def __init__(self, size: int, device: str) -> None:
        import torch

        self._torch, self.device = torch, device
        each = max(size // (12 * TENSORS), 1)
        self.model = torch.nn.ParameterList(torch.empty(each, device=device) for _ in range(TENSORS))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        for parameter in self.model:
            moments = {name: torch.empty_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
            self.optimizer.state[parameter] = {"step": torch.tensor(1.0), **moments}
        self.name = torch.cuda.get_device_name() if device == "cuda" else "host memory"
        side = SIDE if device == "cuda" else 64
        self._matrix = torch.randn(side, side, device=device, dtype=torch.bfloat16) / side**0.5
        self._seed = 0

    @property
    def nbytes(self) -> int:
        """Bytes of parameters and moments."""
        return sum(tensor.nbytes for tensor in self._tensors())

    def state(self) -> dict[str, Any]:
        """The states of model and optimizer."""
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def begin(self) -> None:
        """Gives the state new values."""
        self._seed += 1
        for number, tensor in enumerate(self._tensors()):
            self._words(tensor).copy_(self._values(number, tensor))
        self.join()

    def spoil(self) -> None:
        """Changes every byte of the state, as a step does."""
        for tensor in self._tensors():
            self._words(tensor).bitwise_not_()

    def differences(self, staged: dict[str, Any] | None = None) -> int:
        """How many bytes of the state, or of a copy of it, are not those of the last `begin`."""
        wrong = 0
        for number, (name, tensor) in enumerate(self._named()):
            found = tensor if staged is None else _entry(staged, name).to(tensor.device)
            same = self._words(found) == self._values(number, tensor)
            wrong += 4 * int((~same).sum())
        return wrong

    def step(self) -> float:
        """Seconds of a step that changes nothing of the state."""
        began = time.perf_counter()
        product = self._matrix
        for _ in range(PRODUCTS):
            product = product @ self._matrix
        self.join()
        return time.perf_counter() - began

    def join(self) -> None:
        """Waits for the current stream."""
        if self.device == "cuda":
            self._torch.cuda.current_stream().synchronize()

    def device_rate(self) -> float:
        """Bytes a second of copies on the device, of as many tensors."""
        torch = self._torch
        some = list(self._tensors())[: 3 * TENSORS // 4]
        there = [torch.empty_like(tensor) for tensor in some]
        return self._rate(sum(tensor.nbytes for tensor in some), lambda: torch._foreach_copy_(there, some))

    def link_rate(self) -> float:
        """Bytes a second of a copy into pinned host memory."""
        torch = self._torch
        size = min(self.nbytes // 4, 1 << 30)
        source = torch.empty(size, dtype=torch.uint8, device=self.device)
        there = torch.empty(size, dtype=torch.uint8, pin_memory=self.device == "cuda")
        return self._rate(size, lambda: there.copy_(source, non_blocking=True))

    def _rate(self, size: int, copy: Callable[[], object]) -> float:
        times = []
        for _ in range(6):
            self.join()
            began = time.perf_counter()
            copy()
            self.join()
            times.append(time.perf_counter() - began)
        return size / median(times[1:])

    def _named(self) -> Iterator[tuple[tuple[Any, ...], Any]]:
        for number, parameter in enumerate(self.model):
            yield ("model", str(number)), parameter.detach()
            for name in ("exp_avg", "exp_avg_sq"):
                yield ("optimizer", "state", number, name), self.optimizer.state[parameter][name]

    def _tensors(self) -> Iterator[Any]:
        return (tensor for _, tensor in self._named())

    def _words(self, tensor: Any) -> Any:
        return tensor.view(self._torch.int32)

    def _values(self, number: int, tensor: Any) -> Any:
        """Words that differ from tensor to tensor and from one `begin` to the next."""
        torch = self._torch
        first = 1_000_003 * self._seed + 7919 * number
        return torch.arange(first, first + tensor.numel(), dtype=torch.int32, device=tensor.device) * 40503


def _entry(state: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        state = state[key]
    return state
