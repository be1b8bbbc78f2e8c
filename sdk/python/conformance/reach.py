"""The Python guest with a tool for each function that needs a grant: testdata/abi/README.md says what its tools do."""

import itertools
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from toolsrv import Field, Needs, http, kv, module, needs, secrets, settings, tool, tools


@dataclass
class Settings:
    limit: int
    units: Literal["metric", "imperial"] = "metric"


module(namespace="reach", version="1.0.0")
needs(settings=Settings)
loaded = settings.load(Settings)


@dataclass
class Answer:
    status: int
    url: str
    headers: dict[str, list[str]]
    body: str


@tool(needs=Needs(http=["https://api.example.com/v1/"]))
def http_send(
    url: str,
    method: str = "GET",
    headers: list[list[str]] = [],
    body: str = "",
    timeout: Annotated[int, Field(description="Milliseconds.")] = 0,
    manual: bool = False,
) -> Answer:
    """Send a request."""
    asked = http.Request(method, url, headers=[(name, value) for name, value in headers], content=body)
    answer = http.send(asked, timeout=timeout / 1000 if timeout else None, follow_redirects=not manual)
    return Answer(answer.status_code, answer.url, {name: answer.headers.get_list(name) for name in answer.headers}, answer.text)


@dataclass
class Entry:
    found: bool
    value: str = ""
    version: int = 0
    expires: int = 0


@tool(needs=Needs(kv=True))
def kv_get(key: str) -> Entry:
    """Get what is under a key."""
    entry = kv.get(key)
    if entry is None:
        return Entry(False)
    return Entry(True, entry.text(), entry.version, round(entry.expires.timestamp() * 1000) if entry.expires else 0)


@tool(needs=Needs(kv=True))
def kv_set(key: str, value: str, ttl: Annotated[int, Field(description="Milliseconds.")] = 0, expect: int = -1) -> int:
    """Put a value under a key."""
    return kv.set(key, value, ttl=ttl / 1000, expect=None if expect == -1 else expect)


@tool(needs=Needs(kv=True))
def kv_delete(key: str, expect: int = -1) -> bool:
    """Remove a key."""
    return kv.delete(key, expect=None if expect == -1 else expect)


@dataclass
class Keys:
    keys: list[str]
    more: bool


@tool(needs=Needs(kv=True))
def kv_list(prefix: str = "", after: str = "", limit: int = 0) -> Keys:
    """List keys."""
    most = limit or 1000
    keys = list(itertools.islice(kv.list(prefix, after=after), most + 1))
    return Keys(keys[:most], len(keys) > most)


@tool(needs=Needs(secrets=["stripe_key"]))
def secret_read(name: str) -> str:
    """Read a secret."""
    return secrets.read(name)


@tool
def settings_read() -> Settings:
    """Read the settings."""
    return loaded.get()


@tool(needs=Needs(tools=["units/convert"]))
def tool_call(path: str, arguments: Annotated[dict[str, Any], Field(default_factory=dict)]) -> Any:
    """Call another tool."""
    return tools.call(path, arguments)


@tool(needs=Needs(files=["geo"]))
def file_read(folder: str, path: str) -> str:
    """Read a file."""
    with open(f"/{folder}/{path}", encoding="utf-8") as file:
        return file.read()
