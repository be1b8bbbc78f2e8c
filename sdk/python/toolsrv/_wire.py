"""What stands in for sockets and TLS below Python's own http.client, and so below urllib.request. It reads the request that is written
to it, has the host send it, and gives the answer back as a server would write it."""

from __future__ import annotations

import io
from http import HTTPStatus
from typing import Any, Final

from ._errors import Failure
from ._exchange import exchange

# What http.client and urllib.request name of socket.
_GLOBAL_DEFAULT_TIMEOUT: Final = object()
IPPROTO_TCP, TCP_NODELAY = 6, 1
error = gaierror = OSError


class Refused(OSError, Failure):
    """A failure, for programs that know those of sockets."""

    def __init__(self, failure: Failure) -> None:
        OSError.__init__(self, failure.message)
        Failure.__init__(self, failure.message, code=failure.code)


class RefusedByPermission(Refused, PermissionError):
    """Nobody has granted it."""


class RefusedByTime(Refused, TimeoutError):
    """It took too long."""


class RefusedByConnection(Refused, ConnectionError):
    """There is no connection."""


_KINDS = {
    "not_granted": RefusedByPermission,
    "timeout": RefusedByTime,
    "connect": RefusedByConnection,
    "dns": RefusedByConnection,
    "tls": RefusedByConnection,
    "unavailable": RefusedByConnection,
}

# What the host says itself.
_UNSAID = frozenset(
    ["accept-encoding", "connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "transfer-encoding"]
)

# What the host has undone, or what is not so any more where a message is written anew.
_UNDONE = frozenset(["connection", "content-length", "keep-alive", "trailer", "transfer-encoding"])


class Connection:
    """A socket that is connected to a server. The host sends a request as soon as it is written."""

    def __init__(self, host: str, port: int, timeout: Any, secure: bool = False) -> None:
        self._host, self._port, self._secure = host, port, secure
        self._timeout: float | None = None
        self._head = b""  # what is written of a request, up to the empty line
        self._fields: list[tuple[str, str]] | None = None  # of a head that is complete
        self._body: list[bytes] = []
        self._answer: io.BytesIO | None = None
        self.settimeout(timeout)

    def secured(self) -> Connection:
        """Returns the same connection with TLS, which is the host's."""
        self._secure = True
        return self

    def settimeout(self, timeout: Any) -> None:
        self._timeout = timeout if isinstance(timeout, int | float) else None

    def setsockopt(self, *args: Any) -> None:
        pass

    def shutdown(self, how: int) -> None:
        pass

    def close(self) -> None:
        pass

    def sendall(self, data: Any) -> None:
        """Takes more of the request."""
        piece = bytes(data)
        if self._fields is None:
            head, found, piece = (self._head + piece).partition(b"\r\n\r\n")
            self._head = head
            if not found:
                return
            lines = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
            self._fields = [(name, value.strip()) for name, _, value in lines]
        self._body.append(piece)
        if self._said("transfer-encoding").lower() == "chunked":
            complete = piece == b"0\r\n\r\n"  # as http.client ends it
        else:
            complete = sum(map(len, self._body)) >= int(self._said("content-length") or 0)
        if complete:
            self._send()

    def makefile(self, mode: str = "rb", *args: Any, **named: Any) -> io.BufferedIOBase:
        """Returns the answer."""
        if self._answer is None and self._fields is not None:
            self._send()
        answer, self._answer = self._answer or io.BytesIO(), None
        return answer

    def _said(self, name: str) -> str:
        return next((value for own, value in self._fields or () if own.lower() == name), "")

    def _send(self) -> None:
        method, target, _ = self._head.decode("latin-1").partition("\r\n")[0].split(" ", 2)
        body = b"".join(self._body)
        if self._said("transfer-encoding").lower() == "chunked":
            body = _joined(body)
        authority, said = self._authority(), self._said("host")
        pairs = [pair for pair in self._fields or () if pair[0].lower() not in _UNSAID]
        self._head, self._fields, self._body = b"", None, []
        if said.lower() not in ("", authority.lower(), f"{authority}:{self._port}".lower()):
            raise OSError(f"the header Host is that of the URL, {authority}, and can't be {said!r:.100}")
        url = target if target.startswith(("http://", "https://")) else f"{'https' if self._secure else 'http'}://{authority}{target}"
        try:
            answer = exchange(method, url, pairs, body, self._timeout, follow=False)
        except Failure as failure:
            raise _KINDS.get(failure.code, Refused)(failure) from None
        except ValueError as wrong:
            raise OSError(str(wrong)) from None
        self._answer = io.BytesIO(_written(method, answer.status, answer.headers, answer.body))

    def _authority(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return host if self._port == (443 if self._secure else 80) else f"{host}:{self._port}"


def _joined(body: bytes) -> bytes:
    """Returns a body that http.client has written in chunks."""
    out = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        out.append(body[:length])
        body = body[length + 2 :] if length else b""
    return b"".join(out)


def _written(method: str, status: int, headers: list[tuple[str, str]], body: bytes) -> bytes:
    """Returns an answer as a server writes it."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    kept = [pair for pair in headers if pair[0].lower() not in _UNDONE or method == "HEAD" and pair[0].lower() == "content-length"]
    if method != "HEAD":
        kept.append(("Content-Length", str(len(body))))
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {' '.join(value.splitlines())}" for name, value in kept), "Connection: close"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


def create_connection(address: tuple[str, int], timeout: Any = _GLOBAL_DEFAULT_TIMEOUT, source: Any = None) -> Connection:
    """Does what socket.create_connection does."""
    return Connection(*address, timeout)


class _Context:
    """What stands in for ssl.SSLContext: the host verifies whom it talks to."""

    post_handshake_auth = None

    def wrap_socket(self, connection: Connection, server_hostname: str = "") -> Connection:
        return connection.secured()

    def set_alpn_protocols(self, protocols: list[str]) -> None:
        pass


_create_default_https_context = _Context
