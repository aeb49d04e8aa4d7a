"""Bearer tokens that stand in a file."""

from __future__ import annotations

import csv
import hashlib
import stat
from pathlib import Path

from lockstep.apiserver.auth.identity import User, authenticated


class TokenFile:
    """Static tokens, a line each in Kubernetes' own form: ``token,user,uid,"group1,group2"``.

    The file is read again when it has changed. Only digests of the tokens are kept and compared,
    so that neither memory nor timing tells a token.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at: tuple[int, int] | None = None
        self._users: dict[bytes, User] = {}

    def find(self, token: str) -> User | None:
        """Return whose token this is.

        Raises:
            PermissionError: Others than its owner may read the file.
            ValueError: A line of the file is not well formed.
        """
        self._refresh()
        return self._users.get(_digest(token))

    def _refresh(self) -> None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._users, self._read_at = {}, None
            return
        version = (found.st_mtime_ns, found.st_size)
        if version == self._read_at:
            return
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(f"{self._path} may be read by others: chmod 600 {self._path}")
        self._users = dict(_entry(row, self._path) for row in _rows(self._path))
        self._read_at = version


def _rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.reader(file) if row and not row[0].startswith("#")]


def _entry(row: list[str], path: Path) -> tuple[bytes, User]:
    columns = [column.strip() for column in row]
    if len(columns) < 3 or not columns[0] or not columns[1]:
        raise ValueError(f'{path}: a line is token,user,uid[,"group1,group2"]')
    groups = [group for group in ",".join(columns[3:]).split(",") if group]
    return _digest(columns[0]), authenticated(columns[1], groups, uid=columns[2])


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
