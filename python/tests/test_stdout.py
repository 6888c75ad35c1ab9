"""A reader that went away must not take the process along."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import os, sys, time
import numpy as np
import velocpy
from velocpy import _core

time.sleep(0.3)                      # the reader is gone by now
store = velocpy.open(host="2MiB", disk="16MiB", tuning=velocpy.Tuning(flush="eager"))
history = store.history("h")
for i in range(20):
    history.checkpoint(i, u=np.full(100_000, i, np.uint8))
history.wait("disk")
assert history.restore(3)["u"][0] == 3
try:
    _core.test_panic(1)
    time.sleep(0.2)
    history.restore(3)
except velocpy.errors.CorePoisoned:
    os._exit(7)
"""


def test_broken_stdout() -> None:
    """Go writing to a broken descriptor 1 or 2 would end the process with SIGPIPE; it writes to neither."""
    process = subprocess.Popen(
        [sys.executable, "-c", CODE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "VELOCPY_TEST_HOOKS": "1"},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stderr.close()
    assert process.wait(timeout=60) == 7


def test_closed_descriptors() -> None:
    """Without descriptors 0, 1 and 2 the core's own files must not be taken for them."""
    code = "import os; os.closerange(0, 3)\n" + CODE.replace("import os, sys, time", "import os, time")
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "VELOCPY_TEST_HOOKS": "1"}, timeout=60, check=False
    )
    assert done.returncode == 7
