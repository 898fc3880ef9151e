"""Texts that mutations insert: the vocabulary of each language, and values that are often handled wrongly."""

from __future__ import annotations

from typing import Final

NUMBERS: Final = (
    *(0, 1, -1, 2, 3, 16, 64, 127, 128, 255, 1000, 65_536, 536_870_911, 536_870_912, 2**31 - 1, 2**31, -(2**31)),
    *(2**53, 2**63 - 1, 2**63, -(2**63), 2**64, 10**40, 0.5, -0.0, 1.5, 1e308, 5e-324, 10**400),
)
TEXTS: Final = (
    *("", " ", "a", "A", ".", "..", "a.b", "/", "\\", "#", "$", "#/", "~", "%", "%25", "\n", "\t", "\x7f", "é"),
    *("\u2028", "😀", "\ufeff", "\ufffe", "\U0010ffff", "null", "NaN", "1e999", "http://e/x", "urn:x", "file:///etc/x"),
    *("(a+)+$", "(a|a)*b", "((a{1,99}){1,99}){1,99}", "^(?=a)", "(?<n>a)\\k<n>", "\\p{L}+", "[^\\s\\S]", "[a-", "("),
    "a" * 300,
)
BYTES: Final = (
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\r", b"\x1a"),
    *(b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x80" * 12, b"9" * 5000, b"{" * 300),
    *(b"[" * 1000, b"(" * 300, b"<" * 300, b"/*", b"*/", b"//", b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b"&#0;"),
)


def _words(*lines: str) -> tuple[str, ...]:
    return tuple(" ".join(lines).split())


AVRO: Final = _words(
    "type name namespace fields items values symbols size default aliases doc order logicalType precision scale record",
    "error enum fixed array map union null boolean int long float double bytes string ascending ignore decimal uuid",
    "date time-millis timestamp-micros duration big-decimal R a.R ref.T A B",
)
PROTOBUF: Final = _words(
    "syntax edition package import public weak option message enum service rpc returns stream extend extensions",
    "oneof map group optional required repeated reserved to max true false inf nan int32 int64 uint32 sint64",
    "fixed32 sfixed64 bool string bytes float double default json_name packed deprecated lazy jstype features",
    '"ref" ref.T "proto2" "proto3" "2023" "2024" default.proto google.protobuf.Any (p.e).x [ ] { } < > ( ) ; = , - .',
    "1 536870911 19000 -1 0x7FFFFFFF allow_alias message_set_wire_format M M.E features.field_presence IMPLICIT",
)
JSON_SCHEMA: Final = _words(
    "$schema $id id $ref $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $defs definitions",
    "$vocabulary type enum const properties patternProperties additionalProperties required dependencies",
    "dependentRequired dependentSchemas propertyNames minProperties maxProperties items prefixItems additionalItems",
    "contains minContains maxContains minItems maxItems uniqueItems pattern format minLength maxLength minimum maximum",
    "exclusiveMinimum exclusiveMaximum multipleOf allOf anyOf oneOf not if then else unevaluatedProperties",
    "unevaluatedItems title description default examples contentEncoding object array string number integer boolean",
    "null # #/definitions/s #/$defs/n ref date-time email regex uri http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema# https://json-schema.org/draft/2019-09/schema",
)
THRIFT: Final = _words(
    "namespace include cpp_include const typedef struct union exception enum senum service extends throws oneway async",
    "void required optional bool byte i8 i16 i32 i64 double string binary slist uuid list set map true false 0x1F -1",
    "1e3 1e999 { } [ ] ( ) < > : ; , = . * # // /* */ & ref.T ref S TT U X C xsd_all xsd_optional xsd_nillable",
    "xsd_attrs reference cocoa_prefix 'a' \"b\"",
)
XSD: Final = _words(
    "schema element attribute complexType simpleType sequence choice all group attributeGroup any anyAttribute",
    "restriction extension union list simpleContent complexContent annotation documentation appinfo import include",
    "redefine override unique key keyref selector field notation assert assertion alternative openContent",
    "defaultOpenContent explicitTimezone name ref type base itemType memberTypes minOccurs maxOccurs unbounded use",
    "required optional prohibited fixed default nillable abstract final block mixed substitutionGroup form qualified",
    "targetNamespace elementFormDefault namespace schemaLocation processContents lax skip strict ##any ##other",
    "##targetNamespace ##local test xpath value pattern enumeration length minLength maxLength minInclusive",
    "maxExclusive totalDigits fractionDigits whiteSpace collapse xs:string xs:int xs:decimal xs:ID xs:IDREF xs:anyType",
    "xs:date xs:NMTOKENS xs:QName xs:base64Binary T S r a x . .//x @k x/y x|y 2 count(a)>1 ref id source",
)
REQUESTS: Final = _words(
    "schema schemaType references name subject version id metadata tags properties sensitive ruleSet migrationRules",
    "domainRules encodingRules kind mode params expr onSuccess onFailure disabled schemaTagsToAdd schemaEntity",
    "entityPath propagateSchemaTags compatibility compatibilityGroup defaultRuleSet normalize AVRO JSON PROTOBUF",
    "BACKWARD FULL_TRANSITIVE READWRITE TRANSFORM CONDITION",
)
