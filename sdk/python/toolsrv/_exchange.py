"""One request that the host sends, and its answer: what toolsrv.http and Python's own http.client have in common."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from ._host import use


class Answer(NamedTuple):
    """What came back."""

    status: int
    url: str
    headers: list[tuple[str, str]]
    body: bytes


def exchange(method: str, url: str, headers: list[tuple[str, str]], body: bytes, timeout: float | None, follow: bool) -> Answer:
    """Has the host send a request. Raises a Failure where there is no answer, and a ValueError for what is not a URL."""
    head: dict[str, Any] = {"method": method, "url": normal(url), "headers": headers, "redirect": "follow" if follow else "manual"}
    if timeout is not None and timeout < 1e9:  # else the call's own time is all there is
        head["timeout"] = max(1, int(timeout * 1000))
    answer = use("http.send", json.dumps(head), body)
    size = int.from_bytes(answer[:4], "little")
    said = json.loads(answer[4 : 4 + size])
    return Answer(said["status"], said["url"], [(name, value) for name, value in said["headers"]], answer[4 + size :])


_SAFE = "!$%&'()*+,/:;=@~|"


def normal(url: str) -> str:
    """Returns a URL as the host takes it: in ASCII, with a path that has no dots to resolve, and without a fragment."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{url!r:.200} is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError(f"{url!r:.200} is not the URL of a request: write one that begins with https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL with a name and a password can't be asked for: say them in the header Authorization")
    if not host.isascii():
        host = host.encode("idna").decode()
    if ":" in host:
        host = f"[{host}]"
    if port is not None and port != {"http": 80, "https": 443}[parts.scheme]:
        host = f"{host}:{port}"
    return urlunsplit((parts.scheme, host, _resolved(quote(parts.path, _SAFE)), quote(parts.query, _SAFE + "?"), ""))


def _resolved(path: str) -> str:
    """Returns a path without the steps "." and ".."."""
    out: list[str] = []
    steps = path.split("/")[1:]
    for step in steps:
        plain = re.sub("%2e", ".", step, flags=re.IGNORECASE)
        if plain == "..":
            del out[-1:]
        elif plain != ".":
            out.append(step)
    if steps and plain in (".", ".."):
        out.append("")
    return "/" + "/".join(out)
