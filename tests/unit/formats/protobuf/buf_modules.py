"""Pairs of related Protobuf modules, for comparing verdicts with those of `buf`.

A module is drawn by a sequence of choices, each with a key such as `main/M0/f3/type`. The seed of a pair determines the
choices for the old module. The new module has the same choices except for a few, so that any decision of the generator
is also a change that gets tested.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")

_INTEGERS = ["int32", "int64", "sint32", "sint64", "sfixed32", "sfixed64", "uint32", "uint64", "fixed32", "fixed64"]
_TEXTS = ['""', '"a"', '"\\303\\244\\n"']
DEFAULTS = {
    **{kind: ["0", "1", "16777217" if kind[0] in "uf" else "-7"] for kind in _INTEGERS},
    **{kind: ["0", "-0", "1", "0.1", "inf", "-inf", "nan", "1e10", "16777217"] for kind in ("float", "double")},
    "bool": ["true", "false"],
    "string": _TEXTS,
    "bytes": [*_TEXTS, '"\\377\\000"'],
}
SCALARS = [*DEFAULTS, "string"]
_NAMES = """
    csharp_namespace go_package java_outer_classname java_package objc_class_prefix php_class_prefix
    php_metadata_namespace php_namespace ruby_package swift_prefix
"""
_SWITCHES = """
    cc_enable_arenas cc_generic_services java_generic_services java_multiple_files py_generic_services
    java_string_check_utf8 deprecated
