"""Golden transcripts: requests and the answers they must get, one rule of a dialect after the other, as text.

let A1 = {"type":"int"}                     a text; $A1 is it as a JSON string, $=A1 in base64, $$A1 as it is;
                                            another text may use it in the same way
== The rule, in a sentence.                 every rule starts on an empty registry
POST /subjects/a/versions {"schema": $A1}   method, target, and a body that runs to the end of the line
GET /subjects [accept: text/html]           headers in brackets before the body
  200 {"id": 1, ...}                        status and body; ... lets further members pass, "*" is any value
  404 40401 Subject 'a' not found.          from 400 on, in the dialect's own way (see `Refusal`); for Confluent: error
                                            code and sentence; … at its end lets anything follow
  200 <content-type: application/json> []   headers the answer must have, before the body
  7.9: 200 {"id": 1}                        the answer of another profile, where `in_profile` cannot derive it
from 8.0                                    the rules below, up to the end of the file, hold from that profile on
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx

_REQUEST = re.compile(r"(GET|POST|PUT|DELETE|HEAD|PATCH|OPTIONS) (\S+)(?: \[([\w-]+:[^\]]*)\])?(?: (.*))?\Z")
_ANSWER = re.compile(r"  (?:(\d\.\d): )?(\d{3})(?: <([^>]*)>)?(?: (.*))?\Z")
_OPEN = "..."

Refusal = Callable[[str, httpx.Response], bool]
"""Returns whether a response from status 400 on is the one in a transcript. Each dialect has its own form of errors."""


class Exchange(NamedTuple):
    """A request and its expected response. In other profiles it is that in `others`, else that of `in_profile`."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes | None
    status: int
    answered: dict[str, str]
    expected: str
    place: str
    others: dict[str, tuple[int, str]]


class Rule(NamedTuple):
    """Exchanges with one registry, and the behaviour they show; the first profile they apply to, '' for all."""

    sentence: str
    exchanges: list[Exchange]
    since: str = ""


def read_rules(*paths: Path) -> list[Rule]:
    """Return the rules of some files. Texts that one file defines can be used in later ones."""
    texts: dict[str, str] = {}
    rules: list[Rule] = []
    for path in paths:
        rules.extend(_read(path, texts))
    return rules


def _read(path: Path, texts: dict[str, str]) -> Iterator[Rule]:
    rule: Rule | None = None
    request: re.Match[str] | None = None
    since = ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("let "):
            name, _, text = line[4:].partition(" = ")
            texts[name] = _fill_in(text, texts)
        elif line.startswith("== "):
            if rule is not None:
                yield rule
            rule = Rule(line[3:], [], since)
        elif line.startswith("from "):
            since = line[5:].strip()
        elif answer := _ANSWER.match(line):
            assert rule is not None, f"{path.name}:{number}: an answer outside a rule"
            if answer[1]:
                rule.exchanges[-1].others[answer[1]] = (int(answer[2]), _fill_in(answer[4] or "", texts))
                continue
            assert request is not None, f"{path.name}:{number}: an answer to nothing"
            rule.exchanges.append(_exchange(request, answer, texts, f"{path.name}:{number}"))
            request = None
        else:
            request = _REQUEST.match(line)
            assert request is not None, f"{path.name}:{number}: neither request nor answer: {line}"
    if rule is not None:
        yield rule


def _exchange(request: re.Match[str], answer: re.Match[str], texts: dict[str, str], place: str) -> Exchange:
    method, target, headers, body = request.groups()
    sent = _fill_in(body, texts).encode() if body is not None else None
    expected = _fill_in(answer[4] or "", texts)
    return Exchange(method, target, _headers(headers), sent, int(answer[2]), _headers(answer[3]), expected, place, {})


def _headers(text: str | None) -> dict[str, str]:
    """Return the headers between brackets. A comma separates two of them if a name and a colon follow."""
    pairs = [pair.split(":", 1) for pair in re.split(r",(?=[^,]*:)", text or "") if pair]
    return {name.strip(): value.strip() for name, value in pairs}


def _fill_in(text: str, texts: dict[str, str]) -> str:
    text = re.sub(r"\$\$([A-Z]\w*)", lambda match: texts[match[1]], text)
    text = re.sub(r"\$=([A-Z]\w*)", lambda match: json.dumps(_base64(texts[match[1]])), text)
    return re.sub(r"\$([A-Z]\w*)", lambda match: json.dumps(texts[match[1]]), text)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def is_coded_error(expected: str, answer: httpx.Response) -> bool:
    """Return whether a response is the expected error of the Confluent dialect: a code and a message."""
    code, _, sentence = expected.partition(" ")
    error = answer.json()
    return (
        set(error) == {"error_code", "message"}
        and error["error_code"] == int(code)
        and says(sentence, error["message"])
    )


