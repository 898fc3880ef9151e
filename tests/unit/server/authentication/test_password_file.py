"""Users in files: accepted hashes, groups, the cost of verification, and changes while the server runs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import argon2
import bcrypt
import pytest

from stele.errors import InvalidRequest
from stele.server.authentication import users as user_files
from stele.server.authentication.credentials import UserPassword
from stele.server.authentication.password_file import verify_password
from stele.server.authentication.users import User, UserFiles
from stele.service import watched_file


def bcrypt_line(user: str, password: str) -> str:
    """Return a line as written by `htpasswd -B`, with a low cost."""
    return f"{user}:{bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode().replace('$2b$', '$2y$')}\n"


def argon2_line(user: str, password: str) -> str:
    """Return a line with argon2id, with a low cost."""
    return f"{user}:{argon2.PasswordHasher(1, 8, 1).hash(password)}\n"


@pytest.fixture
def users(tmp_path: Path) -> UserFiles:
    """Ann with bcrypt, Bob with argon2id."""
    path = tmp_path / "users"
    path.write_text("# users\n\n" + bcrypt_line("ann", "pass:word") + argon2_line("bob", "gehéim"), encoding="utf-8")
    return UserFiles(path)


def test_both_kinds_of_hashes(users: UserFiles) -> None:
    """Only the right password of the right user is accepted."""
    assert users.check_password(UserPassword("ann", b"pass:word")) == users.find_user("ann")
    assert users.check_password(UserPassword("bob", "gehéim".encode())) == users.find_user("bob")
    for user, password in (("ann", b""), ("ann", "gehéim".encode()), ("bob", b"pass:word"), ("eve", b"pass:word")):
        assert users.check_password(UserPassword(user, password)) is None
    assert users.check_password(UserPassword("ann", b"pass:word\0")) is None
    assert users.check_password(UserPassword("bob", b"\xff\xfe")) is None
    assert users.check_password(UserPassword("ann", b"x" * 1000)) is None


def test_an_unknown_user_costs_as_much(users: UserFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """One real hash is computed for any name, and the password of that hash is not accepted for an unknown name."""
    checked: list[str] = []

    def count(text: str, password: bytes) -> bool:
        checked.append(text)
        return verify_password(text, password)

    monkeypatch.setattr(user_files, "verify_password", count)
    users.check_password(UserPassword("ann", b"wrong"))
    names = [f"nobody-{number}" for number in range(20)]
    for name in names:
        for password in (b"pass:word", "gehéim".encode()):
            assert users.check_password(UserPassword(name, password)) is None
    assert len(checked) == 41
    ann, bob = users.find_user("ann"), users.find_user("bob")
    assert ann is not None
    assert bob is not None
    assert set(checked) == {ann.password_hash, bob.password_hash}, "both kinds stand in for unknown names"
    assert checked[1] == checked[2], "the same name costs the same every time"


def test_a_file_without_users(tmp_path: Path) -> None:
    """With an empty file nothing is accepted, and a hash is computed all the same."""
    (tmp_path / "users").write_text("")
    assert UserFiles(tmp_path / "users").check_password(UserPassword("ann", b"x")) is None


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
    """A weak or too costly hash raises an error at the start with the number of the line, without the hash."""
    (tmp_path / "users").write_text(f"\n{line}\n")
    with pytest.raises(InvalidRequest, match="line 2 of") as refused:
        UserFiles(tmp_path / "users")
    assert line not in str(refused.value)
    with pytest.raises(InvalidRequest, match="No such file"):
        UserFiles(tmp_path / "none")


def test_changes_count_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New users are accepted and removed ones refused at once; an invalid or missing file changes nothing."""
    monkeypatch.setattr(watched_file, "_LOOK_SECONDS", 0.0)
    path = tmp_path / "users"
    path.write_text(bcrypt_line("ann", "one"))
    users = UserFiles(path)
    before = users.find_user("ann")
    assert before is not None
    path.write_text(bcrypt_line("bob", "two") + "\n")
    assert users.find_user("ann") is None
    assert users.check_password(UserPassword("bob", b"two"))
    path.write_text("bob:plain\n")
    assert users.find_user("bob")
    path.unlink()
    assert users.find_user("bob")
    (tmp_path / "new").write_text(f"ann:{before.password_hash}\n")
    os.replace(tmp_path / "new", path)
    assert users.check_password(UserPassword("ann", b"one")) == before