"""
FILE_OPTIONS = {
    **{name: ['"a"', '"b"', '""'] for name in _NAMES.split()},
    **{name: ["true", "false"] for name in _SWITCHES.split()},
    "optimize_for": ["SPEED", "CODE_SIZE"],
}
FEATURES = {
    "field_presence": ["EXPLICIT", "IMPLICIT"],
    "utf8_validation": ["VERIFY", "NONE"],
    "message_encoding": ["LENGTH_PREFIXED", "DELIMITED"],
    "enum_type": ["OPEN", "CLOSED"],
    "json_format": ["ALLOW", "LEGACY_BEST_EFFORT"],
    "(pb.cpp).string_type": ["STRING", "CORD"],
    "(pb.java).utf8_validation": ["DEFAULT", "VERIFY"],
}
FIELD_FEATURES = [name for name in FEATURES if name not in {"enum_type", "json_format"}]


_WORDS = """
    syntax package path there name family scalar of- label oneof default json_format utf8 enum_type (pb. field_presence
    message_encoding reserved span extensions extend json jstype ctype first alias stream level word value key /in
    accessor check_utf8 generic java_m lib extra M E S _
"""
FOCUS = _WORDS.split()
"""Parts of keys; in each pair, choices whose key contains one of them change more often."""


class Answers:
    """Random choices by key, determined by a seed.

    A share of them, and more if the key contains the focus, is determined by another seed.
    """

    def __init__(self, seed: str, other: str = "", share: float = 0.0, focus: str = "") -> None:
        self._seed, self._other, self._share, self._focus = seed, other, share, focus

    def pick_option(self, key: str, options: Sequence[T]) -> T:
        """One of the options."""
        seed = self._seed
        if self._other and _hash_fraction(f"{self._other}?{key}") < (0.3 if self._focus in key else self._share):
            seed = self._other
        return options[int(_hash_fraction(f"{seed}/{key}") * len(options))]

    def answer_yes(self, key: str, chance: float) -> bool:
        """Return True with a probability of chance."""
        return self.pick_option(key, range(100)) < chance * 100


def _hash_fraction(key: str) -> float:
    """A number from 0 up to 1, the same in every process."""
    return int.from_bytes(blake2b(key.encode(), digest_size=6).digest()) / (1 << 48)


class Drawing:
    """One module: files by path, all below the folder and the package `name`."""

    def __init__(self, name: str, answers: Answers) -> None:
        self.name, self.a = name, answers
        self.syntax = ""
        self.prefix = ""
        self.implicit = False
        self.messages: list[str] = []
        self.enums: list[str] = []

    def draw_files(self) -> dict[str, str]:
        """Return the sources, imports before importers.

        The last one is the main file. It does not necessarily import all others.
        """
        pick, yes = self.a.pick_option, self.a.answer_yes
        sources: dict[str, str] = {}
        lib = f"{self.name}/{pick('lib-path', ['lib'] * 15 + ['lib2'])}.proto"
        lib_package = pick("lib-package", [f"{self.name}.lib", f"{self.name}.lib", f"{self.name}.main"])
        sources[lib] = self._draw_file("lib", lib_package, [], lib_package)
        if yes("extra", 0.7):
            path = f"{self.name}/{pick('extra-path', ['x', 'y'])}.proto"
            sources[path] = self._draw_file(
                "extra", pick("extra-package", [f"{self.name}.x", f"{self.name}.main"]), [], ""
            )
        package = pick("main-package", [f"{self.name}.main"] * 12 + [f"{self.name}.second"])
        imports = [path for path in sources if path == lib or yes("imports-extra", 0.8)]
        sources[f"{self.name}/main.proto"] = self._draw_file("main", package, imports, lib_package)
        return sources

    # --- files ------------------------------------------------------------------------------------------------------

    def _draw_file(self, role: str, package: str, imports: Sequence[str], lib_package: str) -> str:
        pick, yes = self.a.pick_option, self.a.answer_yes
        self.syntax = pick(f"{role}/syntax", ["", "proto2", "proto2", "proto3", "proto3", "2023", "2023", "2024"])
        if pick("same-syntax", range(5)):  # a mixture within a module is rarer
            self.syntax = pick("syntax", ["proto2", "proto2", "proto3", "proto3", "2023", "2023", "2024"])
        self.prefix = role.title()  # files may share a package
        statement = f'edition = "{self.syntax}";' if self.is_edition else f'syntax = "{self.syntax}";'
        lines = [statement if self.syntax else "", f"package {package};" if package else ""]
        needed = [*imports]
        if self.is_edition:
            needed += ["google/protobuf/cpp_features.proto", "google/protobuf/java_features.proto"]
        if yes(f"{role}/timestamp", 0.3):
            needed.append("google/protobuf/struct.proto")
        lines += [f'import "{path}";' for path in needed]
        for name, values in FILE_OPTIONS.items():
            if yes(f"{role}/{name}", 0.4) and not self._is_gone(name):
                lines.append(f"option {name} = {pick(f'{role}/{name}=', values)};")
        features = self._draw_features(role, FEATURES, 0.12)
        if self.syntax == "2024":
            features.append("features.enforce_naming_style = STYLE_LEGACY")
        self.implicit = "features.field_presence = IMPLICIT" in features
        if self.implicit:  # has no use for closed enums
            features = [feature for feature in features if "CLOSED" not in feature]
        lines += [f"option {feature};" for feature in features]
        types = [f"{self.prefix}M{number}" for number in range(3)]
        enums = [f"{self.prefix}E{number}" for number in range(3)]
        kept_messages = [name for name in types if name == types[0] or yes(f"{role}/{name[-2:]}", 0.9)]
        kept_enums = [name for name in enums if name == enums[0] or yes(f"{role}/{name[-2:]}", 0.9)]
        self.messages, self.enums = [*kept_messages], [*kept_enums]
        if role == "main":
            self.messages.append(f"{lib_package}.LibM0")
            if self._lib_is_usable():
                self.enums.append(f"{lib_package}.LibE0")
        if yes(f"{role}/timestamp", 0.3):
            self.messages.append("google.protobuf.Struct")
        for name in kept_messages:
            lines += self._draw_message(f"{role}/{name[-2:]}", name, 0)
        for name in kept_enums:
            lines += self._draw_enum(f"{role}/{name[-2:]}", name)
        lines += self._draw_extend(f"{role}/extend", kept_messages[0])
        for number in range(2):
            if yes(f"{role}/S{number}", 0.7):
                lines += self._draw_service(f"{role}/S{number}", f"{self.prefix}S{number}", kept_messages)
        return "\n".join(line for line in lines if line) + "\n"

    @property
    def is_edition(self) -> bool:
        """Whether the file being drawn is of an edition."""
        return self.syntax.startswith("20")

    def _is_gone(self, option: str) -> bool:
        """Whether the edition no longer has an option."""
        return {"java_multiple_files": self.syntax == "2024", "java_string_check_utf8": self.is_edition}.get(
            option, False
        )

    def _lib_is_usable(self) -> bool:
        """Return whether the file can use the closed enum of another file; files with open enums cannot."""
        return self.syntax != "proto3" and not self.is_edition

    def _draw_features(self, key: str, names: Sequence[str] | dict[str, list[str]], chance: float) -> list[str]:
        if not self.is_edition:
            return []
        chosen = [name for name in names if self.a.answer_yes(f"{key}/{name}", chance)]
        return [f"features.{name} = {self.a.pick_option(f'{key}/{name}=', FEATURES[name])}" for name in chosen]

    # --- messages ---------------------------------------------------------------------------------------------------

    def _draw_message(self, key: str, name: str, depth: int) -> list[str]:
        pick, yes = self.a.pick_option, self.a.answer_yes
        lines = [f"message {name} {{"]
        if yes(f"{key}/accessor", 0.1):
            lines.append(f"option no_standard_descriptor_accessor = {pick(f'{key}/accessor=', ['true', 'false'])};")
        lines += [f"option {text};" for text in self._draw_features(key, ["json_format"], 0.15)]
        if depth < 2:
            for number in range(2):
                if yes(f"{key}/N{number}", 0.3):
                    lines += self._draw_message(f"{key}/N{number}", f"N{number}", depth + 1)
            if yes(f"{key}/NE", 0.2):
                lines += self._draw_enum(f"{key}/NE", f"NE{depth}", f"{name}_{depth}_".upper())
        lines += self._draw_fields(key)
        if self.syntax != "proto3" and (depth == 0 or yes(f"{key}/extensible", 0.6)):
            end = pick(
                f"{key}/extensions",
                ["199", "199", "250", "max", "198"] if depth == 0 else ["199", "150", "max", "120, 122 to 199", ""],
            )
            lines.append(f"extensions 100 to {end};" if end else "")
        if depth == 0 and yes(f"{key}/inner-extend", 0.2):
            lines += self._draw_extend(f"{key}/extend", self.messages[0], 1 + int(key[-1]))
        return [*lines, "}"]

    def _draw_fields(self, key: str) -> list[str]:
        pick, yes = self.a.pick_option, self.a.answer_yes
        free: list[str] = []
        oneofs: dict[str, list[str]] = {}
        absent: list[tuple[int, str]] = []
        for number in range(1, 7):
            at = f"{key}/f{number}"
            name = f"{pick(f'{at}/name', ['field'] * 9 + ['other', 'Field'])}_{number}"
            if not yes(f"{at}/there", 0.7):
                absent.append((number, name))
                continue
            oneof = pick(f"{at}/oneof", ["", "", "", "o1", "o1", "o2"])
            line = self._draw_field(at, name, number, in_oneof=bool(oneof))
            if oneof and not line.startswith(("repeated", "map", "required")):
                oneofs.setdefault(oneof, []).append(line)
            else:
                free.append(line)
        for oneof, members in oneofs.items():
            name = pick(f"{key}/{oneof}/name", [oneof] * 9 + [f"{oneof}x"])
            free.append(f"oneof {name} {{ {' '.join(members)} }}")
        return free + self._draw_reserved(key, absent, ["20 to 29", "22", "25 to 40, 45", "20 to max", "21, 23 to 24"])

    def _draw_reserved(self, key: str, absent: Sequence[tuple[int, str]], spans: Sequence[str]) -> list[str]:
        pick, yes = self.a.pick_option, self.a.answer_yes
        numbers = [str(number) for number, _ in absent if yes(f"{key}/{number}/reserved", 0.5)]
        names = [name for number, name in absent if yes(f"{key}/{number}/reserved-name", 0.5)]
        names += [name for name in ("r1", "r2") if yes(f"{key}/{name}", 0.3)]
        if yes(f"{key}/span", 0.4):
            span = pick(f"{key}/span=", spans)
            numbers.append("50" if span == "20 to max" and self.syntax != "proto3" else span)
        quoted = names if self.is_edition else [f'"{name}"' for name in names]
        return [f"reserved {', '.join(items)};" for items in (numbers, quoted) if items]

    def _draw_field(self, at: str, name: str, number: int, *, in_oneof: bool) -> str:
        pick = self.a.pick_option
        family = pick(f"{at}/family", ["scalar"] * 5 + ["message", "enum", "map", "group"])
        kind = pick(f"{at}/scalar", SCALARS)
        if family == "map" and not in_oneof:
            value = pick(f"{at}/value", [kind, self._pick_name(at, self.messages), self._open_enum(at)])
            key = pick(f"{at}/key", ["int32", "string", "bool", "sint64"])
            shape = "map of string" if "string" in {key, value} else "map"
            return f"map<{key}, {value}> {name} = {number}{self._field_options(at, shape)};"
        if family == "message":
            kind = self._pick_name(at, self.messages)
        elif family == "enum":
            kind = self._pick_name(f"{at}/enum", self.enums)
        label = self._draw_label(at, in_oneof=in_oneof)
        if family == "group" and self.syntax in {"", "proto2"}:
            return f"{label}group G{name} = {number} {{ optional int32 a{pick(f'{at}/g', [1, 2])} = 1; }}"
        plain = not label.startswith("repeated") and not in_oneof
        options = self._field_options(at, kind, default=not label.startswith("repeated"), plain=plain)
        if label == "LEGACY ":
            label = ""
            options = " [features.field_presence = LEGACY_REQUIRED]"
        return f"{label}{kind} {name} = {number}{options};"

    def _pick_name(self, at: str, names: Sequence[str]) -> str:
        return self.a.pick_option(f"{at}/of-{len(names)}", names)

    def _open_enum(self, at: str) -> str:
        """Return a type for values of a map: an open enum or bool, because they need a zero as their default."""
        return self.enums[0] if self.a.answer_yes(f"{at}/enum-value", 0.5) else "bool"

    def _draw_label(self, at: str, *, in_oneof: bool) -> str:
        if in_oneof:
            return ""
        if self.is_edition:
            return self.a.pick_option(f"{at}/label", ["", "", "", "repeated ", "LEGACY "])
        if self.syntax == "proto3":
            return self.a.pick_option(f"{at}/label", ["", "", "optional ", "repeated "])
        return self.a.pick_option(f"{at}/label", ["optional ", "optional ", "required ", "repeated "])

    def _field_options(self, at: str, kind: str, *, default: bool = False, plain: bool = False) -> str:
        pick, yes = self.a.pick_option, self.a.answer_yes
        options = []
        if yes(f"{at}/json", 0.15):
            word = pick(f"{at}/json=", ["j", "k", "field"])
            options.append(f'json_name = "{word}{at[-1]}"')
        if kind.endswith("64") and yes(f"{at}/jstype", 0.5):
            options.append(f"jstype = {pick(f'{at}/jstype=', ['JS_NORMAL', 'JS_STRING', 'JS_NUMBER'])}")
        if kind in {"string", "bytes"} and self.syntax != "2024" and yes(f"{at}/ctype", 0.3):
            options.append(f"ctype = {pick(f'{at}/ctype=', ['STRING', 'CORD', 'STRING_PIECE'])}")
        if default and not self.implicit and kind in DEFAULTS and self.syntax != "proto3" and yes(f"{at}/default", 0.4):
            options.append(f"default = {pick(f'{at}/default=', DEFAULTS[kind])}")
        if yes(f"{at}/deprecated", 0.1):
            options.append("deprecated = true")
        features = self._draw_features(at, FIELD_FEATURES, 0.1)
        options += [
            text for text in features if self._fits_kind(text, kind, plain=plain and "default" not in str(options))
        ]
        return f" [{', '.join(options)}]" if options else ""

    @staticmethod
    def _fits_kind(feature: str, kind: str, *, plain: bool) -> bool:
        """Return whether a feature can be set for fields of a kind; only plain fields can have field presence."""
        if "utf8" in feature:
            return kind in {"string", "map of string"}
        if "string_type" in feature:
            return kind in {"string", "bytes"}
        local = kind.rpartition(".")[2]
        if "message_encoding" in feature:
            return kind not in DEFAULTS and "map" not in kind and not re.search(r"E\d|_E", local)
        return plain and kind in DEFAULTS

    def _draw_extend(self, key: str, message: str, slot: int = 0) -> list[str]:
        if self.syntax == "proto3":
            return []
        extensions = []
        for number in range(100 + 3 * slot, 103 + 3 * slot):
            at = f"{key}/{number}"
            if self.a.answer_yes(f"{at}/there", 0.5):
                name = f"{self.a.pick_option(f'{at}/name', ['ext', 'ext', 'ext', 'axt'])}_{self.prefix}_"
                kind = self.a.pick_option(
                    f"{at}/kind", [*SCALARS, self._pick_name(at, self.messages), self._pick_name(at, self.enums)]
                )
                label = self.a.pick_option(f"{at}/label", ["", "", "repeated "])
                if not self.is_edition and not label:
                    label = "optional "
                options = (
                    ""
                    if not self.a.answer_yes(f"{at}/default", 0.3) or label == "repeated "
                    else " [deprecated = true]"
                )
                if kind in DEFAULTS and label != "repeated " and self.a.answer_yes(f"{at}/default", 0.3):
                    options = f" [default = {self.a.pick_option(f'{at}/default=', DEFAULTS[kind])}]"
                extensions.append(f"{label}{kind} {name}{number} = {number}{options};")
        return [f"extend {message} {{", *extensions, "}"] if extensions else []

    # --- enums and services -----------------------------------------------------------------------------------------

    def _draw_enum(self, key: str, name: str, prefix: str = "") -> list[str]:
        pick, yes = self.a.pick_option, self.a.answer_yes
        prefix = prefix or f"{name}_".upper()
        closed = self.syntax in {"", "proto2"}
        lines = [f"enum {name} {{"]
        if yes(f"{key}/alias", 0.3):
            lines += ["option allow_alias = true;", f"{prefix}ZERO = 0;", f"{prefix}NULL = 0;"]
        elif closed and not key.endswith("E0") and yes(f"{key}/first", 0.2):
            lines += [f"{prefix}FIRST = {pick(f'{key}/first=', [7, 8])};", f"{prefix}ZERO = 0;"]
        else:
            lines.append(f"{prefix}{pick(f'{key}/zero', ['ZERO', 'ZERO', 'ZERO', 'NONE'])} = 0;")
        absent: list[tuple[int, str]] = []
        for number in range(1, 5):
            word = f"{prefix}{pick(f'{key}/{number}/word', ['A', 'A', 'A', 'B'])}{number}"
            if yes(f"{key}/{number}/there", 0.75):
                lines.append(f"{word} = {number};")
            else:
                absent.append((number, word))
        lines += self._draw_reserved(key, absent, ["20 to 29", "-5 to -1", "25 to max", "22"])
        lines[1:1] = [f"option {text};" for text in self._draw_features(key, ["json_format"], 0.15)]
        if key.endswith("E2") and not self.implicit:
            lines[1:1] = [f"option {text};" for text in self._draw_features(key, ["enum_type"], 0.4)]
        return [*lines, "}"]

    def _draw_service(self, key: str, name: str, messages: Sequence[str]) -> list[str]:
        pick, yes = self.a.pick_option, self.a.answer_yes
        lines = [f"service {name} {{"]
        for number in range(3):
            at = f"{key}/{number}"
            if yes(f"{at}/there", 0.8):
                kinds = [pick(f"{at}/{side}", [*messages[:2]]) for side in ("in", "out")]
                streams = ["stream " if yes(f"{at}/stream-{side}", 0.3) else "" for side in ("in", "out")]
                level = pick(f"{at}/level", ["", "", "NO_SIDE_EFFECTS", "IDEMPOTENT", "IDEMPOTENCY_UNKNOWN"])
                body = f"{{ option idempotency_level = {level}; }}" if level else ";"
                lines.append(f"rpc R{number} ({streams[0]}{kinds[0]}) returns ({streams[1]}{kinds[1]}) {body}")
        return [*lines, "}"]


def module_pair(number: int) -> tuple[dict[str, str], dict[str, str]]:
    """The files of a new and an old module, in the folder `p<number>`."""
    name = f"p{number}"
    share = (0.0, 0.003, 0.01, 0.05)[number % 4]
    old = Drawing(name, Answers(f"s{number}"))
    new = Drawing(name, Answers(f"s{number}", f"t{number}", share, FOCUS[number % len(FOCUS)]))
    return new.draw_files(), old.draw_files()
