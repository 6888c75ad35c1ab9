"""What a directory can do for a store, found out by trying: the part of ``velocpy doctor PATH`` that does so.

The trials run in a process of their own (`velocpy.trial.child`), which another one watches (`velocpy.trial.watch`): a
disk that does not answer holds up the one, and the other says so.
"""
