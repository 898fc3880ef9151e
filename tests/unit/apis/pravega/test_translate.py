"""Terms of the Pravega dialect: formats, types, policies, tokens; and error responses."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar.exceptions import NotFoundException
from msgspec.structs import replace

from stele import errors as err
from stele.apis.pravega import errors, translate
from stele.apis.pravega import models as api
from stele.apis.pravega.routes import decode_token, encode_token, parse_limit, parse_number
from stele.core.findings import Finding
from stele.core.model import ComparisonScope, SchemaFormat, Subject, SubjectDetails, pack_origin
from stele.core.policy import (
    ALL_VERSIONS,
    ALLOW_ANY,
    DENY_ALL,
    LATEST_VERSION,
    NO_VERSIONS,
    Policy,
    PolicyKind,
    RangeKind,
    VersionRange,
)

SUBJECT = Subject("", "g", pack_origin(1, 0, 1), 1, SubjectDetails())
extents = st.sampled_from([NO_VERSIONS, LATEST_VERSION, ALL_VERSIONS]) | st.integers(1, 9).map(
    lambda since: VersionRange(RangeKind.SINCE, since)
)
checkers = st.lists(st.sampled_from(["lint", "repo.reject"]), max_size=2).map(tuple)
policies = st.builds(
    Policy, st.just(PolicyKind.DIRECTIONAL), backward=extents, forward=extents, validators=checkers
) | st.sampled_from([ALLOW_ANY, DENY_ALL])


def send_back(body: Any) -> Any:
    """Return a body after it was encoded and decoded, as if a client sent it back."""
    return msgspec.json.decode(msgspec.json.encode(body), type=type(body))


@given(policies)
@settings(deadline=None)
def test_every_policy_survives_the_way_out_and_in(policy: Policy) -> None:
    """A policy that is shown and sent back has the same comparisons; a policy without comparisons becomes AllowAny.

    A client that sends it as the expected policy matches the policy in force, including its validators.
    """
    body = send_back(translate.compatibility_body(policy, SUBJECT))
    back = translate.parse_compatibility(body)
    plain = replace(policy, validators=())
    assert back == plain or (not translate.is_directional(policy) and back.kind is PolicyKind.ALLOW_ANY)
    assert translate.expected_policy(body, policy) == (policy if back == plain else back)


def test_what_was_sent_is_shown_while_it_is_in_force() -> None:
    """An Advanced policy is shown as it was sent, until another one is in force."""
    advanced = api.BackwardAndForward(api.BackwardPolicy(api.DirectionRange("Backward")))
    given_ = api.Compatibility("Advanced", advanced)
    saved = translate.compatibility_data(given_)
    policy = translate.parse_compatibility(given_)
    assert translate.compatibility_body(policy, SUBJECT, saved) == given_
    assert translate.compatibility_body(DENY_ALL, SUBJECT, saved) == api.Compatibility("DenyAll")
    assert translate.compatibility_data(api.Compatibility("Backward")) is None


@pytest.mark.parametrize(
    "name",
    ["AllowAny", "ALLOW_ANY", "DENY_ALL", "Backward", "BACKWARD_TRANSITIVE", "forward", "FULL", "FullTransitive"],
)
def test_policies_in_both_spellings(name: str) -> None:
    """Names of policies are accepted in the spelling of the API and in that of the design document."""
    body = translate.compatibility_body(translate.parse_compatibility(api.Compatibility(name)), SUBJECT)
    assert body.policy.lower() == name.replace("_", "").lower()


@pytest.mark.parametrize("name", ["None", "Disabled", "", "Advanced", "BACKWARD_TILL"])
def test_unknown_policies_are_refused(name: str) -> None:
    """Names of the design document with another meaning, and Advanced policies without directions, are refused."""
    with pytest.raises(err.UnknownPolicy):
        translate.parse_compatibility(api.Compatibility(name))


def test_formats() -> None:
    """Formats keep their names; a custom format with the name of an installed one becomes that one."""
    for name in ("Avro", "Protobuf", "Json", "Any"):
        schema_format = translate.parse_format(api.SerializationFormat(name.upper()))
        assert translate.format_body(schema_format) == api.SerializationFormat(name, name)
    custom = translate.parse_format(api.SerializationFormat("Custom", "thrift"))
    assert custom == SchemaFormat("opaque", "thrift")
    assert translate.resolve_custom_format(custom, ["thrift", "avro"]) == SchemaFormat("thrift")
    for schema_format in (custom, SchemaFormat("thrift")):
        assert translate.format_body(schema_format) == api.SerializationFormat("Custom", "thrift")
    avro = translate.parse_format(api.SerializationFormat("Custom", "avro"))
    assert translate.resolve_custom_format(avro, ["thrift", "avro"]) == avro
    with pytest.raises(err.UnknownFormat):
        translate.parse_format(api.SerializationFormat("Thrift"))


def test_types_of_avro_and_protobuf() -> None:
    """The types of a schema are the branches of a union, or the messages of all files with those inside them."""
    union = b'["null",{"name":"n.R","type":"record","fields":[]},{"type":"array","items":"int"}]'
    assert translate.avro_types(union) == ["null", "n.R", "array"]
    assert translate.avro_types(b'"int"') == ["int"]
    files = '{"file":[{"name":"a","message_type":[{"name":"A"}]},{"package":"p","message_type":[{"name":"M","nested_type":[{"name":"N"}]}]}]}'  # noqa: E501 - one document
    assert translate.protobuf_types(files) == ["A", "p.M", "p.M.N"]


def test_a_type_is_completed_or_refused() -> None:
    """A short name gets its namespace, a full name takes precedence over a short one, '' is the first type."""
    assert translate.resolve_type_name("R", ["n.S", "n.R"], "") == "n.R"
    assert translate.resolve_type_name("R", ["n.R", "R"], "") == "R"
    assert translate.resolve_type_name("", ["n.R", "R"], "") == "n.R"
    assert translate.resolve_type_name("", ["n.R", "R"], "R") == "R"
    assert [translate.resolve_type_name(name, ["string"], "", "g") for name in ("", "string", "g")] == ["", "", ""]
    assert [translate.resolve_type_name(name, None, "", "g") for name in ("", "g", "h")] == ["", "", "h"]
    assert translate.resolve_type_name("g", None, "T", "g") == "g"
    for wrong, described_types in (("n.X", ["n.R"]), ("x.R", ["n.R"]), ("", [])):
        with pytest.raises(err.MalformedSchema):
            translate.resolve_type_name(wrong, described_types, "")


def test_scopes() -> None:
    """The comparison scope depends on whether a group allows multiple types."""
    assert (translate.comparison_scope(True), translate.comparison_scope(False)) == (
        ComparisonScope.SCHEMA_KIND,
        ComparisonScope.ONE_TYPE,
    )


@given(st.text())
@settings(deadline=None)
def test_tokens_are_names(name: str) -> None:
    """A token leads to the end of the previous page, whatever the name of the group is."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return
    assert decode_token(encode_token(name)) == name


