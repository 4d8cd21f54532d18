"""`python -m playground` is the command `first-token`."""

from playground.cli import main

main()