def plain(expected: str, answer: httpx.Response) -> bool:
    """Return whether a response is the expected error as plain text."""
    return answer.headers["content-type"].startswith("text/plain") and says(expected, answer.text)


def says(sentence: str, message: str) -> bool:
    """Return whether a message matches: it begins with a text that ends with an ellipsis; an empty text matches any."""
    return message.startswith(sentence[:-1]) if sentence.endswith("…") or not sentence else message == sentence


async def play(
    client: httpx.AsyncClient,
    rule: Rule,
    profile: str = "8.1",
    *,
    media_type: str = "application/vnd.schemaregistry.v1+json",
    refused: Refusal = is_coded_error,
) -> None:
    """Send the requests of a rule and compare the responses with those of the profile.

    Responses without a body must not have JSON as their content type.
    """
    for written in rule.exchanges:
        exchange = in_profile(written, profile)
        headers = dict(exchange.headers)
        if exchange.body is not None:
            headers.setdefault("content-type", media_type)
        answer = await client.request(exchange.method, exchange.target, content=exchange.body, headers=headers)
        place = f"{exchange.place}: {exchange.method} {exchange.target}"
        assert answer.status_code == exchange.status, f"{place}: {answer.status_code} {answer.text[:2000]}"
        for name, value in exchange.answered.items():
            assert answer.headers.get(name) == value, f"{place}: {name} is {answer.headers.get(name)}"
        if exchange.method != "HEAD" and not answer.content:
            assert "json" not in answer.headers.get("content-type", ""), f"{place}: an empty body is no JSON"
        _compare(exchange, answer, place, refused)


_REGISTERING = re.compile(r"POST (/contexts/[^/]+)?/subjects/[^/]+/versions(\?.*)?\Z")
_NEWER = {"guid", "ts", "deleted"}
_NEWER_PATHS = re.compile(r"(/schemas/guids/[^/]+(/ids)?|/contexts/[^/?]+|/associations[^?]*)(\?.*)?\Z")


def in_profile(exchange: Exchange, profile: str) -> Exchange:
    """Return the exchange as a release has it.

    Releases before 8.0 and 8.1 lack what these brought; 8.2 has another code for refusals.
    """
    status, expected = exchange.others.get(profile, (exchange.status, exchange.expected))
    if profile in exchange.others:
        pass
    elif profile == "7.9" and _NEWER_PATHS.match(exchange.target):
        return exchange._replace(status=404, expected="404 HTTP 404 Not Found", answered={})
    elif profile < "8.1" and expected.startswith("42205 "):
        expected = re.sub(r" in context \S+(?= is (?:not )?in )", "", expected)
    elif profile >= "8.2" and status == 409:
        expected = re.sub(r"^409\b", "40901", expected)
    elif (
        profile == "7.9" and status == 200 and expected and exchange.target.startswith(("/schemas", "/subjects", "/c"))
    ):
        value = _without_newer(_json(expected)[0])
        if _REGISTERING.match(f"{exchange.method} {exchange.target}"):
            value = {"id": value.get("id", "*")}
        expected = json.dumps(value)
    return exchange._replace(status=status, expected=expected)


def _without_newer(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_newer(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _without_newer(item)
        for name, item in value.items()
        if name not in _NEWER and (name, item) != ("schemaType", "AVRO")
    }


def _compare(exchange: Exchange, answer: httpx.Response, place: str, refused: Refusal) -> None:
    if not exchange.expected:
        assert not answer.content, f"{place}: {answer.text[:2000]}"
    elif exchange.status < 400:
        expected, open_ended = _json(exchange.expected)
        assert matches(expected, answer.json(), open_ended=open_ended), f"{place}: {answer.text[:4000]}"
    else:
        assert refused(exchange.expected, answer), f"{place}: {answer.text[:2000]}"


def _json(text: str) -> tuple[Any, bool]:
    """Return a JSON value in which `...` as the last member of an object became a member, and False."""
    return json.loads(text.replace(f", {_OPEN}}}", f', "{_OPEN}": 0}}')), False


def matches(expected: Any, actual: Any, *, open_ended: bool = False) -> bool:
    """Return whether a value is as expected; objects with a member `...` may have more members."""
    if expected == "*":
        return True
    if isinstance(expected, dict) and isinstance(actual, dict):
        wanted = {name: value for name, value in expected.items() if name != _OPEN}
        if _OPEN not in expected and not open_ended and set(wanted) != set(actual):
            return False
        return all(name in actual and matches(value, actual[name]) for name, value in wanted.items())
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(matches, expected, actual))
    return type(expected) is type(actual) and bool(expected == actual)
