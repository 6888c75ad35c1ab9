"""A rank of the demo: ``demo_rank.py whole|deaf OPTIONS...``. Deaf ones take no columns from their neighbours."""

from __future__ import annotations

import sys

from velocpy.demo import ranks
from velocpy.demo.wave import Wave

if __name__ == "__main__":
    if sys.argv.pop(1) == "deaf":
        ranks.Slab.step = Wave.step  # type: ignore[method-assign]
    ranks.main()