@given(st.text(max_size=12))
@settings(deadline=None)
def test_any_text_is_a_token_a_number_or_an_error_of_ours(text: str) -> None:
    """Invalid tokens, limits and numbers raise errors of the dialect."""
    for read in (decode_token, parse_limit, parse_number):
        try:
            read(text)
        except (err.InvalidRequest, err.NotFound):
            continue


def test_every_error_has_an_answer() -> None:
    """Every class of the error tree has a status in the table."""
    for cls in vars(err).values():
        if inspect.isclass(cls) and issubclass(cls, err.SteleError):
            nearest = next(base for base in cls.__mro__ if base in errors.REPLIES)
            assert nearest is not err.SteleError or issubclass(cls, err.DataError) or cls is err.SteleError, cls


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (err.FormatMismatch("Avro"), 417, "Avro"),
        (err.CodecNotFound("c"), 412, "c"),
        (err.EncodingNotFound("e"), 404, "e"),
        (err.PreconditionFailed("p"), 409, "p"),
        (err.TooLarge("t"), 400, "t"),
        (err.Forbidden("f"), 403, "f"),
        (err.Unauthenticated("u"), 401, "u"),
        (err.StoreTimeout("s"), 500, "s"),
        (err.NewerLog("n"), 503, "n"),
        (NotFoundException(), 404, "Not Found"),
        (ValueError("secret"), 500, "internal error; the log of the server has the details"),
    ],
)
def test_answers(error: Exception, status: int, text: str) -> None:
    """Status and text of errors are as expected; the message of a defect has no details."""
    assert errors.describe_error(error) == (status, text)


def test_a_refusal_says_why() -> None:
    """The body of a refused schema has the findings, one per line."""
    finding = Finding("R", "/fields/0", why="no default")
    fault = errors.describe_error(err.Incompatible("g", [finding], against=1))
    assert fault.status == 409
    assert fault.text.endswith("version 1\n/fields/0: no default")
