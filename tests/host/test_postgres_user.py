"""As root, the embedded Postgres runs as a user that the first start on a machine makes: two starts make one user."""

import fcntl
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scripts.local import postgres
from support.slice import until


def test_two_starts_at_once_make_one_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bool] = []
    made = threading.Event()

    def user_exists(name: str) -> bool:
        looked.append(made.is_set())
        return looked[-1]

    monkeypatch.setattr(postgres, "USERS", tmp_path)
    monkeypatch.setattr(postgres, "_user_exists", user_exists)
    monkeypatch.setenv("PATH", str(tmp_path))  # no useradd: the second start may not come to it
    first, inode = os.open(tmp_path, os.O_RDONLY), tmp_path.stat().st_ino
    fcntl.flock(first, fcntl.LOCK_EX)
    with ThreadPoolExecutor() as pool:
        second = pool.submit(postgres.ensure_user, "somebody")
        until(lambda: re.search(rf"-> FLOCK .*:{inode} ", Path("/proc/locks").read_text()), seconds=5)
        made.set()
        os.close(first)
        second.result()
    assert looked == [False, True]


def test_a_user_that_can_not_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(postgres.PostgresError, match="useradd no-such-user failed: No such file"):
        postgres.ensure_user("no-such-user")
    (tmp_path / "useradd").write_text("#!/bin/sh\necho 'useradd: no room' >&2\nexit 1\n")
    (tmp_path / "useradd").chmod(0o755)
    with pytest.raises(postgres.PostgresError, match="failed: useradd: no room"):
        postgres.ensure_user("no-such-user")
