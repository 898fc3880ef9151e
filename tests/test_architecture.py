"""Checks the layers of the architecture in the syntax tree of every module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.import_circles import build_import_graph, find_import_circles
from tools.source_trees import list_nodes, parse_source

SOURCE = Path(__file__).parent.parent / "src" / "stele"
MODULES = sorted(SOURCE.rglob("*.py"))

_DATA = {"errors", "core"}
MAY_IMPORT = {
    "errors": {"core"},  # for annotations only: see test_errors_import_nothing_at_run_time
    "core": {"errors"},
    "worker_process": set(),  # worker processes that can be killed
    "worker_limits": set(),  # limits that a worker process sets on itself before other imports
    "tls_verification": set(),  # the same rules for all TLS connections
    "templates": set(),  # renders templates of any package
    "pictures": _DATA | {"protocol", "templates"},  # pure functions from answers to drawings
    "formats": _DATA | {"worker_process", "worker_limits"},
    "wire": _DATA,
    "expressions": {"errors", "worker_process"},
    "protocol": _DATA,
    "storage": _DATA | {"tls_verification"},
    "service": _DATA | {"formats", "wire", "storage", "protocol", "worker_process", "tls_verification"},
    "apis": _DATA | {"service", "protocol", "templates"},
    "ui": _DATA
    | {"service", "protocol", "apis", "templates", "pictures", "migrate"},  # of apis: http, and native's errors
    "server": _DATA | {"storage", "service", "protocol", "apis", "ui", "templates", "replicate", "tls_verification"},
    "client": _DATA | {"formats", "wire", "protocol", "expressions", "pictures", "templates", "tls_verification"},
    "spark": _DATA | {"formats", "wire", "protocol", "client", "pictures", "templates"},
    "codegen": _DATA | {"formats", "wire", "protocol", "client"},
    "migrate": _DATA | {"formats", "service", "client", "protocol"},
    "replicate": _DATA | {"formats", "service", "client", "protocol", "migrate"},
    "review": _DATA | {"formats", "service", "client", "protocol"},
    "cli": _DATA
    | {
        "formats",
        "wire",
        "protocol",
        "client",
        "pictures",
        "spark",
        "codegen",
        "migrate",
        "replicate",
        "review",
        "service",
        "server",
        "tls_verification",
    },
}
MAX_FILE_LINES = 700
MAX_FUNCTION_LINES = 60
EXCUSE = "# Long because"


def part_of(path: Path) -> str:
    """Return the top-level part that a module belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def imports(path: Path) -> list[tuple[int, str]]:
    """Return (line, dotted name) of every import of a module, inside functions too."""
    imported_names: list[tuple[int, str]] = []
    for node in list_nodes(path):
        if isinstance(node, ast.Import):
            imported_names += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            imported_names += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return imported_names


def test_imports_go_downwards() -> None:
    """A module imports its own part and the parts below it, nothing else of Stele."""
    wrong = []
    for path in MODULES:
        part = part_of(path)
        if part in {"__init__", "testing"}:
            continue
        allowed = MAY_IMPORT[part] | {part}
        wrong += [
            f"{path.relative_to(SOURCE)}:{line} imports {name}, but {part} may import {sorted(allowed)} only"
            for line, name in imports(path)
            if name.startswith("stele.") and name.split(".")[1] not in allowed and name != "stele.__version__"
        ]
    assert not wrong, "\n".join(wrong)


def test_errors_import_nothing_at_run_time() -> None:
    """The error module is at the bottom of the layers: it imports from Stele only for type checkers."""
    tree = parse_source(SOURCE / "errors.py")
    outside = [
        node for node in tree.body if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stele")
    ]
    assert not outside


def test_testing_is_imported_by_nobody() -> None:
    """No module of the product imports the test helpers that are shipped to users."""
    users = [
        path.name for path in MODULES if part_of(path) != "testing" for _, n in imports(path) if "stele.testing" in n
    ]
    assert not users


