"""The tests on every supported Python: `make test-all`, or `nox -s tests-3.12` for one."""

from __future__ import annotations

from pathlib import Path

import nox

PYTHONS = ["3.11", "3.12", "3.13"]

nox.options.default_venv_backend = "uv"
nox.options.error_on_missing_interpreters = True


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Install the locked requirements and run what `make test` runs; arguments after `--` go to pytest."""
    session.run_install("uv", "pip", "install", "-q", "--require-hashes", "-r", "requirements/dev.lock")
    session.run_install("uv", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "-e", ".")
    for shared in ("suites", "tools"):  # the Makefile fetched them; they serve every Python
        link = Path(session.virtualenv.location, shared)
        if not link.is_symlink():
            link.symlink_to(Path(".venv", shared).resolve())
    session.env["PYTHONHASHSEED"] = "0"  # processes must agree on the order of sets to agree on the tests' names
    session.run("python", "-m", "stele.spark.engines.jvm.build", "--if-stale", "--if-possible")
    session.run("python", "-m", "tests.support.spark_jvm")
    arguments = session.posargs or [
        "-m",
        "not servers",
        "-n",
        "2",
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
        "--max-worker-restart",
        "2",
    ]
    session.run("python", "-m", "pytest", "-q", *arguments)
