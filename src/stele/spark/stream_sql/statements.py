"""Statements about streams, as data. `str` writes one in its normal form; `parsing` reads it back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from stele.spark.stream_sql.tokens import quote_string, short_name


@dataclass(frozen=True, slots=True)
class RequestedColumn:
    """A column of a column list: its type in Spark's words, and where it stands in the text."""

    name: str
    type: str
    comment: str | None = None
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        comment = "" if self.comment is None else f" COMMENT {quote_string(self.comment)}"
        return f"{short_name(self.name)} {self.type}{comment}"


@dataclass(frozen=True, slots=True)
class OptionSetting:
    """An option of `WITH`, as it is written, and where."""

    name: str
    value: str
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{quote_string(self.name)} = {quote_string(self.value)}"


@dataclass(frozen=True, slots=True)
class CreateStream:
    """`CREATE [OR REPLACE] STREAM [IF NOT EXISTS] name [(columns)] WITH (options)`; TABLE for STREAM is the same."""

    name: str
    columns: tuple[RequestedColumn, ...]
    options: tuple[OptionSetting, ...]
    replace: bool = False
    if_not_exists: bool = False

    def __str__(self) -> str:
        columns = f" ({', '.join(map(str, self.columns))})" if self.columns else ""
        return (
            f"CREATE {'OR REPLACE ' * self.replace}STREAM {'IF NOT EXISTS ' * self.if_not_exists}"
            f"{short_name(self.name)}{columns} WITH ({', '.join(map(str, self.options))})"
        )


@dataclass(frozen=True, slots=True)
class DropStream:
    """`DROP STREAM [IF EXISTS] name`. sure: it says STREAM; otherwise it is one only if a stream has the name."""

    name: str
    if_exists: bool = False
    says_stream: bool = True

    def __str__(self) -> str:
        return (
            f"DROP {'STREAM' if self.says_stream else 'TABLE'} {'IF EXISTS ' * self.if_exists}{short_name(self.name)}"
        )


@dataclass(frozen=True, slots=True)
class ShowStreams:
    """`SHOW STREAMS`."""

    def __str__(self) -> str:
        return "SHOW STREAMS"


@dataclass(frozen=True, slots=True)
class DescribeStream:
    """`DESCRIBE [STREAM] name`. sure: see `DropStream`."""

    name: str
    says_stream: bool = True

    def __str__(self) -> str:
        return f"DESCRIBE {'STREAM ' * self.says_stream}{short_name(self.name)}"


@dataclass(frozen=True, slots=True)
class InsertInto:
    """`INSERT INTO [STREAM] name [BY NAME | (columns)] query`. sure: see `DropStream`; at: where the query begins."""

    name: str
    columns: tuple[str, ...]
    query: str
    by_name: bool = False
    says_stream: bool = True
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        columns = (
            " BY NAME" if self.by_name else f" ({', '.join(map(short_name, self.columns))})" if self.columns else ""
        )
        return f"INSERT INTO {'STREAM ' * self.says_stream}{short_name(self.name)}{columns} {self.query}"


@dataclass(frozen=True, slots=True)
class SparkStatement:
    """Anything else: what Spark makes of it, streams of the query put in."""

    text: str

    def __str__(self) -> str:
        return self.text


Statement: TypeAlias = "CreateStream | DropStream | ShowStreams | DescribeStream | InsertInto | SparkStatement"
