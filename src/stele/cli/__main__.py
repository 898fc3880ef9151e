"""`python -m stele.cli` is `stele`."""

from stele.cli.app import main

main()
