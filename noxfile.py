"""The tests on every supported Python (`make test-all`, or `nox -s tests-3.12` for one), and coverage.

The interpreters are found as uv finds them: by name (`python3.13`) on the PATH. A missing one is an error.
"""

from __future__ import annotations

from pathlib import Path

import nox

PYTHONS = nox.project.python_versions(nox.project.load_toml("pyproject.toml"))
"""Those that the classifiers name."""
SIDE_BY_SIDE = ["-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0"]

nox.options.default_venv_backend = "uv"
nox.options.error_on_missing_interpreters = True
nox.options.sessions = ["tests"]


def install_requirements(session: nox.Session) -> None:
    """Install what the lock file names, and lend the session what the Makefile fetched for every Python."""
    session.run_install("uv", "pip", "install", "-q", "--require-hashes", "-r", "requirements/dev.lock")
    session.run_install("uv", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "-e", ".")
    for shared in ("suites", "tools"):
        link = Path(session.virtualenv.location, shared)
        if not link.is_symlink():
            link.symlink_to(Path(".venv", shared).resolve())
    session.env["PYTHONHASHSEED"] = "0"  # processes must agree on the order of sets to agree on the tests' names


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run what `make test` runs, or only the files and folders after `--`; they go to pytest."""
    install_requirements(session)
    session.run("python", "-m", "stele.spark.engines.jvm.build", "--if-stale", "--if-possible")
    if not Path(session.virtualenv.location, "spark.jsa").exists():  # it is there where nox reuses the environment
        session.run("python", "-m", "tests.support.spark_jvm")
    session.run("python", "-m", "pytest", "-q", "-m", "not servers", *(session.posargs or SIDE_BY_SIDE))


@nox.session(python="3.12")  # from 3.12 on counting lines slows nothing down
def coverage(session: nox.Session) -> None:
    """Write docs/reference/coverage.md: the lines that the tests without Spark run."""
    install_requirements(session)
    report = Path(session.create_tmp(), "coverage.json")
    folders = [f"tests/{name}" for name in ("unit", "property", "conformance", "system")]
    measured = ["--cov", f"--cov-report=json:{report}", "-m", "not servers"]
    session.run("python", "-m", "pytest", "-q", *SIDE_BY_SIDE, *measured, *folders)
    session.run("python", "-m", "tools.coverage_page", str(report))
