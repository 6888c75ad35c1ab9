"""Live views of stores at work: `velocpy.Store.watch` in a notebook, ``velocpy top`` in a terminal.

`velocpy.live.sample` reads a store's figures, `velocpy.live.change` takes the rates from two such readings, and
`velocpy.live.channel` gives them to other processes of the user that ask.
"""
