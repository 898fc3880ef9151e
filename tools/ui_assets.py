"""Fetch the third-party files that pages of the registry load, from npm, and list their licences.

    python -m tools.ui_assets           write them to src/stele/ui/static again
    python -m tools.ui_assets --check   compare the present files with their recorded hashes; needs no network

A package is named with its version and the integrity that npm publishes for it; a file with its SHA-256. A change of a
version changes all of them in this file. The editor is one bundle of many packages, which `tools/ui_editor` builds from
its own source and a lock file.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

EDITOR: Final = Path(__file__).parent / "ui_editor"
"""Source of the editor, and the lock file of the packages it is made of."""
EDITOR_FILE: Final = "editor.js"
EDITOR_SHA256: Final = "16dc56173b1ed4d2287acd4b4d5b69c2fe5804b9d60d4a3430721000726acafa"
"""SHA-256 of the bundle. It changes with the source or the lock file."""
MOST_BYTES: Final = 250 * 1024
"""Largest size of all files that pages load, compressed, in bytes."""
_MIT_HOLDER: Final = "Copyright (C) 2018-2021 by Marijn Haverbeke <marijn@haverbeke.berlin> and others"
STATIC: Final = Path(__file__).parent.parent / "src" / "stele" / "ui" / "static"


_MIT_TEXT: Final = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""


class VendoredFile(NamedTuple):
    """A file of a package.

    source  its path in the package
    name    its name in this repository
    sha256  SHA-256 of its bytes
    """

    source: str
    name: str
    sha256: str


class VendoredPackage(NamedTuple):
    """An npm package whose files are in this repository.

    name       name of the package
    version    version of the package
    integrity  hash of its archive, as npm publishes it
    licence    SPDX identifier
    homepage   web page of the project
    files      files of the package that are in this repository
    """

    name: str
    version: str
    integrity: str
    licence: str
    homepage: str
    files: Sequence[VendoredFile]


PACKAGES: Final = (
    VendoredPackage(
        "htmx.org",
        "2.0.8",
        "sha512-fm297iru0iWsNJlBrjvtN7V9zjaxd+69Oqjh4F/Vq9Wwi2kFisLcrLCiv5oBX0KLfOX/zG8AUo9ROMU5XUB44Q==",
        "0BSD",
        "https://htmx.org",
        (
            VendoredFile(
                "package/dist/htmx.min.js",
                "htmx.js",
                "22283ef68cb7545914f0a88a1bdedc7256a703d1d580c1d255217d0a50d31313",
            ),
        ),
    ),
)


def fetch_package(package: VendoredPackage) -> dict[str, bytes]:
    """Return the files of a package by their names here. Raises `ValueError` for bytes with another hash."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", f"{package.name}@{package.version}"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).glob("*.tgz")
        kind, _, expected = package.integrity.partition("-")
        if base64.b64encode(hashlib.new(kind, archive.read_bytes()).digest()).decode() != expected:
            raise ValueError(f"{package.name} {package.version} is not the archive that is expected")
        with tarfile.open(archive) as packed:
            contents = {}
            for file in package.files:
                member = packed.extractfile(file.source)
                assert member is not None, file.source
                contents[file.name] = _require_hash(file, member.read())
            return contents


def _require_hash(file: VendoredFile, body: bytes) -> bytes:
    digest = hashlib.sha256(body).hexdigest()
    if digest != file.sha256:
        raise ValueError(f"{file.name} has SHA-256 {digest}, not {file.sha256}")
    return body


def build_editor() -> bytes:
    """Return the editor as one script. Raises `ValueError` for a bundle with another hash."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("editor.js", "package.json", "package-lock.json", ".npmrc"):
            shutil.copy(EDITOR / name, folder)
        subprocess.run(["npm", "ci", "--silent"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        options = ["--bundle", "--minify", "--format=iife", "--target=es2020", "--legal-comments=none"]
        command = ["node_modules/.bin/esbuild", "editor.js", *options, "--outfile=bundle.js", "--log-level=error"]
        subprocess.run(command, cwd=folder, check=True)
        return _require_hash(
            VendoredFile("bundle.js", EDITOR_FILE, EDITOR_SHA256), (Path(folder) / "bundle.js").read_bytes()
        )


def list_bundled_packages() -> list[tuple[str, str, str]]:
    """Return the name, version and licence of each package that the editor is made of, by name."""
    lock = json.loads((EDITOR / "package-lock.json").read_text(encoding="utf-8"))
    return [
        (name.removeprefix("node_modules/"), each["version"], each["license"])
        for name, each in sorted(lock["packages"].items())
        if name and "esbuild" not in name  # the bundler itself is not in the bundle
    ]


def build_licence_page() -> str:
    """Return the list of third-party files and their licences."""
    rows = [
        f"| {', '.join(f'`{file.name}`' for file in each.files)} | [{each.name}]({each.homepage}) | {each.version} "
        f"| {each.licence} |"
        for each in PACKAGES
    ]
    rows += [
        f"| `{EDITOR_FILE}` | {name} | {version} | {licence} |" for name, version, licence in list_bundled_packages()
    ]
    return "\n".join(
        [
            "# Third-party files",
            "",
            "The pages of the registry load these files, which others wrote; everything else here is Stele's own.",
            "",
            "| file | package | version | licence |",
            "|---|---|---|---|",
            *rows,
            "",
            "## MIT, for the packages in the editor",
            "",
            _MIT_HOLDER,
            "",
            _MIT_TEXT,
            "",
        ]
    )


def check_files() -> list[str]:
    """Return the defects of the present files, one sentence for each."""
    wrong = []
    bundle = VendoredFile("bundle.js", EDITOR_FILE, EDITOR_SHA256)
    for files in (*(package.files for package in PACKAGES), (bundle,)):
        for file in files:
            try:
                _require_hash(file, (STATIC / file.name).read_bytes())
            except (OSError, ValueError) as error:
                wrong.append(str(error))
    licences = STATIC / "LICENSES.md"
    if not licences.exists() or licences.read_text(encoding="utf-8") != build_licence_page():
        wrong.append(f"{licences.name} is not what this script writes")
    size = sum(len(gzip.compress(path.read_bytes(), 9)) for path in STATIC.iterdir())
    if size > MOST_BYTES:
        wrong.append(f"all files have {size} bytes compressed, more than {MOST_BYTES}")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only compare what is there")
    if not parser.parse_args(arguments).check:
        for package in PACKAGES:
            for name, body in fetch_package(package).items():
                (STATIC / name).write_bytes(body)
        (STATIC / EDITOR_FILE).write_bytes(build_editor())
        (STATIC / "LICENSES.md").write_text(build_licence_page(), encoding="utf-8")
    wrong = check_files()
    print("\n".join(wrong) or "all files are what they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
