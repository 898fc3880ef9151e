"""Output of the demo: steps, tables and counted checks."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table


class Report:
    """Prints steps and results, and counts passed and failed checks."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, width=110)
        self._started = time.monotonic()
        self._held = 0
        self._failed = 0

    def step(self, title: str) -> None:
        """Print the title of a part."""
        self.console.print(f"\n[bold]{title}[/]  [dim]{time.monotonic() - self._started:.0f} s[/]")

    def say(self, text: str) -> None:
        """Print a line."""
        self.console.print(f"  {text}", markup=False)

    def check(self, what: str, held: bool, figures: str = "") -> None:
        """Count a check and print its result."""
        self._held += held
        self._failed += not held
        mark = "[green]✓[/]" if held else "[bold red]✗[/]"
        self.console.print(f"  {mark} {what}{f': {figures}' if figures else ''}")

    def equal(self, what: str, source: float, table: float) -> None:
        """Check that a figure of the source equals that of the table."""
        figures = f"{source:,}" if source == table else f"{source:,} in the source, {table:,} in the table"
        self.check(what, source == table, figures)

    def query(self, spark: SparkSession, title: str, sql: str) -> list[dict[str, Any]]:
        """Run a query, print its rows, and give them back."""
        rows = [row.asDict() for row in spark.sql(sql).collect()]
        table = Table(*(rows[0] if rows else ()), title=title, title_justify="left", box=None, pad_edge=False)
        for row in rows:
            table.add_row(*(f"{value:,}" if isinstance(value, int | float) else str(value) for value in row.values()))
        self.console.print(table)
        return rows

    def conclude(self) -> bool:
        """Print the last line and return whether every check passed."""
        seconds = time.monotonic() - self._started
        verdict = f"[bold red]{self._failed} checks failed" if self._failed else "[bold green]all checks passed"
        self.console.print(f"\n{verdict}[/] ({self._held} of {self._held + self._failed}, {seconds:.0f} s)")
        return not self._failed
