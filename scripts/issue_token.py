"""Issue an API token for a client, or revoke one. A token is shown once and kept nowhere: files hold its digest.

  make token CLIENT=acme TOKENS=tokens.json          print the token, and add its entry to the file
  make revoke DIGEST=sha256:… TOKENS=tokens.json     remove its entry

A file holds an object of digests to client ids, as DECISION_API_TOKEN takes it; one whose name ends in .tfvars.json
holds it as the Terraform variable `token_digests`. To rotate a token: issue a second one to the same client, deploy,
let the caller change over, revoke the first, deploy.
"""

import fcntl
import json
import os
import secrets
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paypilot.core.canonical import digest
from paypilot.settings import CLIENT_ID, DIGEST_ENTRY, InvalidTokens, read_tokens
from scripts.local import command

TOKEN_BYTES = 32  # 256 bits
TERRAFORM_VARIABLE = "token_digests"


class TokenError(Exception):
    """Nothing was issued or revoked; the message says why."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command.parser(__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("client", nargs="?", help=f"the client id: {CLIENT_ID.pattern}")
    what.add_argument("--revoke", metavar="DIGEST", help="remove this entry from the file")
    parser.add_argument("--into", metavar="FILE", type=Path, help="the JSON file of entries, made if it isn't there")
    options = parser.parse_args(arguments)
    try:
        if options.client is not None:
            issue(options.client, options.into)
        elif options.into is None:
            raise TokenError("--revoke needs --into FILE, the file to remove the entry from")
        else:
            revoke(options.revoke, options.into)
    except TokenError as error:
        sys.exit(f"issue_token: {error}")


def issue(client: str, file: Path | None) -> None:
    """Generate a token for `client`; its entry goes into `file` before the token is shown. Raises `TokenError`."""
    if not CLIENT_ID.fullmatch(client):
        raise TokenError(f"a client id is 1-63 of a-z 0-9 _ -, the first a letter or digit ({CLIENT_ID.pattern})")
    token = secrets.token_urlsafe(TOKEN_BYTES)
    entry = digest(token.encode())
    older: dict[str, None] = {}
    if file is not None:
        with entries_of(file) as entries:
            older = {digest_of(other): None for other, owner in entries.items() if owner == client}
            entries[entry] = client
    # Standard output is the token alone, so that it can go straight to where it is kept.
    show(token, entry, file)
    print("^ the token of", client, "- it is not shown again", file=sys.stderr)
    print(f"  its entry{f' in {file}' if file else ''}: {json.dumps({entry: client})}", file=sys.stderr)
    for other in older:
        print(f"  {client} still has {other}; once nobody uses that:", file=sys.stderr)
        print(f"    make revoke DIGEST={other} TOKENS={shlex.quote(str(file))}", file=sys.stderr)


def show(token: str, entry: str, file: Path | None) -> None:
    """Print the token. Raises `TokenError` where nobody reads standard output any more."""
    try:
        print(token, flush=True)
    except BrokenPipeError as error:
        # The token is still buffered, and would be written again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        again = f"; take it back: make revoke DIGEST={entry} TOKENS={shlex.quote(str(file))}" if file else ""
        raise TokenError(f"standard output is closed, so the token was shown to nobody{again}") from error


def revoke(entry: str, file: Path) -> None:
    """Remove the token of the digest `entry` (`sha256:` and 64 hex digits) from `file`, where it may be in the clear.

    Raises `TokenError`.
    """
    if not DIGEST_ENTRY.fullmatch(entry.lower()):
        raise TokenError("DIGEST is sha256: and 64 hex digits, as `make token` printed it")
    with entries_of(file) as entries:
        found = [token for token in entries if digest_of(token) == entry.lower()]
        if not found:
            raise TokenError(f"{file} has no such entry")
        client = entries[found[0]]
        for token in found:
            del entries[token]
    print(f"revoked a token of {client}, from the next deployment on", file=sys.stderr)
    if client not in entries.values():
        print(f"  {client} has no token left", file=sys.stderr)


def digest_of(token: str) -> str:
    """The digest of a file's entry, which is one, or a token in the clear that must never be printed."""
    return token.lower() if DIGEST_ENTRY.fullmatch(token) else digest(token.encode())


@contextmanager
def entries_of(file: Path) -> Iterator[dict[str, str]]:
    """The file's entries, written back at the end; another run waits meanwhile. Raises `TokenError`."""
    # A link stays one: what it points to is the file.
    real = Path(os.path.realpath(file))
    try:
        folder = os.open(real.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise TokenError(f"there is no folder {real.parent} to write in: {error.strerror}") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        document = _read(file, real)
        terraform = any(name.endswith(".tfvars.json") for name in (file.name, real.name))
        entries = document.setdefault(TERRAFORM_VARIABLE, {}) if terraform else document
        _check(file, entries)
        yield entries
        _replace(file, real, document)
    finally:
        os.close(folder)


def _read(file: Path, real: Path) -> dict[str, Any]:
    try:
        if not real.exists():
            return {}
        if not real.is_file():
            raise TokenError(f"{file} is not a file")
        document = json.loads(real.read_bytes(), object_pairs_hook=_each_once)
        _written(document)
    except OSError as error:
        raise TokenError(f"{file} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise TokenError(f"{file} can't be read as JSON; it was left as it is") from error
    if not isinstance(document, dict):
        raise TokenError(f"{file} is not a JSON object; it was left as it is")
    return document


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise TokenError("a name appears twice in the file, and may mean two things; it was left as it is")
    return fields


def _written(document: Mapping[str, object]) -> str:
    """The file's text. Raises `ValueError` or `RecursionError` for what JSON can't hold, or not so deep."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _check(file: Path, entries: object) -> None:
    """Check the entries by the function's own reader. An empty object is a file whose last token was revoked."""
    if not isinstance(entries, dict):
        raise TokenError(f"{TERRAFORM_VARIABLE} in {file} is not a JSON object; it was left as it is")
    if not entries:
        return
    try:
        read_tokens(json.dumps(entries))
    except InvalidTokens as error:
        raise TokenError(f"{file} holds what the function would refuse ({error}); it was left as it is") from error


def _replace(file: Path, real: Path, document: Mapping[str, object]) -> None:
    try:
        # A temporary file of this kind is its owner's alone (0600), and a reader sees the old file or the new one.
        descriptor, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
        with os.fdopen(descriptor, "w") as new:
            new.write(_written(document))
            new.flush()
            os.fsync(descriptor)
        Path(name).replace(real)
    except OSError as error:
        raise TokenError(f"{file} can't be written: {error.strerror}") from error


if __name__ == "__main__":
    main()
