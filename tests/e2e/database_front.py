"""The front of the harness's Postgres, since the emulator has no RDS: TLS, and the logins of RDS.

RDS takes an IAM token as a cleartext password over TLS, checks its signature and the caller's policies, and lets the
connection in. So does this, with botocore's own signature; then it passes the bytes on to a Postgres that trusts
loopback. The master user must give the password that the last RDS call set.
"""

import asyncio
import hmac
import ssl
import struct
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

from botocore.auth import SIGV4_TIMESTAMP, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102


class Refused(Exception):
    """The login is refused; the message is for the server's log, never for the client."""


def check_token(token: str, host: str, port: int, user: str, known: dict[str, dict[str, str]]) -> str:
    """The role whose credentials signed `token` for `user` at `host:port`. Raises `Refused`.

    `known` maps each access key to its `secret`, session `token` and `role`.
    """
    query = {name: values[0] for name, values in parse_qs(urlsplit(f"https://{token}").query).items()}
    try:
        access_key, _, region, *_ = query["X-Amz-Credential"].split("/")
        signed_at = datetime.strptime(query["X-Amz-Date"], SIGV4_TIMESTAMP).replace(tzinfo=UTC)
        signer = known[access_key]
        expires = int(query["X-Amz-Expires"])
        given = query["X-Amz-Signature"]
    except (KeyError, ValueError) as error:
        raise Refused(f"not a token of ours: {error!r}") from error
    if not 0 < expires <= 900 or datetime.now(UTC) > signed_at + timedelta(seconds=expires):
        raise Refused("the token has expired")
    credentials = Credentials(access_key, signer["secret"], signer["token"])
    auth = SigV4QueryAuth(credentials, "rds-db", region, expires=expires)
    request = AWSRequest(method="GET", url=f"https://{host}:{port}/?Action=connect&DBUser={user}")
    request.context["timestamp"] = query["X-Amz-Date"]
    auth._modify_request_before_signing(request)
    expected = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    if not hmac.compare_digest(expected, given):
        raise Refused("the signature is not botocore's for this user, host and port")
    return signer["role"]


class DatabaseFront:
    """Listens on `port`, asks `judge(user, password)`, which raises `Refused`, and passes on to `backend_port`."""

    def __init__(self, port: int, backend_port: int, tls: ssl.SSLContext, judge: Callable[[str, str], None]) -> None:
        self.port, self._backend_port, self._tls, self._judge = port, backend_port, tls, judge
        self.refusals: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="database front")

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", self.port)

    async def _close(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # the client went away, or distrusts the certificate: its own error tells it
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        encrypted = False
        while True:
            (length,) = struct.unpack("!i", await reader.readexactly(4))
            body = await reader.readexactly(length - 4)
            (code,) = struct.unpack_from("!i", body)
            if code == GSS_REQUEST:
                writer.write(b"N")
            elif code == SSL_REQUEST:
                writer.write(b"S")
                await writer.drain()
                await writer.start_tls(self._tls)
                encrypted = True
            elif code == CANCEL_REQUEST:
                _, to_backend = await asyncio.open_connection("127.0.0.1", self._backend_port)
                to_backend.write(struct.pack("!i", length) + body)
                to_backend.close()
                return
            else:
                break
        if not encrypted:
            self._refuse(writer, "28000", "no pg_hba.conf entry: no encryption", "no TLS")
            return
        words = body[4:].split(b"\0")
        user = dict(zip(words[::2], words[1::2], strict=False))[b"user"].decode()
        writer.write(b"R" + struct.pack("!ii", 8, 3))
        _, length = struct.unpack("!ci", await reader.readexactly(5))
        password = (await reader.readexactly(length - 4)).rstrip(b"\0").decode()
        try:
            await asyncio.to_thread(self._judge, user, password)
        except Refused as refusal:
            self._refuse(writer, "28P01", f'PAM authentication failed for user "{user}"', str(refusal))
            return
        from_backend, to_backend = await asyncio.open_connection("127.0.0.1", self._backend_port)
        to_backend.write(struct.pack("!i", len(body) + 4) + body)
        await asyncio.gather(_pass_on(reader, to_backend), _pass_on(from_backend, writer))

    def _refuse(self, writer: asyncio.StreamWriter, sqlstate: str, message: str, reason: str) -> None:
        self.refusals.append(reason)
        fields = b"".join(
            kind + text.encode() + b"\0" for kind, text in ((b"S", "FATAL"), (b"C", sqlstate), (b"M", message))
        )
        writer.write(b"E" + struct.pack("!i", len(fields) + 5) + fields + b"\0")


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
