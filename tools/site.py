"""Builds the documentation site from the same pages that users read in the repository.

The pages of docs/ and those at the root are copied to a folder of their own. Links that leave the copied pages become
links to the repository. Then `zensical build --strict` makes the site, which fails on a broken link, and the version
switch gets its list of versions.

    python -m tools.site OUT [--address URL]
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import stele

ROOT = Path(__file__).parent.parent
PICTURES = Path("pictures")
"""The folder of pictures, in `docs` and on the site."""
ROOT_PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
MORE_PAGES = ("examples/walkthrough/README.md", "examples/table-schema/README.md", "fuzz/README.md")
LINK = re.compile(r"(\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?(\))")
HIDDEN = re.compile(r"^<!-- (?:check\n.*?^-->|exits with \d+ -->|needs a broker -->)\n", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
SECTIONS = {
    "Tutorial": ["tutorial/ten-minutes.md", "project/examples/walkthrough/README.md"],
    "How-to": "how-to",
    "Reference": "reference",
    "Explanation": "explanation",
    "Facts": "protocols",
    "Decisions": "adr",
    "Project": "project",
}


def list_pages() -> dict[Path, Path]:
    """Return the path in the site of each page of the repository."""
    pages = {path: path.relative_to(ROOT / "docs") for path in sorted((ROOT / "docs").rglob("*.md"))}
    pages |= {ROOT / name: Path("project") / name for name in (*ROOT_PAGES, *MORE_PAGES)}
    pages[ROOT / "docs" / "README.md"] = Path("index.md")
    pages[ROOT / "README.md"] = Path("project", "README.md")
    return pages


def rewrite_links(text: str, page: Path, pages: dict[Path, Path], repository: str) -> str:
    """Return the text of a page with links that work in the site.

    Args:
        text: Markdown.
        page: The page's file in the repository.
        pages: See `list_pages`.
        repository: URL below which the repository's files are shown.
    """

    def rewrite(match: re.Match[str]) -> str:
        before, target, anchor, after = match[1], match[2], match[3] or "", match[4]
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        file = (page.parent / target).resolve()
        place = PICTURES / file.name if file.parent == ROOT / "docs" / PICTURES else pages.get(file)
        if place is not None:
            ups = len(pages[page].parent.parts)
            return f"{before}{'../' * ups}{place.as_posix()}{anchor}{after}"
        return f"{before}{repository}/{file.relative_to(ROOT).as_posix()}{anchor}{after}"

    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else LINK.sub(rewrite, part) for part in parts)


def write_sources(folder: Path, repository: str) -> None:
    """Write the pages of the site as Markdown, and the pictures, into an empty folder."""
    pages = list_pages()
    for page, place in pages.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        text = HIDDEN.sub("", page.read_text(encoding="utf-8"))
        target.write_text(rewrite_links(text, page, pages, repository), encoding="utf-8")
    shutil.copytree(ROOT / "docs" / PICTURES, folder / PICTURES, dirs_exist_ok=True)


def describe_site(address: str) -> dict[str, object]:
    """Return the settings of the site generator."""
    navigation: list[object] = [{"Start": "index.md"}]
    places = sorted(place.as_posix() for place in list_pages().values())
    for title, what in SECTIONS.items():
        inside = what if isinstance(what, list) else [place for place in places if place.startswith(f"{what}/")]
        listed = [place for place in inside if place not in SECTIONS["Tutorial"] or title == "Tutorial"]
        navigation.append({title: listed})
    return {
        "site_name": "Stele",
        "site_url": address,
        "docs_dir": "pages",
        "site_dir": "site",
        "nav": navigation,
        "theme": {
            "name": "material",
            "features": ["navigation.tabs", "navigation.top", "search.highlight", "content.code.copy", "toc.follow"],
            "palette": [
                {
                    "media": "(prefers-color-scheme: light)",
                    "scheme": "default",
                    "toggle": {"icon": "lucide/sun", "name": "Dark"},
                },
                {
                    "media": "(prefers-color-scheme: dark)",
                    "scheme": "slate",
                    "toggle": {"icon": "lucide/moon", "name": "Light"},
                },
            ],
        },
        "extra": {"version": {"provider": "mike"}},
        "markdown_extensions": [
            "tables",
            "fenced_code",
            "attr_list",
            "md_in_html",
            "pymdownx.superfences",
            {"toc": {"permalink": True}},
        ],
    }


def add_version(out: Path, version: str) -> None:
    """Put a version on the list that the version switch reads, newest first; `latest` is the newest one."""
    path = out / "versions.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    others = [each["version"] for each in known if each["version"] != version]
    ordered = sorted(
        [*others, version], key=lambda text: [int(part) for part in re.findall(r"\d+", text)], reverse=True
    )
    rows = [{"version": each, "title": each, "aliases": ["latest"] if each == ordered[0] else []} for each in ordered]
    path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    moved = (
        '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}/"><a href="{0}/">{0}</a>\n'
    )
    (out / "index.html").write_text(moved.format(ordered[0]), encoding="utf-8")


def main() -> int:
    """Build the site of this version into a folder that may hold other versions."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, help="folder of the site, with one folder for each version")
    parser.add_argument("--address", default="http://127.0.0.1:8000", help="address of the site")
    parser.add_argument("--repository", default="https://example.com/stele/blob/main", help="address of the files")
    parser.add_argument("--generator", default="zensical", help="the program that makes the site")
    arguments = parser.parse_args()
    version = ".".join(stele.__version__.split(".")[:2])
    work = arguments.out / ".work"
    shutil.rmtree(work, ignore_errors=True)
    write_sources(work / "pages", arguments.repository)
    settings = describe_site(f"{arguments.address}/{version}/")
    # JSON is valid YAML and needs no library.
    (work / "mkdocs.yml").write_text(json.dumps(settings, indent=2), encoding="utf-8")
    done = subprocess.run([arguments.generator, "build", "--strict"], cwd=work, check=False)
    if done.returncode:
        return done.returncode
    shutil.rmtree(arguments.out / version, ignore_errors=True)
    shutil.move(work / "site", arguments.out / version)
    shutil.rmtree(work)
    add_version(arguments.out, version)
    print(f"{arguments.out / version}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