PRAVEGA_HASH = (
    "353030303a633132666135376233353937356534613430383430373939343839333733616463363433616532363238653930346230333035"
    "393666643961316264616661393a3639376330623663396634343864643262663335326463653062613965336439613864306264323839633"
    "037626166663563613166333733653631383732353134643961303435613237653130353633633031653364366565316434626534656565"
    "636335663666306465663064376165313765646263656638373764396361"
)
"""Hash of the password 1111_aaaa by Pravega's own tool, as in its documentation."""


def pravega_hash(password: str, iterations: int = 5) -> str:
    """Return a hash in Pravega's form, with a low cost."""
    key = hashlib.pbkdf2_hmac("sha256", password.encode(), b"salt of a test", iterations, 64)
    return f"{iterations}:{b'salt of a test'.hex()}:{key.hex()}".encode().hex()


def test_pravegas_passwords(tmp_path: Path) -> None:
    """Hashes of Pravega's tool are accepted as well as those of htpasswd; a user without a hash cannot log in."""
    path = tmp_path / "acl"
    bcrypted = bcrypt_line("bob", "two").strip()
    path.write_text(f"admin:{PRAVEGA_HASH}:*,READ_UPDATE;\n{bcrypted}:prn::/,READ\nguest::prn::/,READ\n")
    users = UserFiles(None, None, path)
    assert users.check_password(UserPassword("admin", b"1111_aaaa")) == User(PRAVEGA_HASH)
    assert users.check_password(UserPassword("bob", b"two"))
    for user, password in (("admin", b"1111_aaab"), ("admin", b""), ("guest", b""), ("bob", b"1111_aaaa")):
        assert users.check_password(UserPassword(user, password)) is None


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        PRAVEGA_HASH[:-1],
        PRAVEGA_HASH[:-2] + "zz",
        b"99999999:00112233445566778899:00112233445566778899aabbccddeeff".hex(),
        b"5000:00:00112233445566778899aabbccddeeff0011223344556677889900".hex(),
        "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=",
    ],
)
def test_other_hashes_of_pravegas_file_are_refused(text: str, tmp_path: Path) -> None:
    """Plain passwords, cut and too costly hashes raise an error at the start with the user's name, without the hash."""
    (tmp_path / "acl").write_text(f"admin:{text}:*,READ\n")
    with pytest.raises(InvalidRequest, match="the hash of admin") as refused:
        UserFiles(None, None, tmp_path / "acl")
    assert text not in str(refused.value)


def test_a_user_stands_in_one_file(tmp_path: Path) -> None:
    """A user in both files is refused, since the name would have two passwords."""
    (tmp_path / "users").write_text(bcrypt_line("ann", "one"))
    (tmp_path / "acl").write_text(f"ann:{pravega_hash('two')}:*,READ\n")
    with pytest.raises(InvalidRequest, match="ann is a user in password_file and in pravega_acl"):
        UserFiles(tmp_path / "users", None, tmp_path / "acl")


def test_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are those that are in the file now; an invalid file leaves them unchanged."""
    monkeypatch.setattr(watched_file, "_LOOK_SECONDS", 0.0)
    (tmp_path / "users").write_text(bcrypt_line("ann", "one") + bcrypt_line("bob", "two"))
    groups = tmp_path / "groups"
    groups.write_text("# teams\n\ndev: ann bob\nops:ann\ndev: eve\n")
    users = UserFiles(tmp_path / "users", groups)

    def find_groups(name: str) -> set[str]:
        user = users.find_user(name)
        assert user is not None
        return set(user.groups)

    assert find_groups("ann") == {"dev", "ops"}
    assert find_groups("bob") == {"dev"}
    assert users.find_user("eve") is None, "a member without a password is no user"
    groups.write_text("dev: bob bob\n")
    assert find_groups("ann") == set()
    groups.write_text("no colon here\n")
    assert find_groups("bob") == {"dev"}
    with pytest.raises(InvalidRequest, match=r"group_file: line 1 of .* is not `group: user user …`"):
        UserFiles(tmp_path / "users", groups)
