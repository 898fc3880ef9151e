"""The stable texts of a schema document, all of them Canonical XML 1.0 (attributes sorted, UTF-8, no declaration).

PRINTED     without comments, and without white space that only indents
NORMALIZED  the same: Canonical XML leaves no other freedom of style (the first global element is the root of
            tables, so even the order of definitions has a meaning here)
CANONICAL   without annotations, ids, and attributes of foreign namespaces: what validation needs
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from stele.core.ports import TextForm

if TYPE_CHECKING:
    from lxml import etree

    from stele.formats.xsd.parse import ParsedXsd

_XS: Final = "{http://www.w3.org/2001/XMLSchema}"
_VERSIONING: Final = "{http://www.w3.org/2007/XMLSchema-versioning}"
_PROSE: Final = (_XS + "documentation", _XS + "appinfo")


def canonicalize(parsed: ParsedXsd, form: TextForm) -> bytes:
    """Return the document in one of its stable texts."""
    from lxml import etree

    root = copy.deepcopy(parsed.root)
    if form is TextForm.CANONICAL:
        _remove_annotations(root)
    _drop_blanks(root)
    return etree.tostring(root, method="c14n", with_comments=False)


def _remove_annotations(root: etree._Element) -> None:
    """Remove annotations, ids and foreign attributes, which do not affect validation."""
    for annotation in list(root.iter(_XS + "annotation")):
        parent = annotation.getparent()
        if parent is not None:
            parent.remove(annotation)
    for element in root.iter(_XS + "*"):
        for name in map(str, list(element.attrib)):
            if name == "id" or (name.startswith("{") and not name.startswith(_VERSIONING)):
                del element.attrib[name]


def _drop_blanks(root: etree._Element) -> None:
    """Remove blank text, except in documentation and appinfo, which may hold mixed content."""
    for element in root.iter():
        if any(above.tag in _PROSE for above in element.iterancestors()):
            continue
        if isinstance(element.tag, str) and element.tag not in _PROSE and not (element.text or "").strip():
            element.text = None
        element.tail = None
