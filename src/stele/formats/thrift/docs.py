"""Documentation comments: the words inside, and the comment around them again."""

from __future__ import annotations

from textwrap import dedent


def clean(comment: str) -> str:
    """The words of a `/** … */` comment: no stars, no common indentation, no blank lines around."""
    inside = comment.replace("\r\n", "\n").replace("\r", "\n")[3:-2].strip("*")
    first, *rest = inside.split("\n")
    if rest and all(line.lstrip(" \t").startswith("*") for line in rest if line.strip(" \t")):
        rest = [line.lstrip(" \t").removeprefix("*").removeprefix(" ") for line in rest]
    else:
        rest = dedent("\n".join(rest)).split("\n")
    lines = [first.strip(" \t"), *(line.rstrip(" \t") for line in rest)]
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        del lines[-1]
    return "\n".join(lines)


def comment(doc: str, indent: str) -> list[str]:
    """The lines of the comment that holds a documentation; none for an empty one."""
    if not doc:
        return []
    lines = doc.split("\n")
    if len(lines) == 1 and doc == doc.strip(" \t*"):
        return [f"{indent}/** {doc} */"]
    return [f"{indent}/**", *(f"{indent} * {line}".rstrip(" \t") for line in lines), f"{indent} */"]
