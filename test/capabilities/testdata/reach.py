"""Calls each function that needs a grant, as a tool in Python does."""

from toolsrv import config, http, kv, secret, tool, tools


@tool
def http_send(method: str, url: str) -> str:
    """Send a request."""
    return http.request(method, url).text


@tool
def kv_get(key: str) -> bool:
    """Get a value."""
    return kv.get(key) is not None


@tool
def kv_set(key: str, value: str) -> int:
    """Keep a value."""
    return kv.set(key, value)


@tool
def kv_delete(key: str) -> bool:
    """Remove a key."""
    return kv.delete(key)


@tool
def kv_list() -> list[str]:
    """List the keys."""
    return list(kv.list())


@tool
def secret_read(name: str) -> int:
    """Read a secret."""
    return len(secret.read(name))


@tool
def config_read() -> dict[str, int]:
    """Read the settings."""
    return config.read()


@tool
def tool_call(path: str) -> int:
    """Call another tool."""
    return tools.call(path)


@tool
def file_read(folder: str, path: str) -> str:
    """Read a file."""
    with open(f"/{folder}/{path}") as file:
        return file.read()
