"""Ids of the AVRO-1124 and schema-repo dialects: derived from versions, found again, whatever happens to a subject."""

from __future__ import annotations

import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.box import Box, S

from stele.apis.schema_repo.ids import IdIndex, id_of, named_once, new_id
from stele.apis.schema_repo.options import Ids
from stele.core import commands as cmd
from stele.core import queries
from stele.core.decide.register import document_of
from stele.core.model import Document
from stele.errors import SteleError


def avro(text: str) -> Document:
    """A document whose fingerprint depends on its letters alone."""
    raw = text.encode()
    letters = "".join(filter(str.isalpha, text)).encode()
    return Document(raw, hashlib.sha256(raw).digest(), "avro", "", {"rabin": hashlib.md5(letters).digest()[:8]})


def test_ids_of_a_document_are_those_of_its_version() -> None:
    """What a document would be called is what it is called once registered; numbers are not known before."""
    box = Box()
    for document in (avro("a b 1"), document_of(b"no avro", "opaque")):
        outcome = box.do(cmd.Register(S, document, check=cmd.Check.SKIP))
        assert isinstance(outcome, cmd.Registration)
        row = queries.version(box.state, S, outcome.ordinal)
        assert new_id(Ids.SEQUENTIAL, document) is None
        for kind in (Ids.MD5, Ids.CRC_64_AVRO):
            assert new_id(kind, document) == id_of(kind, 0, box.state, row)
    assert new_id(Ids.MD5, avro("a b 1")) == hashlib.md5(b"ab1").hexdigest()
    assert new_id(Ids.CRC_64_AVRO, avro("a b 1")) == hashlib.md5(b"ab").hexdigest()[:16]
    assert new_id(Ids.CRC_64_AVRO, document_of(b"no avro", "opaque")) == hashlib.md5(b"noavro").hexdigest()


steps = st.lists(
    st.one_of(
        st.sampled_from(["a", "a ", "a1", "b", "b1", "c"]).map(
            lambda text: cmd.Register(S, avro(text), equality=cmd.Equality.TEXT, check=cmd.Check.SKIP)
        ),
        st.builds(
            cmd.DeleteVersion,
            st.just(S),
            st.integers(1, 6),
            st.sampled_from([cmd.Removal.RETIRE, cmd.Removal.PURGE]),
        ),
        st.builds(cmd.DeleteSubject, st.just(S), st.sampled_from(list(cmd.Removal))),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(steps)
def test_an_id_means_the_first_live_version_of_it(drawn: list[cmd.Command]) -> None:
    """After every step the index, kept up all along, finds what looking at all versions finds, and nothing else."""
    box, index = Box(), IdIndex()
    for command in drawn:
        try:
            box.do(command)
        except SteleError:
            continue
        subject = box.state.subject(S)
        if subject is None:
            continue
        live = queries.versions(subject)
        for kind in Ids:
            told = list(named_once(kind, 1, box.state, live))
            assert dict(told) == {id_of(kind, 1, box.state, row): row for row in reversed(live)}
            assert [row.ordinal for _, row in told] == sorted(row.ordinal for _, row in told)
            for name, row in told:
                assert index.find(box.state, subject, name, 1) is row
        for unknown in ("0", "99", "x", "", "0" * 16, "0" * 32, "-1", "1.0", "٣"):
            assert index.find(box.state, subject, unknown, 1) is None
