"""States of small trainings on the CPU: parameters, and what the optimizer keeps for each.

A transformer that predicts the next token of a synthetic text is trained a little, then fine-tuned on another text. Its
states are taken after each step of the fine-tuning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

TOKENS = 2048
LENGTH = 64
BATCH = 4
WARM = 6  # steps of the training before the fine-tuning
RATE, FINE_RATE = 1e-3, 1e-5
RANK = 8  # of LoRA's matrices
ROW = 64  # numbers of a row of the large embedding

State = dict[str, torch.Tensor]


class Linear(nn.Linear):
    """A linear layer, with the sum of a product of two narrow matrices if it is adapted (Hu et al., ICLR'22)."""

    down: nn.Parameter | None
    up: nn.Parameter | None

    def __init__(self, width: int, to: int) -> None:
        super().__init__(width, to, bias=False)
        self.register_parameter("down", None)
        self.register_parameter("up", None)

    def adapt(self) -> None:
        """Freezes the weights, and adds the matrices; the product is zero until they are trained."""
        self.weight.requires_grad_(False)
        self.down = nn.Parameter(0.02 * torch.randn(RANK, self.in_features))
        self.up = nn.Parameter(torch.zeros(self.out_features, RANK))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The product, and that of the narrow matrices."""
        y = functional.linear(x, self.weight)
        if self.down is None or self.up is None:
            return y
        return y + functional.linear(functional.linear(x, self.down), self.up)


class Block(nn.Module):
    """Attention to earlier tokens, and a layer for each token by itself."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // 64)
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.merge = Linear(width, 3 * width), Linear(width, width)
        self.widen, self.narrow = Linear(width, 4 * width), Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Adds both to the tokens."""
        batch, length, width = x.shape
        parts = self.attend(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.merge(seen.transpose(1, 2).reshape(batch, length, width))
        out: torch.Tensor = x + self.narrow(functional.gelu(self.widen(self.between(x))))
        return out


class Transformer(nn.Module):
    """Predicts the next token."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.token = nn.Embedding(TOKENS, width)
        self.place = nn.Embedding(LENGTH, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(layers)))
        self.last = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The logits of the next tokens."""
        x = self.token(tokens) + self.place.weight[: tokens.shape[1]]
        return functional.linear(self.last(self.blocks(x)), self.token.weight)


def text(seed: int, tokens: int = TOKENS) -> Iterator[torch.Tensor]:
    """Batches of a text without end: after each token one of four follows, and seldom any."""
    random = np.random.default_rng(seed)
    follow = np.minimum(random.zipf(1.3, (tokens, 4)) - 1, tokens - 1)
    while True:
        batch = np.empty((BATCH, LENGTH + 1), np.int64)
        batch[:, 0] = random.integers(0, tokens, BATCH)
        for at in range(LENGTH):
            next_one = follow[batch[:, at], random.integers(0, 4, BATCH)]
            other = random.integers(0, tokens, BATCH)
            batch[:, at + 1] = np.where(random.random(BATCH) < 0.1, other, next_one)
        yield torch.from_numpy(batch)


def full(checkpoints: int, megabytes: float, dtype: torch.dtype = torch.float32) -> tuple[list[State], str]:
    """All parameters are trained; parameters and both moments have this type."""
    width = 256 if megabytes >= 8 else 32
    layers = _layers(width, megabytes, 3 * dtype.itemsize)
    model = _trained(width, layers).to(dtype)
    optimizer = torch.optim.Adam(model.parameters(), FINE_RATE)
    return _states(model, optimizer, checkpoints), _words(model, f"Adam, {str(dtype).removeprefix('torch.')}")


def half(checkpoints: int, megabytes: float) -> tuple[list[State], str]:
    """The same in bfloat16."""
    return full(checkpoints, megabytes, torch.bfloat16)


def adapters(checkpoints: int, megabytes: float) -> tuple[list[State], str]:
    """Narrow matrices are trained beside frozen weights."""
    width = 256 if megabytes >= 8 else 32
    model = _trained(width, _layers(width, megabytes, 4))
    model.requires_grad_(False)
    for module in model.modules():
        if isinstance(module, Linear):
            module.adapt()
    optimizer = torch.optim.Adam([each for each in model.parameters() if each.requires_grad], 1e-4)
    return _states(model, optimizer, checkpoints), _words(model, f"LoRA of rank {RANK}, float32")


def embeddings(checkpoints: int, megabytes: float) -> tuple[list[State], str]:
    """A large table of which a step trains the rows that its batch has."""
    torch.manual_seed(0)
    rows = int(megabytes * 1e6 / (3 * 4 * ROW))
    table = nn.Embedding(rows, ROW, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters(), RATE)
    batches, states = text(3, rows), []
    for _ in range(checkpoints):
        batch = next(batches)
        here, after = table(batch[:, :-1]), table(batch[:, 1:])
        other = table(torch.roll(batch[:, 1:], 1, 0))
        _descend(optimizer, functional.softplus((here * other).sum(-1) - (here * after).sum(-1)).mean())
        states.append(_copied(table, optimizer))
    return states, f"{rows} rows of {ROW}, SparseAdam, float32"


#: By name: checkpoints after each step, of about so many megabytes each, and what was trained.
KINDS: dict[str, Callable[[int, float], tuple[list[State], str]]] = {
    "full fp32": full,
    "full bf16": half,
    "LoRA": adapters,
    "embeddings": embeddings,
}


def _layers(width: int, megabytes: float, bytes_each: int) -> int:
    """How many layers make a state of at least so many megabytes."""
    rest = megabytes * 1e6 / bytes_each - width * (TOKENS + LENGTH)
    return max(1, int(np.ceil(rest / (12 * width * width))))


def _trained(width: int, layers: int) -> Transformer:
    torch.manual_seed(0)
    model = Transformer(width, layers)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    batches = text(1)
    for _ in range(WARM):
        _step(model, optimizer, next(batches))
    return model


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> None:
    logits = model(batch[:, :-1])
    _descend(optimizer, functional.cross_entropy(logits.float().flatten(0, 1), batch[:, 1:].flatten()))


def _descend(optimizer: Any, loss: Any) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _states(model: nn.Module, optimizer: torch.optim.Optimizer, checkpoints: int) -> list[State]:
    batches, states = text(2), []
    for _ in range(checkpoints):
        _step(model, optimizer, next(batches))
        states.append(_copied(model, optimizer))
    return states


def _copied(model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
    state: State = {}
    for name, parameter in model.named_parameters():
        state[name] = parameter.detach().clone()
        kept: dict[str, Any] = optimizer.state.get(parameter, {})
        for what, value in kept.items():
            state[f"{name}, {what}"] = torch.as_tensor(value).detach().clone().reshape(-1)
    return state


def _words(model: nn.Module, how: str) -> str:
    return f"{sum(each.numel() for each in model.parameters())} parameters, {how}"
