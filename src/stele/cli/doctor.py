"""`stele doctor`: check an installation, a store and a registry. It creates and changes nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from stele.cli.connect import Connection, RegistryOptions
from stele.cli.diagnosis import CheckState, Diagnosis, judge_bad, judge_doubtful, judge_good
from stele.cli.environment_checks import check_environment
from stele.cli.options import expand_dataclass
from stele.cli.output import Output, OutputOption, console, exit_on_error, print_json, print_labelled
from stele.cli.profiles import config_path, load_config
from stele.cli.server_pages import open_server_pages
from stele.errors import SteleError
from stele.server.settings import ServerSettings, load_settings
from stele.server.store_maintenance import StoreCondition, inspect_store, is_durable

_COLOURS: Final = {CheckState.OK: "green", CheckState.WARNING: "yellow", CheckState.ERROR: "red"}
_LABEL_WIDTH: Final = 26
_LITTLE_SPACE: Final = 1 << 30
_NO_SPACE: Final = 100 << 20
_SKEW_SECONDS: Final = 5.0
_WRONG_CLOCK_SECONDS: Final = 60.0


@expand_dataclass
def doctor(
    registry: RegistryOptions,
    store: Annotated[
        str | None, typer.Option(help="URL of the store to examine. Default: the store of the settings.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file of the server. Default: ./stele.toml if it exists.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Check the installation, the settings, the store and the clock; with --registry also that registry.

    Nothing is created or changed. Exit code 0: no check is an error; 1: one is; 2: invalid arguments.
    """
    with exit_on_error():
        connection = registry.find_connection() if registry.is_given else None
        diagnoses = list(diagnose(store, config, connection))
    if output is Output.JSON:
        print_json(diagnoses)
    else:
        _print_diagnoses(diagnoses)
    if any(diagnosis.state is CheckState.ERROR for diagnosis in diagnoses):
        raise typer.Exit(1)


def diagnose(store: str | None, config: Path | None, connection: Connection | None) -> Iterator[Diagnosis]:
    """Yield the results of all checks."""
    yield from check_environment()
    try:
        settings = load_settings({"store": store}, config=config)
    except SteleError as error:
        yield judge_bad("SETTINGS", str(error), "correct the settings: docs/reference/settings.md lists them")
    else:
        file = config or Path("stele.toml")
        yield judge_good("SETTINGS", f"{file} is valid" if file.exists() else "valid; no stele.toml in this folder")
        yield from check_store(settings)
    yield check_config_file()
    if connection is not None:
        yield from check_registry(connection)


def check_config_file() -> Diagnosis:
    """Check whether the configuration file of the user can be read."""
    try:
        profiles = load_config().profiles
    except SteleError as error:
        return judge_bad("CONFIG_FILE", str(error), "correct the file, or remove it")
    if not config_path().exists():
        return judge_good("CONFIG_FILE", f"no {config_path()}")
    return judge_good("CONFIG_FILE", f"{config_path()}: {len(profiles)} profiles")


def check_store(settings: ServerSettings) -> Iterator[Diagnosis]:
    """Yield the results of the checks whether a server can work with its store."""
    try:
        condition = inspect_store(settings.store)
    except SteleError as error:
        yield judge_bad("STORE", str(error), "name another store, or run stele log verify")
        return
    if condition is None:
        if is_durable(settings.store):
            yield judge_good("STORE", f"a store of the kind {settings.store.partition(':')[0]}:")
            return
        yield judge_doubtful(
            "STORE", f"{settings.store} loses all data on exit", "keep data in a file: --store sqlite:///file.db"
        )
        return
    yield _check_access(condition)
    if condition.layout is not None:
        yield _check_layout(condition)
    if condition.journal_mode:
        yield _check_journal(condition)
    for doubt in condition.doubts:
        yield judge_doubtful("STORE_DURABILITY", doubt, "change the setting of the server, or live with the loss")
    if condition.free_bytes is not None:
        yield _check_disk(condition.free_bytes)


