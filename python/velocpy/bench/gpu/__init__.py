"""The papers' workloads on an accelerator: what is played, on what, by whom, and what it cost.

`workload` says what a shot is, `card` what it needs of a device (`cuda` is one, host memory another), `play` plays it
with an engine: `ours`, or one of the baselines `ring`, `keep`, `synchronous`, `managed`, `adios`. `bound` is what
nobody can beat.
"""
