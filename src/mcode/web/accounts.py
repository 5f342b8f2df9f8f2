"""Who may come in: accounts with passwords, and the sessions they open."""

from __future__ import annotations

import hashlib
import secrets
import time

from sqlalchemy import delete, func, insert, select

from mcode.errors import ParameterError
from mcode.web import tables as t
from mcode.web.database import Database, now

SESSION = 12 * 3600.0  # seconds
SHORTEST = 10  # characters of a password
MOST_FAILURES, FAILURE_WINDOW = 10, 300.0


def _digest(password: str, salt: str) -> str:
    return hashlib.scrypt(password.encode(), salt=bytes.fromhex(salt), n=2**14, r=8, p=1).hex()


def add_account(database: Database, name: str, password: str) -> None:
    """Make an account, or give an existing one a new password."""
    if not name.strip() or len(name) > 80 or not name.isprintable():
        raise ParameterError("the name", name, "printable, with 1 to 80 characters")
    if len(password) < SHORTEST:
        raise ParameterError("the password", "*" * len(password), f"at least {SHORTEST} characters long")
    salt = secrets.token_hex(16)
    with database.write() as connection:
        connection.execute(delete(t.accounts).where(t.accounts.c.name == name))
        connection.execute(delete(t.sessions).where(t.sessions.c.name == name))
        connection.execute(insert(t.accounts).values(name=name, salt=salt, digest=_digest(password, salt)))


def n_accounts(database: Database) -> int:
    """Return how many accounts there are."""
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(t.accounts)).scalar() or 0)


class Doorkeeper:
    """Lets accounts in by their password; who fails too often has to wait."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._failures: dict[str, list[float]] = {}

    def log_in(self, name: str, password: str) -> str | None:
        """Return the token of a new session; None where name or password are wrong, or where too many were."""
        recent = [when for when in self._failures.get(name, []) if when > time.monotonic() - FAILURE_WINDOW]
        if len(recent) >= MOST_FAILURES:
            return None
        with self._database.read() as connection:
            found = connection.execute(select(t.accounts).where(t.accounts.c.name == name)).first()
        salt = found.salt if found is not None else "00" * 16  # an unknown name takes as long as a known one
        right = secrets.compare_digest(_digest(password, salt), found.digest if found is not None else "")
        if not right:
            self._failures[name] = [*recent, time.monotonic()]
            if len(self._failures) > 10_000:
                self._failures.clear()
            return None
        self._failures.pop(name, None)
        token = secrets.token_urlsafe(32)
        with self._database.write() as connection:
            connection.execute(delete(t.sessions).where(t.sessions.c.until < now()))
            connection.execute(insert(t.sessions).values(digest=hashed(token), name=name, until=now() + SESSION))
        return token

    def who(self, token: str) -> str | None:
        """Return whose session a token is."""
        c = t.sessions.c
        with self._database.read() as connection:
            asked = select(c.name).where(c.digest == hashed(token), c.until > now())
            name: str | None = connection.execute(asked).scalar()
        return name

    def log_out(self, token: str) -> None:
        """End a session."""
        with self._database.write() as connection:
            connection.execute(delete(t.sessions).where(t.sessions.c.digest == hashed(token)))


def hashed(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
