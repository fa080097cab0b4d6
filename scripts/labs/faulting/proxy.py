"""A TCP proxy on loopback that can break what passes through it."""

import contextlib
import itertools
import random
import socket
import struct
import threading
from collections.abc import Callable
from typing import Literal

Mode = Literal["pass", "black-hole", "reset", "lose-answers"]
HOST = "127.0.0.1"
# What Postgres sends while a caller logs in by SCRAM: its offer, its challenge, its welcome.
LOGIN_ANSWERS = 3


class Proxy:
    """Forwards to `target()` on loopback. `mode` may change at any time.

    black-hole keeps every byte until the mode changes; reset answers the caller's next bytes by a TCP reset;
    lose-answers lets whoever logs in do so, and then resets, one time in three, when an answer comes.
    """

    def __init__(self, target: Callable[[], int], seed: str) -> None:
        self.mode: Mode = "pass"
        self.broken = 0
        self._target = target
        self._random = random.Random(seed)  # noqa: S311
        self._changed = threading.Condition()
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def set(self, mode: Mode) -> None:
        """Change what happens to connections, those that are open as well."""
        with self._changed:
            self.mode = mode
            self._changed.notify_all()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        try:
            server = socket.create_connection((HOST, self._target()), timeout=5)
            server.settimeout(None)
        except OSError:
            _reset(caller)
            return
        threading.Thread(target=self._forward, args=(caller, server, "asks"), daemon=True).start()
        self._forward(server, caller, "answers")

    def _forward(self, source: socket.socket, target: socket.socket, what: Literal["asks", "answers"]) -> None:
        try:
            for number in itertools.count():
                data = source.recv(65536)
                if not data:
                    break
                with self._changed:
                    self._changed.wait_for(lambda: self.mode != "black-hole")
                    mode = self.mode
                may_lose = mode == "lose-answers" and what == "answers" and number >= LOGIN_ANSWERS
                lost = may_lose and self._random.random() < 1 / 3
                if lost or (mode == "reset" and what == "asks"):
                    self.broken += 1
                    break
                target.sendall(data)
        except OSError:
            pass
        _reset(source)
        _reset(target)


def _reset(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