def test_dialects_do_not_import_each_other() -> None:
    """A dialect imports the core, the service and the shared `http`, no other dialect; `http` imports no dialect."""
    for path in (SOURCE / "apis").rglob("*.py"):
        parts = path.relative_to(SOURCE / "apis").parts
        for line, name in imports(path):
            pieces = name.split(".")
            if len(parts) > 1 and pieces[:2] == ["stele", "apis"] and (SOURCE / "apis" / pieces[2]).is_dir():
                assert pieces[2] in {parts[0], "http"}, f"{path}:{line} imports {name}"


def test_pages_know_no_dialect() -> None:
    """The pages import from the dialects only the shared `http` and the errors of the native API."""
    for path in (SOURCE / "ui").rglob("*.py"):
        for line, name in imports(path):
            if name.startswith("stele.apis."):
                assert name.startswith(("stele.apis.http.", "stele.apis.native.errors.")), (
                    f"{path}:{line} imports {name}"
                )


DIALECT_SHAPE = frozenset(
    {"__init__", "app", "options", "params", "models", "errors", "translate", "operations", "routes"}
)
"""Modules and folders a dialect may have, in every dialect with the same meaning."""

DIALECT_EXTRAS = {
    "confluent": {
        "exporting": "runs exporters: how versions get into another registry that speaks this dialect",
        "acls": "Redpanda's access control entries, and the rules that they are",
        "guid": "names of schemas that depend on their content alone",
        "lists": "what the lists of this API hold, in their order",
        "known_lists": "lists as they were made last, of which a page is a part",
        "karapace": "what only Karapace says: findings about bodies, sentences about refused schemas",
        "names": "contexts, qualified subjects, versions and flags in paths and queries",
        "profiles": "what the releases and makers that speak this dialect do differently, as data",
        "metadata": "reserved properties and tags, which are part of a schema's metadata",
    },
    "cncf": {
        "responses": "responses with a document, and the headers that describe its version",
        "subscription_store": "validation and storage of subscriptions",
    },
    "native": {},
    "openschema": {},
    "pravega": {"acl_file": "the file of users and their permissions, and the rules that it has"},
    "rocketmq": {},
    "schema_repo": {"ids": "strategies that give schemas their ids"},
    "xregistry": {
        "attributes": "attributes of each kind of entity, and the check of their values",
        "bodies": "entities and documents in bodies, and attributes in headers beside a document",
        "capabilities": "what the server announces: capabilities and model",
        "commit": "drafts into one transaction",
        "filters": "the flags that choose and order entities, and paths into these",
        "pending": "entities that a request touches, as it leaves them",
        "responses": "answers with JSON and with documents",
        "serialize": "entities as JSON",
        "updates": "requests applied to entities",
        "validation": "checks of versions: rules about them, and what needs a schema language",
    },
}
"""Modules that only one dialect has, each with its contents."""


def test_dialects_have_one_shape() -> None:
    """Every dialect has the same files, so that a developer who knows one dialect finds them in the others."""
    folders = [path for path in (SOURCE / "apis").iterdir() if (path / "__init__.py").exists() and path.name != "http"]
    assert {folder.name for folder in folders} == set(DIALECT_EXTRAS)
    for folder in folders:
        names = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
        strange = names - DIALECT_SHAPE - set(DIALECT_EXTRAS[folder.name])
        assert not strange, f"{folder.name}: {strange} are no part of the shape of a dialect"
        missing = {"app", "errors", "routes"} - names
        assert not missing, f"{folder.name} lacks {missing}"
        unused = set(DIALECT_EXTRAS[folder.name]) - names
        assert not unused, f"{folder.name} has no {unused} any more"


def test_endpoints_begin_with_their_route() -> None:
    """The first line of an endpoint is a comment with its route."""
    wrong = []
    methods = ("# GET", "# POST", "# PUT", "# DELETE", "# PATCH", "# OPTIONS")
    for path in (path for pattern in ("routes.py", "routes/*.py") for path in (SOURCE / "apis").rglob(pattern)):
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in list_nodes(path):
            names = {getattr(getattr(row, "func", None), "id", "") for row in getattr(node, "decorator_list", ())}
            if isinstance(node, ast.AsyncFunctionDef) and names & {"get", "post", "put", "delete", "patch", "route"}:
                head = lines[node.lineno : node.body[0].lineno]
                if not any(line.strip().startswith(methods) for line in head):
                    wrong.append(f"{path.relative_to(SOURCE)}: {node.name}")
    assert not wrong, f"say the route in a comment first: {wrong}"


