"""A reverse time migration whose wavefields do not fit into memory, and the proof that nothing of them is lost.

``velocpy demo`` runs it; `velocpy.demo.run.run` is the same from Python. The solver is the demo's own and needs only
NumPy; on a GPU it is torch or CuPy. `velocpy.plot.timeline.draw_timeline` draws the events of any store.
"""
