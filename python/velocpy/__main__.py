"""``python -m velocpy`` is the command ``velocpy``."""

from velocpy.cli import main

main(prog_name="velocpy")