def _check_access(store: StoreCondition) -> Diagnosis:
    if not store.is_writable:
        mend = (
            "give this user the file and its folder" if store.free_bytes is not None else "grant this user the rights"
        )
        return judge_bad("STORE", f"this user may not write {store.place}", mend)
    if not store.exists:
        return judge_good("STORE", f"{store.place} is not there yet; stele serve makes it")
    return judge_good("STORE", f"{store.place} can be read and written, {store.size_bytes:,} bytes")


def _check_layout(store: StoreCondition) -> Diagnosis:
    detail = f"format {store.layout}"
    if store.layout != store.newest_layout:
        return judge_doubtful(
            "STORE_FORMAT",
            f"{detail}; this release writes {store.newest_layout}",
            "make a backup; the next start of a server upgrades the store",
        )
    return judge_good("STORE_FORMAT", detail)


def _check_journal(store: StoreCondition) -> Diagnosis:
    if store.journal_mode != "wal":
        return judge_doubtful(
            "STORE_WAL",
            f"journal mode {store.journal_mode}, as of a backup",
            "nothing: the next start of a server turns the write-ahead log on",
        )
    return judge_good("STORE_WAL", "write-ahead log on")


def _check_disk(free_bytes: int) -> Diagnosis:
    detail = f"{free_bytes / 1e9:,.1f} GB free"
    if free_bytes < _NO_SPACE:
        return judge_bad("DISK_SPACE", detail, "free some space: without it the registry stops writing")
    if free_bytes < _LITTLE_SPACE:
        return judge_doubtful("DISK_SPACE", detail, "free some space")
    return judge_good("DISK_SPACE", detail)


def check_registry(connection: Connection) -> Iterator[Diagnosis]:
    """Yield the results of the checks whether a registry answers, is ready, and has the same time."""
    try:
        with open_server_pages(connection) as pages:
            index, ready = pages.read_index(), pages.get_page("/health/ready")
            dated = pages.get_page("/health/live").headers.get("date", "")
            now = time.time()
    except SteleError as error:
        yield judge_bad("REGISTRY", str(error), "start it, or correct --registry")
        return
    detail = f"{pages.url}: {f'Stele {index.version}' if index.version else 'not a Stele server'}"
    if index.version and not ready.is_success:
        yield judge_bad("REGISTRY", f"{detail}, {index.status}: {index.reason}", "see the log of the server")
    else:
        yield judge_good("REGISTRY", detail)
    yield check_skew(dated, now)


def check_skew(dated: str, now: float) -> Diagnosis:
    """Compare this clock with that of a server.

    Args:
        dated: The header `Date` of its answer, in whole seconds; '' if it has none.
        now: This machine's Unix time at the same moment.
    """
    try:
        there: datetime = parsedate_to_datetime(dated)
    except ValueError:
        return judge_doubtful("CLOCK_SKEW", "the registry does not say its time", "compare the clocks by hand")
    skew = now - there.timestamp()
    if abs(skew) <= _SKEW_SECONDS:
        return judge_good("CLOCK_SKEW", f"within {_SKEW_SECONDS:g} s of the registry")
    detail = f"this clock is {abs(skew):,.0f} s {'ahead of' if skew > 0 else 'behind'} the registry"
    judge = judge_bad if abs(skew) > _WRONG_CLOCK_SECONDS else judge_doubtful
    return judge("CLOCK_SKEW", detail, "set both clocks by NTP")


def _print_diagnoses(diagnoses: list[Diagnosis]) -> None:
    for row in diagnoses:
        label = Text.assemble((f"{row.state:<9}", _COLOURS[row.state]), row.code)
        print_labelled(label, Text(f"{row.detail} → {row.fix}" if row.fix else row.detail), _LABEL_WIDTH)
    counts = Counter(row.state for row in diagnoses)
    console.print(
        f"{len(diagnoses)} checks: ok {counts[CheckState.OK]}, warnings {counts[CheckState.WARNING]},"
        f" errors {counts[CheckState.ERROR]}",
        highlight=False,
    )
