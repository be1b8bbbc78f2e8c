"""What stands in for the host's side of capabilities under an ordinary Python. It answers with the bytes that the host does."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from . import _wire
from ._errors import Failure, ToolError
from ._needs import scripts
from ._tool import Tool
from .http import Request, Response

# The needs of the tool that testing.call calls.
_declared: list[dict[str, Any]] = []


@contextmanager
def limited(tool: Tool) -> Iterator[None]:
    """Has a tool use what it declares, as long as the block lasts."""
    own = tool.options.needs.described() if tool.options.needs else {}
    script = scripts.get(tool.home, {})
    _declared.append({name: own.get(name, []) + script.get(name, []) for name in ("http", "secrets", "tools")})
    _declared[-1].update(kv=own.get("kv") or script.get("kv"), settings="settings" in script)
    try:
        yield
    finally:
        _declared.pop()


@contextmanager
def wired() -> Iterator[None]:
    """Has http.client and urllib.request ask the host."""

    def connect(self: Any) -> None:
        self.sock = _wire.Connection(self.host, self.port, self.timeout, isinstance(self, http.client.HTTPSConnection))

    kinds: list[Any] = [http.client.HTTPConnection, http.client.HTTPSConnection]
    own = [kind.connect for kind in kinds]
    for kind in kinds:
        kind.connect = connect
    try:
        yield
    finally:
        for kind, method in zip(kinds, own, strict=True):
            kind.connect = method


class Double:
    """The functions of the host."""

    def __init__(
        self,
        http: Callable[[Request], Response] | None,
        kv: MutableMapping[str, bytes] | None,
        secrets: Mapping[str, str | bytes] | None,
        settings: Any,
        tools: Mapping[str, Callable[[dict[str, Any]], Any]] | None,
    ) -> None:
        self._http, self._kv, self._secrets, self._settings, self._tools = http, kv, secrets, settings, tools
        self._versions: dict[str, tuple[bytes, int, int]] = {}  # value, version, and when it goes
        self._version = 0

    def use(self, function: str, first: str | bytes, second: str | bytes, x: int, y: int) -> tuple[bool, bytes]:
        """Calls a function of the host by its name."""
        one, two = (part.encode() if isinstance(part, str) else bytes(part) for part in (first, second))
        try:
            match function:
                case "http.send":
                    return True, self._send(json.loads(one), two)
                case "kv.get":
                    return True, self._get(one.decode())
                case "kv.set":
                    return True, self._set(one.decode(), two, x, y)
                case "kv.delete":
                    return True, self._delete(one.decode(), x)
                case "kv.list":
                    return True, self._list(one, two, x)
                case "secrets.read":
                    return True, self._read(one.decode())
                case "settings.read":
                    _granted("settings", self._settings, not _declared or _declared[-1]["settings"], "settings={…}")
                    return True, json.dumps(self._settings).encode()
                case "tools.call":
                    return True, self._call(one.decode().removeprefix("/"), json.loads(two))
        except Failure as failure:
            said = {"code": failure.code, "message": failure.message, "tool_code": failure.tool_code, "data": failure.data}
            return False, json.dumps(said).encode()
        raise ValueError(f"the host has no function {function}")

    def _send(self, head: dict[str, Any], body: bytes) -> bytes:
        url = head["url"]
        declared = not _declared or any(_covers(pattern, url) for pattern in _declared[-1]["http"])
        answer = _granted(f"{head['method']} {url}", self._http, declared, "http=lambda request: …")
        got = answer(Request(head["method"], url, headers=head["headers"], content=body))
        said = json.dumps({"status": got.status_code, "url": got.url or url, "headers": got.headers.multi_items()}).encode()
        answered: bytes = got.content
        return len(said).to_bytes(4, "little") + said + answered

    def _entry(self, key: str) -> tuple[bytes, int, int] | None:
        values = _granted("kv", self._kv, not _declared or _declared[-1]["kv"], "kv={}")
        value = values.get(key)
        entry = self._versions.get(key)
        if value is None:
            return None
        if entry is None or entry[0] != value:  # a test has put it there
            self._version += 1
            entry = self._versions[key] = (value.encode() if isinstance(value, str) else value), self._version, 0
        if entry[2] and entry[2] <= time.time() * 1000:
            del values[key]
            return None
        return entry

    def _expect(self, key: str, expect: int) -> bool:
        entry = self._entry(key)
        if expect not in (-1, entry[1] if entry else 0):
            raise Failure(f"the key {key!r} has another version", code="conflict")
        return entry is not None

    def _get(self, key: str) -> bytes:
        entry = self._entry(key)
        return entry[1].to_bytes(8, "little") + entry[2].to_bytes(8, "little") + entry[0] if entry else b""

    def _set(self, key: str, value: bytes, ttl: int, expect: int) -> bytes:
        self._expect(key, expect)
        assert self._kv is not None
        self._version += 1
        self._kv[key] = value
        self._versions[key] = value, self._version, int(time.time() * 1000) + ttl if ttl else 0
        return self._version.to_bytes(8, "little")

    def _delete(self, key: str, expect: int) -> bytes:
        there = self._expect(key, expect)
        if there and self._kv is not None:
            del self._kv[key]
        return bytes([there])

    def _list(self, prefix: bytes, after: bytes, limit: int) -> bytes:
        self._entry("")
        keys = sorted(key.encode() for key in list(self._kv or ()) if self._entry(key))
        keys = [key for key in keys if key.startswith(prefix) and key > after]
        return bytes([len(keys) > limit]) + b"".join(len(key).to_bytes(4, "little") + key for key in keys[:limit])

    def _read(self, name: str) -> bytes:
        secrets = _granted("secrets", self._secrets, not _declared or name in _declared[-1]["secrets"], "secrets={name: value}")
        if name not in secrets:
            raise Failure(f"secrets: the test has none with the name {name}", code="not_granted")
        value: str | bytes = secrets[name]
        return value.encode() if isinstance(value, str) else value

    def _call(self, path: str, arguments: dict[str, Any]) -> bytes:
        tools = _granted("tools", self._tools, not _declared or path in _declared[-1]["tools"], "tools={path: function}")
        if path not in tools:
            raise Failure(f"tools: the test has none with the name {path}", code="not_granted")
        try:
            return json.dumps(tools[path](arguments)).encode()
        except ToolError as error:
            raise Failure(error.message, code="tool_error", tool_code=error.code, data=error.data) from None


def _granted(name: str, value: Any, declared: Any, remedy: str) -> Any:
    if not declared:
        raise Failure(f"{name}: the tool doesn't declare that it needs this", code="not_granted")
    if value is None:
        raise Failure(f"{name}: the test grants nothing: pass {remedy} to testing.grant", code="not_granted")
    return value


def _covers(pattern: str, url: str) -> bool:
    """Reports whether a URL is one that a tool declares, such as https://api.example.com/v2/ or https://*.example.com."""
    own, asked = urlsplit(pattern), urlsplit(url)
    host = own.netloc
    same = asked.netloc.endswith(host[1:]) if host.startswith("*.") else asked.netloc == host
    return own.scheme == asked.scheme and same and f"{asked.path}/".startswith(own.path.rstrip("/") + "/")
