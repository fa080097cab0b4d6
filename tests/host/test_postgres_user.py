"""As root, the embedded Postgres runs as a user that the first start on a machine makes: two starts make one user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.local import postgres
from scripts.local.checkout import ROOT

# A start's own look-up of users, in a file instead of the system's, which notes that it looked.
STARTS = """
import pwd, sys
from pathlib import Path
from scripts.local import postgres

users, looked = Path(sys.argv[1]), Path(sys.argv[2])

def getpwnam(name):
    found = name in users.read_text().split()
    with looked.open("a") as file:
        print(found, file=file)
    if not found:
        raise KeyError(name)

pwd.getpwnam = getpwnam
postgres.ensure_user("somebody")
"""

# Adds the user once both starts have found that there is none: one looks twice, with the lock in between.
USERADD = """#!/bin/bash
echo "$@" >> {calls}
for _ in $(seq 2000); do
    [ "$(grep -c False {looked})" -ge 3 ] && break
    [ "$(wc -l < {calls})" -ge 2 ] && break
    read -rt 0.01 <> <(:)
done
echo somebody >> {users}
"""


def test_two_starts_at_once_make_one_user(tmp_path: Path) -> None:
    users, looked, calls = (tmp_path / name for name in ("users", "looked", "calls"))
    for file in (users, looked, calls):
        file.touch()
    useradd = tmp_path / "useradd"
    useradd.write_text(USERADD.format(users=users, looked=looked, calls=calls))
    useradd.chmod(0o755)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", STARTS, users, looked],
            cwd=ROOT,
            env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        )
        for _ in range(2)
    ]
    assert [process.wait(timeout=60) for process in started] == [0, 0]
    assert calls.read_text() == "-s /bin/bash somebody\n"


def test_a_user_that_can_not_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(postgres.PostgresError, match="useradd no-such-user failed: No such file"):
        postgres.ensure_user("no-such-user")
    (tmp_path / "useradd").write_text("#!/bin/sh\necho 'useradd: no room' >&2\nexit 1\n")
    (tmp_path / "useradd").chmod(0o755)
    with pytest.raises(postgres.PostgresError, match="failed: useradd: no room"):
        postgres.ensure_user("no-such-user")
