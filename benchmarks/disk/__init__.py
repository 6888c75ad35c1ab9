"""Benchmarks of the disk tier and of durable stores."""
