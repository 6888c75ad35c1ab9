"""Two cores by the same benchmarks, in one run."""
