"""Pictures of stores, drawn with matplotlib: `velocpy.Store.plot` draws the tiers or the timeline of an open store.

`velocpy.plot.timeline.draw_timeline` draws the events of any store, also of one that is closed.
"""