def test_core_has_no_dialect_words() -> None:
    """Identifiers and values of the core do not name the systems whose dialects Stele speaks."""
    dialects = (
        "confluent",
        "redpanda",
        "pravega",
        "rocketmq",
        "cncf",
        "azure",
        "openschema",
        "avro1124",
        "schema_repo",
        "xregistry",
    )
    for path in (SOURCE / "core").rglob("*.py"):
        nodes = list_nodes(path)
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings may name a system
        for node in nodes:
            if id(node) in docstrings:
                continue
            names = (getattr(node, kind, None) for kind in ("name", "id", "attr", "value"))
            name = next((name for name in names if isinstance(name, str)), "")
            assert not any(word in name.lower() for word in dialects), f"{path}: {name}"


def test_core_is_pure() -> None:
    """The core uses no clock, input or output, randomness or threads."""
    banned = {"asyncio", "datetime", "io", "os", "pathlib", "random", "secrets", "socket", "threading", "time", "uuid"}
    for path in (SOURCE / "core").rglob("*.py"):
        used = {name.split(".")[0] for _, name in imports(path)}
        assert not used & banned, f"{path.name} imports {used & banned}"


def test_files_and_functions_stay_small() -> None:
    """No file and no function is longer than the limits, unless a comment gives the reason."""
    long = []
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        if len(lines) > MAX_FILE_LINES and EXCUSE not in text:
            long.append(f"{path.relative_to(SOURCE)} has {len(lines)} lines")
        for node in list_nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                body = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                if length > MAX_FUNCTION_LINES and EXCUSE not in body:
                    long.append(f"{path.relative_to(SOURCE)}: {node.name} has {length} lines")
    assert not long, "\n".join(long)


def test_broad_catches_say_why() -> None:
    """`except Exception` occurs only where a process must survive a defect, or where the error is passed on."""
    # Each of these passes the error on.
    handing_on = {
        "server/app.py",
        "storage/job_thread.py",
        *(f"service/{name}.py" for name in ("process_worker", "registry", "threads", "write_jobs")),
    }
    allowed = {*handing_on, "expressions/worker.py", "replicate/worker.py"}
    for path in MODULES:
        if str(path.relative_to(SOURCE)) in allowed or part_of(path) == "testing":
            continue
        for node in list_nodes(path):
            if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise):
                name = getattr(node.type, "id", None)
                assert name not in {"Exception", "BaseException"}, f"{path}:{node.lineno}"
                assert node.type is not None, f"{path}:{node.lineno} catches everything"


# --- circles and ranks ----------------------------------------------------------------------------------------------


def test_no_import_circles() -> None:
    """No modules import each other in a circle, not even inside functions or for type checkers."""
    circles = [sorted(circle) for circle in find_import_circles(SOURCE)]
    assert not circles, f"cut these circles (python -m tools.import_circles prints them): {circles}"


CLIENT_RANKS = (
    (
        ("request", "types", "errors", "names", "drive", "snapshot", "serdes.framing"),
        "A request, a refusal, a name and a pinned schema are values: none of them needs a connection.",
    ),
    (
        ("cache", "exchange", "connection", "deadline", "response_body", "trace_context"),
        "How a request gets its answer is the same for all endpoints, so retries and caching know none of them.",
    ),
    (
        ("endpoints", "settings", "keys", "journal", "usage", "history", "workflows", "api"),
        "What may be asked is written down once, for clients that block and clients that are awaited.",
    ),
    (("sync", "aio", "rocketmq"), "A client puts endpoints and exchange together; nothing below knows who sends."),
    (("serdes.rules",), "Rules run on the values of every format, so they know no serializer."),
    (("serdes.steps", "serdes.schemas"), "What serializers and deserializers share comes before both."),
    (("serdes.serializer", "serdes.deserializer"), "The course of a record is the same for every format."),
    (("serdes.avro", "serdes.json", "serdes.protobuf"), "A format adds its encoding to that course."),
    (("serdes", "serdes.generic", "serdes.async_serdes"), "What is for any format knows them all."),
    (("",), "The package itself only says what is public, and nobody inside it imports the package."),
)
"""The modules of `stele.client`, lowest first, each rank with its reason: imports go downwards."""


