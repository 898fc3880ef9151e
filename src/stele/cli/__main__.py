"""`python -m stele.cli` is `stele`."""

from stele.cli import main

main()
