"""Benchmarks: ``python -m velocpy.bench NAME``.

Each runs its baselines beside velocpy in the same process, in turns, and prints ratios of medians with the ceiling that
was measured in the same run. The results that are committed lie under ``benchmarks/results/``.
"""