def test_ranks_inside_client() -> None:
    """Imports inside the client go to the same rank or to a lower one."""
    ranks = {
        f"stele.client.{name}".rstrip("."): number for number, (names, _) in enumerate(CLIENT_RANKS) for name in names
    }
    for module, targets in build_import_graph(SOURCE).items():
        for target in targets:
            if not _is_below(module, "stele.client") or not _is_below(target, "stele.client"):
                continue
            rank, other = (
                ranks[max((name for name in ranks if _is_below(each, name)), key=len)] for each in (module, target)
            )
            assert other <= rank, f"{module} imports {target}. {CLIENT_RANKS[rank][1]}"


SPARK_RANKS = (
    (("engines",), "Engines turn frames into columns and back: they know schemas, and no registry, wire or DataFrame."),
    (
        ("registry", "session"),
        "What is read of a registry, the session and its failures serve all above and ask for nothing else.",
    ),
    (("wires",), "A wire takes records apart and looks ids up, so it needs the registry and the names of Arrow."),
    (("decode",), "Reading and writing columns puts engines, wires, rules and formats together."),
    (("functions",), "`from_registry` and `to_registry` are decoding and encoding as a user calls them on DataFrames."),
    (("types",), "Types of columns are made of the neutral model; nothing that decodes needs one of those."),
    (("datasource",), "Subjects as tables show their columns, which takes the types."),
    (("data_audit",), "Audits decode data at rest by the functions, and no pipeline is needed for that."),
    (("pipeline",), "A pipeline decodes streams, and reports on itself as audits do."),
    (("declarative", "stream_sql"), "Other ways to say a pipeline or a stream stand on the parts that run them."),
    (("magic", ""), "What notebooks load, and the package itself, only say what is public."),
)
"""The folders of `stele.spark`, lowest first, each rank with its reason: imports go downwards."""


def test_ranks_inside_spark() -> None:
    """Imports between the folders of the Spark package go to the same rank or to a lower one."""
    ranks = {name: number for number, (names, _) in enumerate(SPARK_RANKS) for name in names}
    for module, targets in build_import_graph(SOURCE).items():
        for target in targets:
            if _is_below(module, "stele.spark") and _is_below(target, "stele.spark") and target != "stele.spark":
                rank, other = (ranks[f"{each}..".split(".")[2]] for each in (module, target))
                assert other <= rank, f"{module} imports {target}. {SPARK_RANKS[rank][1]}"


FORMATS_RANKS = (
    (
        ("graph", "json_reader", "terms", "regex", "conversion"),
        "The neutral model and the tools beside it know no format, so that a plug-in meets every language in them.",
    ),
    (
        ("capabilities", "conversion.convert", "lint", "outline_builder", "registry", "rulesets"),
        "What a format can do is asked of the object that its name leads to: no module here imports a language.",
    ),
    (
        ("avro", "jsonschema", "opaque", "protobuf", "thrift", "xsd"),
        "A language imports no other language, so that each can be left out or replaced by a plug-in.",
    ),
)
"""The modules and folders of `stele.formats`, lowest first, each rank with its reason: imports go downwards."""

LANGUAGE_VIEWS = {
    **{name: name for name in ("arrow", "canonical", "codec", "compat", "from_model", "lint", "outline")},
    **{
        name: name for name in ("apicurio", "audit", "buf", "confluent", "containment", "karapace", "wire", "xregistry")
    },  # rulesets
    "binary_protocol": "codec",
    "decode": "codec",
    "encode": "codec",
    "to_model": "to_model",
    "flat_schema": "to_model",
    "imports": "imports",
    "declarations": "compat",
    "findings": "compat",
}
"""The view of a parsed schema that each file or folder of a schema language belongs to."""

LANGUAGE_RANKS = (
    ("parts", "Types, names and readers of one language come first: parsing and all views stand on them."),
    ("parse", "Parsing decides what is a schema, and no view of one can change that."),
    ("views", "A view can be understood, and replaced, without the other views."),
    ("door", "The package itself puts a format together, and nobody inside it imports the package."),
)
"""Import order inside the folder of a language, lowest first. `parts` are the modules that no other rank names."""

