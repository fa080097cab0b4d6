"""Hostile input, generated from a seed: events of payload 2.0, bodies, and raw HTTP requests.

Every generated text holds CANARY, so that one search finds whatever leaks of it.
"""

import base64
import json
import random
from typing import Any

from scripts.local.checkout import ROOT

CANARY = "canary-7f3a"
TOKENS = {"token-of-client-a": "client-a", "token-of-client-b": "client-b"}
BAD_INPUTS = ROOT / "tests" / "contract" / "bad_inputs"

# What breaks parsers, loggers, databases and terminals.
PIECES = (
    *(CANARY, "", " ", "\0", "\n", "\r\n", "\t", "\x1b[2J", "\x7f", "é", "💥", "\u202e", "\ufeff", "\ud800", "\udfff"),
    *("{", "}", "[" * 300, '"', "\\", "'", ";--", "%00", "%2F", "%", "../", "//", ".", "..", "/outcome"),
    *("outcomes/summary", "$1", "%s", "${jndi:ldap://x}", "<script>", "1e400", "NaN", "Infinity", "-0", "9" * 400),
    *("true", "null", "0x10", "\u0661", "A" * 5000),
)
FIELDS = (
    *("invoice_id", "failure_code", "attempt", "prior_failures", "outcome", "report_key", "client_id", "rail"),
    "__proto__",
)
METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "", "get", "BREW")
PATHS = (
    *("/decide", "/decisions/in_1", "/decisions/in_1/outcome", "/decisions/outcomes/summary", "/refusals", "/health"),
    *("/openapi.json", "/rails", "/rails/ach", "/rails/ach/codes/R01", "/", "", "/decisions/", "/decide/"),
)
QUERIES = (
    *("", "limit=50", "limit=0", "limit=\u0663", "cursor=AAAA", "kind=refusal", "limit=1&limit=2", "&&==", "%zz=%"),
    "a" * 4000,
)
HEADERS = (
    *("idempotency-key", "content-type", "if-none-match", "host", "x-forwarded-for", "cookie", "transfer-encoding"),
    "",
)


class Hostile:
    def __init__(self, seed: str) -> None:
        self.rng = random.Random(seed)  # noqa: S311
        self.bodies = [file.read_bytes() for file in sorted(BAD_INPUTS.glob("*/*")) if file.is_file()]

    def text(self) -> str:
        """A few pieces, and the canary among them."""
        pieces = [CANARY, *self.rng.choices(PIECES, k=self.rng.randrange(4))]
        self.rng.shuffle(pieces)
        return "".join(pieces)

    def value(self, depth: int = 0) -> Any:
        kind = self.rng.randrange(9 if depth < 3 else 6)
        if kind < 3:
            return self.text()
        if kind == 3:
            return self.rng.choice((0, 1, -1, 1000, 1001, 2**53, -(2**63), 10**50, 1.0, 1.5, -0.0, 1e308))
        if kind == 4:
            return self.rng.choice((True, False, None))
        if kind == 5:
            return self.rng.choice(("in_1", "card_expired", "paid", "ach:R01", "ACH:R01", "bacs:0", "a/b", "a" * 255))
        if kind == 6:
            return [self.value(depth + 1) for _ in range(self.rng.randrange(4))]
        return {self.rng.choice((*FIELDS, self.text())): self.value(depth + 1) for _ in range(self.rng.randrange(5))}

    def body(self) -> bytes:
        """A named bad input, one with a few bytes changed, an object that is nearly right, or noise."""
        kind = self.rng.randrange(10)
        if kind < 2:
            return self.rng.choice(self.bodies)
        if kind < 5:
            return self.mutated(self.rng.choice(self.bodies)[:20_000])
        if kind < 9:
            fields = {"invoice_id": f"in_{CANARY}", "failure_code": f"code_{CANARY}"} if kind < 7 else {}
            for _ in range(self.rng.randrange(3)):
                fields[self.rng.choice((*FIELDS, self.text()))] = self.value()
            return json.dumps(fields).encode()
        return self.rng.randbytes(self.rng.randrange(200)) + CANARY.encode()

    def mutated(self, data: bytes) -> bytes:
        """`data` with bytes changed, dropped, doubled, and the canary put in."""
        mutable = bytearray(data)
        for _ in range(self.rng.randrange(1, 6)):
            place = self.rng.randrange(len(mutable) + 1)
            match self.rng.randrange(4):
                case 0:
                    mutable[place : place + 1] = self.rng.randbytes(1)
                case 1:
                    del mutable[place : place + self.rng.randrange(1, 9)]
                case 2:
                    mutable[place:place] = mutable[place : place + 20]
                case _:
                    mutable[place:place] = self.rng.choice(PIECES).encode("utf-8", "surrogatepass")
        return bytes(mutable)

    def event(self) -> dict[str, Any]:
        """An event as API Gateway could make it: any text where it puts text, any key that it may leave out."""
        body = self.body()
        as_text = self.rng.random() < 0.5
        path = self.rng.choice(PATHS) if self.rng.random() < 0.8 else f"/decisions/{self.text()}"
        likely = ("POST", "/decide") if self.rng.random() < 0.6 else (self.rng.choice(METHODS), path)
        headers = {self.rng.choice((*HEADERS, self.text())): self.text() for _ in range(self.rng.randrange(4))}
        headers |= self.authorization()
        event: dict[str, Any] = {
            "version": "2.0",
            "rawPath": likely[1],
            "rawQueryString": self.rng.choice((*QUERIES, self.text())),
            "headers": headers,
            "requestContext": {
                "http": {"method": likely[0], "path": likely[1]},
                "requestId": "request",
                "stage": self.rng.choice(("$default", "$default", "prod")),
            },
            "body": body.decode("utf-8", "surrogateescape") if as_text else base64.b64encode(body).decode(),
            "isBase64Encoded": not as_text,
        }
        if self.rng.random() < 0.1:
            event["body"] = self.rng.choice((None, "", self.text()))
        if self.rng.random() < 0.05:
            del event[self.rng.choice(("body", "headers", "rawQueryString", "isBase64Encoded", "version"))]
        return event

    def authorization(self) -> dict[str, str]:
        """Mostly a good token: what stops at the door tests only the door."""
        kind = self.rng.random()
        if kind < 0.85:
            return {"authorization": f"Bearer {self.rng.choice(list(TOKENS))}"}
        if kind < 0.95:
            return {self.rng.choice(("authorization", "Authorization")): f"{self.rng.choice(PIECES)} {self.text()}"}
        return {}

    def request(self) -> bytes:
        """Raw HTTP/1.1: a good request with bytes changed, or one whose every part is generated."""
        body = self.body()
        token = self.rng.choice(list(TOKENS))
        good = (
            f"POST /decide HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        ).encode() + body
        if self.rng.random() < 0.6:
            return self.mutated(good)
        lines = [f"{self.rng.choice(METHODS)} {self.rng.choice(PATHS)}?{self.text()} HTTP/{self.rng.choice('0123')}.1"]
        lines += [f"{self.rng.choice((*HEADERS, self.text()))}: {self.text()}" for _ in range(self.rng.randrange(6))]
        return "\r\n".join([*lines, "Connection: close", "", ""]).encode("utf-8", "surrogatepass") + body
