"""The benchmarks of a checkout: ``python -m benchmarks NAME``, from its root.

Each runs its baselines beside velocpy in the same process, in turns. It compares the bytes that it restores, and prints
ratios of medians with the ceiling that was measured in the same run. Committed results lie in ``benchmarks/results``.

========== =================================================================================================
folder     content
========== =================================================================================================
host       captures, leases, eviction decisions, reverse sweeps, many checkpoints, simulated archives
disk       the disk tier, durable checkpoints, reduced ones, commits, opening, verification, archives of ranks
adjoint    the storages of pyrevolve under one adjoint
device     device memory: captures, transfers, leases, encoded histories, kernels
training   what trainings in PyTorch use: snapshots of their state, staging, saved tensors
paper      the evaluations of Maurya et al., HPDC'23 (`shot`) and HiPC'22 (`coldstart`)
engines    the engines that the evaluations compare, and the device that they work on
compare    two cores by the same benchmarks, in one run: ``python -m benchmarks compare``
report     claims, tables and plots of the committed results
data       the trace of checkpoint sizes; checkpoints of graphs, trainings, waves and particles
========== =================================================================================================

A folder imports from `engines`, from `data` and from the ceilings of `disk`. No other folder is imported, but by
`__main__`.
What a benchmark shares with ``velocpy bench`` lies in `velocpy.bench`.
"""

from pathlib import Path

#: The root of the checkout, where ``python -m benchmarks`` finds this package.
ROOT = Path(__file__).resolve().parents[1]

#: Benchmarks of a card. Without one they run on host memory when they are asked for by name: that shows that they run.
ON_GPU = ("shot", "device", "encoded", "coldstart", "offload", "snapshots", "staging")
