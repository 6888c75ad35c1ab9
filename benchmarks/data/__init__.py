"""Data that the benchmarks checkpoint: real computations, the same for the same seed, without downloads."""
