"""Users in a file: which hashes are read, what checking costs, and changes while the server runs."""

from __future__ import annotations

import os
from pathlib import Path

import argon2
import bcrypt
import pytest

from stele.errors import InvalidRequest
from stele.server.authentication import password_file
from stele.server.authentication.credentials import UserPassword
from stele.server.authentication.password_file import PasswordFile, verify_password
from stele.service import watched_file


def bcrypt_line(user: str, password: str) -> str:
    """A line as `htpasswd -B` writes it, with little work."""
    return f"{user}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode().replace('$2b$', '$2y$')}\n"


def argon2_line(user: str, password: str) -> str:
    """A line with argon2id, with little work."""
    return f"{user}:{argon2.PasswordHasher(1, 8, 1).hash(password)}\n"


@pytest.fixture
def users(tmp_path: Path) -> PasswordFile:
    """Ann with bcrypt, Bob with argon2id."""
    path = tmp_path / "users"
    path.write_text("# users\n\n" + bcrypt_line("ann", "pass:word") + argon2_line("bob", "gehéim"), encoding="utf-8")
    return PasswordFile(path)


def test_both_kinds_of_hashes(users: PasswordFile) -> None:
    """The right password of the right user counts, and nothing else does."""
    assert users.check_password(UserPassword("ann", b"pass:word")) == users.find_hash("ann")
    assert users.check_password(UserPassword("bob", "gehéim".encode())) == users.find_hash("bob")
    for user, password in (("ann", b""), ("ann", "gehéim".encode()), ("bob", b"pass:word"), ("eve", b"pass:word")):
        assert users.check_password(UserPassword(user, password)) is None
    assert users.check_password(UserPassword("ann", b"pass:word\0")) is None
    assert users.check_password(UserPassword("bob", b"\xff\xfe")) is None
    assert users.check_password(UserPassword("ann", b"x" * 1000)) is None


def test_an_unknown_user_costs_as_much(users: PasswordFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """One real hash is computed whoever is named, and the password of the line that stands in lets nobody in."""
    checked: list[str] = []

    def count(text: str, password: bytes) -> bool:
        checked.append(text)
        return verify_password(text, password)

    monkeypatch.setattr(password_file, "verify_password", count)
    users.check_password(UserPassword("ann", b"wrong"))
    names = [f"nobody-{number}" for number in range(20)]
    for name in names:
        for password in (b"pass:word", "gehéim".encode()):
            assert users.check_password(UserPassword(name, password)) is None
    assert len(checked) == 41
    assert set(checked) == {users.find_hash("ann"), users.find_hash("bob")}, "both kinds stand in for unknown names"
    assert checked[1] == checked[2], "the same name costs the same every time"


def test_a_file_without_users(tmp_path: Path) -> None:
    """Nobody gets in, and a hash is computed all the same."""
    (tmp_path / "users").write_text("")
    assert PasswordFile(tmp_path / "users").check_password(UserPassword("ann", b"x")) is None


@pytest.mark.parametrize(
    "line",
    [
        "ann:plain",
        "ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=",
        "ann:$apr1$abc$abcdefghijklmnopqrstuv",
        "ann:$2y$31$" + "." * 53,
        "ann:$argon2i$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$RdescudvJCsgt3ub+b4dWRWJTmaaJObG",
        ":$2y$10$" + "." * 53,
    ],
)
def test_weak_or_endless_hashes_are_refused(line: str, tmp_path: Path) -> None:
    """The start ends with the number of the line, and the message does not repeat the hash."""
    (tmp_path / "users").write_text(f"\n{line}\n")
    with pytest.raises(InvalidRequest, match="line 2 of") as refused:
        PasswordFile(tmp_path / "users")
    assert line not in str(refused.value)
    with pytest.raises(InvalidRequest, match="No such file"):
        PasswordFile(tmp_path / "none")


def test_changes_count_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New users get in and removed ones do not; a broken or missing file changes nothing."""
    monkeypatch.setattr(watched_file, "_LOOK_SECONDS", 0.0)
    path = tmp_path / "users"
    path.write_text(bcrypt_line("ann", "one"))
    users = PasswordFile(path)
    before = users.find_hash("ann")
    path.write_text(bcrypt_line("bob", "two") + "\n")
    assert users.find_hash("ann") is None
    assert users.check_password(UserPassword("bob", b"two"))
    path.write_text("bob:plain\n")
    assert users.find_hash("bob")
    path.unlink()
    assert users.find_hash("bob")
    (tmp_path / "new").write_text(f"ann:{before}\n")
    os.replace(tmp_path / "new", path)
    assert users.check_password(UserPassword("ann", b"one")) == before
