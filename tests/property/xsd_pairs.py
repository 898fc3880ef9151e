"""Random pairs of schemas, one often a small change of the other, and random documents of a schema."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

SIMPLE = {
    "xs:string": ["a", "", "x y", " b "],
    "xs:token": ["a", " b ", "x  y"],
    "xs:int": ["0", "-5", "007", " 12 "],
    "xs:byte": ["1", "-128", "127"],
    "xs:long": ["0", "99999999999"],
    "xs:positiveInteger": ["1", "+7", "300"],
    "xs:decimal": ["1.5", "-0.25", "3", ".5", "1."],
    "xs:double": ["1E3", "INF", "2.5", "-0"],
    "xs:boolean": ["true", "0"],
    "xs:date": ["2024-01-31", "1999-12-31Z"],
    "xs:NMTOKEN": ["a", "1-2"],
    "xs:NCName": ["a", "b-c"],
    "xs:language": ["en", "en-GB"],
    "xs:hexBinary": ["", "0a", "FF00"],
}
"""Built-in types, each with some texts."""

FACETS = {
    "xs:string": [
        *(("maxLength", "1"), ("maxLength", "4"), ("minLength", "1"), ("length", "1"), ("whiteSpace", "collapse")),
        *(("pattern", "[a-z]*"), ("pattern", "[a-z ]+|.?"), ("enumeration", "a"), ("enumeration", "b")),
    ],
    "xs:token": [("maxLength", "2"), ("enumeration", "a"), ("pattern", "\\S*"), ("pattern", "a|b")],
    "xs:int": [
        *(("minInclusive", "0"), ("maxExclusive", "12"), ("maxInclusive", "100"), ("totalDigits", "2")),
        *(("pattern", "\\d+"), ("enumeration", "0"), ("enumeration", "-5")),
    ],
    "xs:decimal": [("fractionDigits", "1"), ("totalDigits", "2"), ("minExclusive", "-1"), ("maxInclusive", "3")],
    "xs:double": [("minInclusive", "0"), ("maxInclusive", "1000")],
    "xs:date": [("minInclusive", "2000-01-01"), ("minExclusive", "2024-01-30"), ("maxInclusive", "2024-12-31")],
    "xs:hexBinary": [("maxLength", "1"), ("length", "2")],
}
"""Facets to restrict built-in types with."""

NAMES = ["a", "b", "c"]


@dataclass(frozen=True)
class Simple:
    """A simple type: a restriction, or a list or union of such."""

    kind: str
    base: str = ""
    facets: tuple[tuple[str, str], ...] = ()
    parts: tuple[Simple, ...] = ()

    def to_xml(self) -> str:
        """Return the type as an anonymous type in XML."""
        if self.kind == "list":
            return f"<xs:simpleType><xs:list>{self.parts[0].to_xml()}</xs:list></xs:simpleType>"
        if self.kind == "union":
            return f"<xs:simpleType><xs:union>{''.join(p.to_xml() for p in self.parts)}</xs:union></xs:simpleType>"
        facets = "".join(f'<xs:{name} value="{value}"/>' for name, value in self.facets)
        return f'<xs:simpleType><xs:restriction base="{self.base}">{facets}</xs:restriction></xs:simpleType>'

    def sample_text(self, rng: random.Random) -> str:
        """Return a text that is probably valid."""
        if self.kind == "list":
            return " ".join(self.parts[0].sample_text(rng) for _ in range(rng.randrange(4)))
        if self.kind == "union":
            return rng.choice(self.parts).sample_text(rng)
        values = [value for name, value in self.facets if name == "enumeration"]
        return rng.choice(values or [*SIMPLE[self.base], *SIMPLE[rng.choice(list(SIMPLE))][:1]])


@dataclass(frozen=True)
class Particle:
    """An element, a wildcard or a group."""

    kind: str
    low: int
    high: int
    parts: tuple[Particle, ...] = ()
    name: str = ""
    type: Simple | Complex | None = None
    nillable: bool = False

    def to_xml(self) -> str:
        """Return the particle as XML of a content model."""
        most = "unbounded" if self.high > 3 else str(self.high)
        occurs = f' minOccurs="{self.low}" maxOccurs="{most}"'
        if self.kind == "element":
            assert self.type is not None
            nil = ' nillable="true"' if self.nillable else ""
            return f'<xs:element name="{self.name}"{occurs}{nil}>{self.type.to_xml()}</xs:element>'
        if self.kind == "any":
            return f'<xs:any namespace="urn:o" processContents="{self.name}"{occurs}/>'
        return f"<xs:{self.kind}{occurs}>{''.join(part.to_xml() for part in self.parts)}</xs:{self.kind}>"

    def sample_children(self, rng: random.Random) -> str:
        """Some children."""
        return "".join(self._sample_once(rng) for _ in range(rng.randint(self.low, min(self.high, self.low + 2))))

    def _sample_once(self, rng: random.Random) -> str:
        if self.kind == "element":
            assert self.type is not None
            if self.nillable and rng.random() < 0.2:
                return f'<{self.name} xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>'
            return sample_document(self.name, self.type, rng)
        if self.kind == "any":
            return '<o:z xmlns:o="urn:o"/>'
        if self.kind == "choice":
            return rng.choice(self.parts).sample_children(rng) if self.parts else ""
        parts = list(self.parts)
        if self.kind == "all":
            rng.shuffle(parts)
        return "".join(part.sample_children(rng) for part in parts)


@dataclass(frozen=True)
class Complex:
    """A complex type: attributes and a content model."""

    model: Particle
    attributes: tuple[tuple[str, Simple, str, str], ...] = ()
    mixed: bool = False
    simple: Simple | None = field(default=None)

    def to_xml(self) -> str:
        """Return the type as an anonymous type in XML."""
        uses = "".join(
            f'<xs:attribute name="{name}" use="{use}"{fixed}>{kind.to_xml()}</xs:attribute>'
            for name, kind, use, fixed in self.attributes
        )
        mixed = ' mixed="true"' if self.mixed else ""
        return f"<xs:complexType{mixed}>{self.model.to_xml()}{uses}</xs:complexType>"


def sample_document(name: str, kind: Simple | Complex, rng: random.Random) -> str:
    """A document of a type, probably valid."""
    if isinstance(kind, Simple):
        return f"<{name}>{kind.sample_text(rng)}</{name}>"
    uses = "".join(
        f' {attribute}="{inner.sample_text(rng)}"'
        for attribute, inner, use, _ in kind.attributes
        if use == "required" or rng.random() < 0.6
    )
    text = rng.choice(["", "text"]) if kind.mixed else ""
    return f"<{name}{uses}>{text}{kind.model.sample_children(rng)}</{name}>"


def schema_text(kind: Simple | Complex) -> bytes:
    """A schema with the one root `r`."""
    return (
        f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="r">{kind.to_xml()}</xs:element>'
        "</xs:schema>"
    ).encode()


def random_simple(rng: random.Random, depth: int = 0) -> Simple:
    """Any simple type."""
    if depth < 2 and rng.random() < 0.15:
        return Simple("list", parts=(random_simple(rng, 2),))
    if depth < 2 and rng.random() < 0.15:
        return Simple("union", parts=(random_simple(rng, 2), random_simple(rng, 2)))
    base = rng.choice(list(SIMPLE))
    facets = FACETS.get(base, [])
    chosen = rng.sample(facets, min(len(facets), rng.choice([0, 0, 1, 2])))
    return Simple("restriction", base, tuple(chosen))


def random_particle(rng: random.Random, depth: int) -> Particle:
    """Any particle but an all group."""
    low = rng.choice([0, 1, 1, 2])
    high = max(low, rng.choice([1, 1, 2, 4])) or 1
    roll = rng.random()
    if depth and roll < 0.35:
        parts = tuple(random_particle(rng, depth - 1) for _ in range(rng.randint(1, 3)))
        return Particle(rng.choice(["sequence", "choice"]), low, high, parts)
    if roll < 0.42:
        return Particle("any", low, high, name=rng.choice(["lax", "skip"]))
    kind: Simple | Complex = random_complex(rng, 0) if depth and rng.random() < 0.15 else random_simple(rng)
    return Particle("element", low, high, name=rng.choice(NAMES), type=kind, nillable=rng.random() < 0.1)


def random_complex(rng: random.Random, depth: int = 2) -> Complex:
    """Any complex type."""
    if rng.random() < 0.25:
        names = rng.sample(NAMES, rng.randint(1, 3))
        parts = tuple(Particle("element", rng.randint(0, 1), 1, name=name, type=random_simple(rng)) for name in names)
        model = Particle("all", rng.choice([0, 1, 1]), 1, parts)
    else:
        parts = tuple(random_particle(rng, depth) for _ in range(rng.randint(0, 3)))
        model = Particle(
            rng.choice(["sequence", "sequence", "choice"]), rng.choice([0, 1, 1]), rng.choice([1, 1, 4]), parts
        )
    uses = tuple(
        (name, random_simple(rng), rng.choice(["optional", "required"]), "")
        for name in rng.sample(["p", "q"], rng.randint(0, 2))
    )
    return Complex(model, uses, rng.random() < 0.1)


def change_type(kind: Simple | Complex, rng: random.Random) -> Simple | Complex:
    """A small change of a type."""
    if isinstance(kind, Simple):
        return _change_simple(kind, rng)
    if kind.attributes and rng.random() < 0.3:
        index = rng.randrange(len(kind.attributes))
        name, inner, use, fixed = kind.attributes[index]
        new = rng.choice([(name, _change_simple(inner, rng), use, fixed), (name, inner, "optional", fixed), None])
        uses = [*kind.attributes[:index], *([new] if new else []), *kind.attributes[index + 1 :]]
        return replace(kind, attributes=tuple(uses))
    if rng.random() < 0.1:
        return replace(kind, mixed=True)
    return replace(kind, model=_change_particle(kind.model, rng))


def _change_simple(kind: Simple, rng: random.Random) -> Simple:
    if kind.parts:
        return replace(kind, parts=tuple(_change_simple(part, rng) for part in kind.parts))
    if kind.facets and rng.random() < 0.6:
        return replace(kind, facets=kind.facets[:-1])
    wider = {"xs:int": "xs:long", "xs:byte": "xs:int", "xs:long": "xs:decimal", "xs:decimal": "xs:double"}
    if not kind.facets and rng.random() < 0.7:
        return replace(kind, base=wider.get(kind.base, "xs:string"))
    return random_simple(rng)


def _change_particle(particle: Particle, rng: random.Random) -> Particle:
    if particle.parts and rng.random() < 0.7:
        index = rng.randrange(len(particle.parts))
        parts = list(particle.parts)
        roll = rng.random()
        if roll < 0.6:
            parts[index] = _change_particle(parts[index], rng)
        elif roll < 0.8 and particle.kind != "all":
            parts.insert(index, replace(random_particle(rng, 0), low=0))
        elif len(parts) > 1:
            del parts[index]
        return replace(particle, parts=tuple(parts))
    if particle.kind == "element" and particle.type is not None and rng.random() < 0.5:
        return replace(particle, type=change_type(particle.type, rng))
    if particle.kind == "all":
        return replace(particle, kind="choice", high=4) if rng.random() < 0.5 else replace(particle, low=0)
    return replace(particle, low=0) if rng.random() < 0.5 else replace(particle, high=4)
