"""Benchmarks of trainings in PyTorch, beside what PyTorch brings for the same purpose."""