VIEWS_IN_VIEWS = {
    "avro.from_model": (
        "avro.to_model",
        "Writing undoes reading: attributes that carry what Avro lacks have one name.",
    ),
    "jsonschema.from_model": (
        "jsonschema.to_model",
        "Writing undoes reading: what a pattern says of a type is one table, read in both directions.",
    ),
    "jsonschema.containment": ("jsonschema.codec", "A witness is spelled as the codec spells data."),
    "jsonschema.karapace": (
        "jsonschema.confluent",
        "Two rulesets that compare keyword by keyword report changes by the same names.",
    ),
    "avro.outline": ("avro.canonical", "An outline prints attributes and defaults as canonical texts do."),
    "protobuf.outline": ("protobuf.canonical", "An outline spells ranges and visibility as canonical texts do."),
    "thrift.outline": ("thrift.canonical", "A comparison of versions must not report what normalizing takes away."),
    "xsd.arrow": ("xsd.outline", "A column and a field that may be there several times are one decision."),
    "xsd.findings": ("xsd.codec", "A witness counts only if the codec finds it valid."),
    "xsd.to_model": ("xsd.outline", "Documentation is read from annotations in one place."),
}
"""Views that use another view, each with the reason; the key covers the modules below it, too."""


def _imports_in_formats() -> Iterator[tuple[str, str]]:
    """Yield (module, imported module) of imports inside `stele.formats`, both without that prefix."""
    prefix = "stele.formats."
    for module, targets in build_import_graph(SOURCE).items():
        for target in targets:
            if module.startswith(prefix) and target.startswith(prefix):
                yield module.removeprefix(prefix), target.removeprefix(prefix)


def _is_below(module: str, folder: str) -> bool:
    return f"{module}.".startswith(f"{folder}.")


def _rank_in_formats(module: str) -> int:
    """Return the index in `FORMATS_RANKS` of the rank with the longest name that covers the module."""
    named = [
        (len(name), rank) for rank, (names, _) in enumerate(FORMATS_RANKS) for name in names if _is_below(module, name)
    ]
    assert named, f"give {module} a rank in FORMATS_RANKS"
    return max(named)[1]


def _place_in_language(module: str) -> tuple[int, str]:
    """Return the index of a module's rank in `LANGUAGE_RANKS`, and the view it belongs to, or ''."""
    head = f"{module}..".split(".")[1]
    if head in LANGUAGE_VIEWS:
        return 2, LANGUAGE_VIEWS[head]
    return 1 if head == "parse" else 0 if head else 3, ""


def test_ranks_inside_formats() -> None:
    """Shared modules of formats import no language, and a language imports no other one."""
    for module, target in _imports_in_formats():
        rank, other = _rank_in_formats(module), _rank_in_formats(target)
        assert other <= rank, f"{module} imports {target}. {FORMATS_RANKS[rank][1]}"
        if rank == other == len(FORMATS_RANKS) - 1:
            assert module.split(".")[0] == target.split(".")[0], f"{module} imports {target}. {FORMATS_RANKS[rank][1]}"


def test_ranks_inside_languages() -> None:
    """Inside a language, parsing imports no view, and a view imports no other view except those in `VIEWS_IN_VIEWS`."""
    languages = FORMATS_RANKS[-1][0]
    used = set()
    for module, target in _imports_in_formats():
        if module.split(".")[0] not in languages or target.split(".")[0] not in languages:
            continue
        (rank, view), (other, used_view) = _place_in_language(module), _place_in_language(target)
        reason = f"{module} imports {target}. {LANGUAGE_RANKS[rank][1]}"
        assert other <= rank, reason
        if view and used_view and view != used_view:
            known = {
                key for key, (uses, _) in VIEWS_IN_VIEWS.items() if _is_below(module, key) and _is_below(target, uses)
            }
            assert known, reason
            used |= known
    assert used == set(VIEWS_IN_VIEWS), f"remove from VIEWS_IN_VIEWS: {set(VIEWS_IN_VIEWS) - used}"
