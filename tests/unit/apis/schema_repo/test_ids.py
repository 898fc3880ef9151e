"""Ids of the AVRO-1124 and schema-repo dialects: they are derived from versions, and versions are found by them."""

from __future__ import annotations

import hashlib
import sys
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples
from tests.unit.core.box import Box, S

from stele.apis.schema_repo import ids
from stele.apis.schema_repo.ids import (
    SEQUENTIAL,
    IdIndex,
    get_strategy,
    id_of,
    id_of_document,
    list_strategies,
)
from stele.core import commands as cmd
from stele.core import queries
from stele.core.decide.register import make_document
from stele.core.model import SchemaDocument
from stele.errors import InvalidRequest, SteleError


def avro(text: str) -> SchemaDocument:
    """Return a document whose fingerprint depends on its letters only."""
    raw = text.encode()
    letters = "".join(filter(str.isalpha, text)).encode()
    return SchemaDocument(raw, hashlib.sha256(raw).digest(), "avro", "", {"rabin": hashlib.md5(letters).digest()[:8]})


def test_ids_of_a_document_are_those_of_its_version() -> None:
    """A document has the same id before and after its registration; sequential ids are not known before."""
    box = Box()
    for document in (avro("a b 1"), make_document(b"no avro", "opaque")):
        outcome = box.do(cmd.RegisterSchema(S, document, check=cmd.CompatibilityCheck.SKIP))
        assert isinstance(outcome, cmd.Registration)
        row = queries.get_version(box.state, S, outcome.version_number)
        assert id_of_document(SEQUENTIAL, document) is None
        for kind in ("md5", "crc-64-avro"):
            assert id_of_document(kind, document) == id_of(kind, 0, box.state, row)
    assert id_of_document("md5", avro("a b 1")) == hashlib.md5(b"ab1").hexdigest()
    assert id_of_document("crc-64-avro", avro("a b 1")) == hashlib.md5(b"ab").hexdigest()[:16]
    assert id_of_document("crc-64-avro", make_document(b"no avro", "opaque")) == hashlib.md5(b"noavro").hexdigest()


steps = st.lists(
    st.one_of(
        st.sampled_from(["a", "a ", "a1", "b", "b1", "c"]).map(
            lambda text: cmd.RegisterSchema(
                S, avro(text), equality=cmd.Equality.TEXT, check=cmd.CompatibilityCheck.SKIP
            )
        ),
        st.builds(
            cmd.DeleteVersion,
            st.just(S),
            st.integers(1, 6),
            st.sampled_from([cmd.DeleteMode.SOFT, cmd.DeleteMode.HARD]),
        ),
        st.builds(cmd.DeleteSubject, st.just(S), st.sampled_from(list(cmd.DeleteMode))),
    ),
    max_size=25,
)


@settings(max_examples=scale_examples(60))
@given(steps)
def test_an_id_means_the_first_live_version_of_it(drawn: list[cmd.Command]) -> None:
    """After every step, the index finds the first active version of each id, and nothing for unknown ids."""
    box, index = Box(), IdIndex()
    for command in drawn:
        try:
            box.do(command)
        except SteleError:
            continue
        subject = box.state.find_subject(S)
        if subject is None:
            continue
        live = queries.list_versions(subject)
        for kind in list_strategies():
            first_of_id = {id_of(kind, 1, box.state, row): row for row in reversed(live)}
            for name, row in first_of_id.items():
                assert index.find_version(box.state, subject, name, 1) is row
        for unknown in ("0", "99", "x", "", "0" * 16, "0" * 32, "-1", "1.0", "٣"):
            assert index.find_version(box.state, subject, unknown, 1) is None


def plug_in(monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    """Install strategies by entry point, as a package would."""
    entry_points = {name: EntryPoint(name, value, ids.GROUP) for name, value in points.items()}
    monkeypatch.setattr(ids, "_entry_points", lambda: entry_points)
    ids._load_strategy.cache_clear()


def sha1(text: bytes, rabin: bytes | None) -> str:
    """Return the id of a custom strategy."""
    return f"sha1-{hashlib.sha1(text).hexdigest()}"


def second_word(text: bytes, rabin: bytes | None) -> str:
    """Return the second word of a document, so that a test can choose its id."""
    return text.decode().partition(" ")[2]


def test_a_strategy_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schemas are found by the ids of a plugged-in strategy and by numbers; an unknown strategy is an error."""
    own = EntryPoint("sha1", f"{__name__}:sha1", ids.GROUP)
    points = {**ids._entry_points(), "sha1": own}
    monkeypatch.setattr(ids, "_entry_points", lambda: points)
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(sha1=sha1))
    ids._load_strategy.cache_clear()
    box, index = Box(), IdIndex("sha1")
    box.do(cmd.RegisterSchema(S, avro("a"), check=cmd.CompatibilityCheck.SKIP))
    subject = box.state.find_subject(S)
    assert subject is not None
    (row,) = queries.list_versions(subject)
    assert (
        id_of("sha1", 0, box.state, row)
        == id_of_document("sha1", avro("a"))
        == f"sha1-{hashlib.sha1(b'a').hexdigest()}"
    )
    for schema_id in ("1", id_of("sha1", 0, box.state, row), id_of("md5", 0, box.state, row)):
        assert index.find_version(box.state, subject, schema_id, 1) is row
    assert IdIndex().find_version(box.state, subject, id_of("sha1", 0, box.state, row), 1) is None
    with pytest.raises(
        InvalidRequest, match="the strategy 'sha2' is not installed; there are sequential, crc-64-avro, md5"
    ):
        get_strategy("sha2")


@pytest.mark.parametrize("schema_id", ["", "12", "a/b", "..", "a b", "x" * 129, "ü"])
def test_ids_that_cannot_be(schema_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that is a number or no segment of a URL is refused before anything is written."""
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(second_word=second_word))
    plug_in(monkeypatch, word=f"{__name__}:second_word")
    with pytest.raises(InvalidRequest, match="the strategy 'word' says"):
        id_of_document("word", make_document(f"x {schema_id}".encode(), "opaque"))


def test_a_strategy_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that cannot be loaded is an error that names the strategy."""
    plug_in(monkeypatch, gone="no_such_module_anywhere:x")
    with pytest.raises(InvalidRequest, match="the strategy 'gone' cannot be loaded"):
        get_strategy("gone")
