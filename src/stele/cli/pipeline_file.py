"""What commands about pipelines share: the file they are in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stele.cli.files import unreadable_file
from stele.spark.pipeline.config import PipelineConfig, load_config

FileArgument = Annotated[Path, typer.Argument(help="The pipeline's TOML file.")]


def load_pipeline(file: Path) -> PipelineConfig:
    """The pipeline of a file. Raises `InvalidRequest`, `Invalid`."""
    try:
        return load_config(file)
    except OSError as error:
        raise unreadable_file(file, error) from None
