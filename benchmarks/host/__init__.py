"""Benchmarks of host memory, and of the engine's own cost."""
