"""The argument that all pipeline commands share: the file that defines the pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stele.cli.files import unreadable_file
from stele.cli.output import print_warning
from stele.cli.records import check_registry
from stele.errors import Unavailable
from stele.spark.pipeline.config import PipelineConfig, load_config

FileArgument = Annotated[Path, typer.Argument(help="TOML file of the pipeline.")]


def load_pipeline(file: Path) -> PipelineConfig:
    """Load the pipeline that a file defines. Raises `InvalidRequest`, `Invalid`."""
    try:
        return load_config(file)
    except OSError as error:
        raise unreadable_file(file, error) from None


def check_pipeline_registry(config: PipelineConfig) -> None:
    """Check, before Spark starts, that the registry has the pipeline's subjects.

    If the registry does not answer, a pipeline that has run before prints a warning, because its run waits for it.
    Raises `SubjectNotFound`, `RegistryUnreachable`, `Unauthenticated` and similar errors.
    """
    from stele.spark.pipeline.kafka_lag import has_run

    try:
        check_registry(config.source.open_registry(), [route.subject for route in config.routes])
    except OSError as error:
        raise unreadable_file(config.source.registry, error) from None
    except Unavailable as error:
        if not has_run(config.checkpoint):
            raise
        print_warning(f"{error}; trying again for up to {config.source.patience:g} seconds")
