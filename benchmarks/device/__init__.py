"""Benchmarks of device memory."""
