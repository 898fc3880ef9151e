"""Mutations that keep most inputs almost valid: edits of JSON and XML trees, of tokens, and of bytes."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from lxml import etree

from fuzz.parts import Parts, split_parts
from fuzz.words import BYTES, NUMBERS, TEXTS

Edit = Callable[[bytes, random.Random], bytes]

_TOKEN: Final = re.compile(rb"\s+|[A-Za-z_][\w.]*|\d[\w.]*|\"[^\"\n]*\"|'[^'\n]*'|.", re.DOTALL)
_OPENING: Final = {b"{": b"}", b"[": b"]", b"(": b")", b"<": b">"}
_MAX_NODES: Final = 5_000


class Mutator:
    """Mutates inputs of one language. The same seed gives the same changes.

    edit      function that makes one change to a document of the language
    seeds     inputs whose parts are copied into others
    """

    def __init__(self, edit: Edit, seeds: Sequence[bytes]) -> None:
        self._edit = edit
        self._seeds = [split_parts(seed) for seed in seeds]

    def __call__(self, data: bytes, max_size: int, rng: random.Random) -> bytes:
        """Return a changed input of at most `max_size` bytes, or the old one if no change was that short."""
        parts = list(split_parts(data))
        made = data
        for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
            self._change(parts, rng)
            if sum(map(len, parts)) > max_size:
                break  # further changes would multiply the size
            made = Parts(*parts).join()
        return made if len(made) <= max_size else data

    def _change(self, parts: list[bytes], rng: random.Random) -> None:
        where = rng.choices(range(4), (10, 6, 1, 2))[0]
        how = rng.random()
        if how < 0.08:
            parts[where] = rng.choice(self._seeds)[where]
        elif how < 0.16:
            parts[1] = self._edit(parts[0], rng)  # the usual case of a check: a schema and a small change
        elif how < 0.24 or where == 3:
            parts[where] = edit_bytes(parts[where], rng)
        else:
            parts[where] = self._edit(parts[where], rng)


# --- bytes ----------------------------------------------------------------------------------------------------------


def edit_bytes(data: bytes, rng: random.Random) -> bytes:
    """Return the data with one change that ignores the language."""
    at, end = sorted(rng.randrange(len(data) + 1) for _ in "ab")
    end = min(end, at + rng.choice((1, 2, 8, 64)))
    match rng.randrange(6):
        case 0:
            return data[:at] + rng.randbytes(rng.choice((1, 1, 4, 16))) + data[at:]
        case 1:
            return data[:at] + data[end:]
        case 2:
            return data[:at] + rng.choice(BYTES) + data[end:]
        case 3:
            return data[:at] + data[at:end] * rng.choice((2, 3, 50, 1000)) + data[end:]
        case 4 if at < len(data):
            return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
        case _:
            return data[:at]


# --- tokens ---------------------------------------------------------------------------------------------------------


def edit_tokens(words: Sequence[str]) -> Edit:
    """Return an edit for a language of words, numbers, strings and brackets. `words` are those that it knows."""
    vocabulary = [word.encode() for word in words]

    def edit(data: bytes, rng: random.Random) -> bytes:
        tokens = _TOKEN.findall(data)[:_MAX_NODES]
        if not tokens:
            return rng.choice(vocabulary)
        at = rng.randrange(len(tokens))
        match rng.randrange(8):
            case 0:
                del tokens[at]
            case 1:
                tokens[at] = rng.choice(vocabulary)
            case 2:
                tokens.insert(at, rng.choice(vocabulary) + rng.choice((b" ", b"")))
            case 3:
                tokens[at] = _pick_other_token(tokens[at], tokens, rng)
            case 4:
                end = _find_block_end(tokens, at)
                tokens[at:end] = tokens[at:end] * rng.choice((2, 2, 3, 40))
            case 5:
                del tokens[at : _find_block_end(tokens, at)]
            case 6:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case _:
                block = tokens[at : _find_block_end(tokens, at)]
                there = rng.randrange(len(tokens))
                tokens[there:there] = block
        return b"".join(tokens)

    return edit


def _pick_other_token(token: bytes, tokens: Sequence[bytes], rng: random.Random) -> bytes:
    """Return another token of the same kind."""
    if token[:1].isdigit():
        return str(rng.choice(NUMBERS)).encode()
    if token[:1] in {b'"', b"'"}:
        return token[:1] + rng.choice(TEXTS).encode("utf-8", "surrogatepass") + token[:1]
    alike = [other for other in tokens if other[:1].isalpha() == token[:1].isalpha() and not other.isspace()]
    return rng.choice(alike or [token])


def _find_block_end(tokens: Sequence[bytes], at: int) -> int:
    """Return the end of the block that begins at or soon after a token, or else of a few tokens."""
    for start in range(at, min(at + 8, len(tokens))):
        closing, depth = _OPENING.get(tokens[start]), 0
        if closing is None:
            continue
        for index in range(start, len(tokens)):
            depth += (tokens[index] == tokens[start]) - (tokens[index] == closing)
            if not depth:
                return index + 1
    return min(at + 4, len(tokens))


# --- JSON -----------------------------------------------------------------------------------------------------------


def edit_json(words: Sequence[str]) -> Edit:
    """Return an edit for JSON trees. `words` are the member names and values that readers look for."""
    tokens = edit_tokens([*(f'"{word}"' for word in words), "{", "}", "[", "]", ":", ",", "null", "true", "1e999"])

    def edit(data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.1:
            return tokens(data, rng)
        try:
            tree = [json.loads(data)]
        except (ValueError, RecursionError):
            return tokens(data, rng)
        places = _list_places(tree)
        try:
            _edit_place(*rng.choice(places), places, words, rng)
            return json.dumps(tree[0] if tree else None, ensure_ascii=rng.random() < 0.8).encode()
        except (ValueError, RecursionError):  # a lone surrogate, a number too long to print, a cycle
            return data

    return edit


Place = tuple[Any, Any]
"""A list or dict, and an index or key in it."""


def _list_places(tree: list[Any]) -> list[Place]:
    found: list[Place] = []
    waiting: list[Any] = [tree]
    while waiting and len(found) < _MAX_NODES:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node))
        for key in keys:
            found.append((node, key))
            if isinstance(node[key], dict | list):
                waiting.append(node[key])
    return found


def _edit_place(holder: Any, key: Any, places: Sequence[Place], words: Sequence[str], rng: random.Random) -> None:
    other_holder, other_key = rng.choice(places)
    value = holder[key]
    match rng.randrange(9):
        case 0:
            del holder[key]
        case 1:
            holder[key] = _copy_tree(other_holder[other_key])
        case 2:
            holder[key] = rng.choice((rng.choice(words), rng.choice(TEXTS), rng.choice(NUMBERS), None, True, {}, []))
        case 3 if isinstance(holder, dict):
            holder[rng.choice(words)] = holder.pop(key)
        case 4 if isinstance(value, dict):
            value[rng.choice(words)] = rng.choice((rng.choice(words), rng.choice(NUMBERS), _copy_tree(other_holder)))
        case 5 if isinstance(value, list):
            value.extend(_copy_tree(value) * rng.choice((1, 3, 60)))
        case 6:
            for _ in range(rng.choice((1, 2, 30, 220))):
                value = [value] if isinstance(holder, list) else {rng.choice(words): value}
            holder[key] = value
        case 7 if isinstance(value, list):
            value.insert(0, _copy_tree(other_holder[other_key]))
        case _ if isinstance(value, str):
            holder[key] = edit_bytes(value.encode("utf-8", "surrogatepass"), rng).decode("utf-8", "replace")
        case _ if isinstance(value, int | float):
            holder[key] = rng.choice((value + 1, -value, rng.choice(NUMBERS)))
        case _:
            holder[key] = [value, _copy_tree(value)]


def _copy_tree(value: Any) -> Any:
    """Return a copy, so that no tree contains itself."""
    return json.loads(json.dumps(value))


# --- XML ------------------------------------------------------------------------------------------------------------


def edit_xml(words: Sequence[str]) -> Edit:
    """Return an edit for XML trees. `words` are names and values of attributes and elements that readers know."""
    tokens = edit_tokens([*words, "<", ">", "/>", "</", '="', "&amp;", "<![CDATA[", "]]>", "<!--", "<!DOCTYPE a>"])

    def edit(data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.15:
            return tokens(data, rng)
        try:
            root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
        except (etree.XMLSyntaxError, ValueError):
            return tokens(data, rng)
        nodes = [node for node in root.iter() if isinstance(node.tag, str)][:_MAX_NODES]
        try:
            _edit_element(rng.choice(nodes), rng.choice(nodes), words, rng)
        except ValueError:  # an invalid XML name, or an element moved into itself
            return data
        return bytes(etree.tostring(root))

    return edit


def _edit_element(node: Any, other: Any, words: Sequence[str], rng: random.Random) -> None:
    parent = node.getparent()
    match rng.randrange(9):
        case 0 if parent is not None:
            parent.remove(node)
        case 1 if parent is not None:
            for _ in range(rng.choice((1, 1, 3, 60))):
                parent.insert(rng.randrange(len(parent) + 1), _clone_element(node))
        case 2:
            node.append(_clone_element(other))
        case 3 if node.attrib:
            del node.attrib[rng.choice(list(node.attrib))]
        case 4:
            node.set(rng.choice(words), rng.choice((rng.choice(words), rng.choice(TEXTS), str(rng.choice(NUMBERS)))))
        case 5 if parent is not None:
            node.tag = etree.QName(etree.QName(node).namespace, rng.choice(words)).text
        case 6:
            node.text = rng.choice(TEXTS)
        case _ if node.attrib:
            name = rng.choice(list(node.attrib))
            values = [value for each in (node, other) for value in each.attrib.values()]
            changed = edit_bytes(node.get(name).encode(), rng).decode("utf-8", "replace")
            node.set(name, rng.choice((*values, rng.choice(words), changed, str(rng.choice(NUMBERS)))))
        case _:
            node.append(_clone_element(node))


def _clone_element(node: Any) -> Any:
    """Return a copy of an element, without the text after it."""
    made = copy.deepcopy(node)
    made.tail = None
    return made
