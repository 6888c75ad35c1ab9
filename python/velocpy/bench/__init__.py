"""``velocpy bench``: the rates of this machine's memory, disk and GPU link, and those that velocpy reaches.

Each benchmark measures plain copies and velocpy in turns, in the same process, and compares the bytes that velocpy
gives back. The benchmarks of a checkout, ``python -m benchmarks``, use the measuring modules of this package too.
"""
