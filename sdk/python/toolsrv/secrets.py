"""Secrets that a tool may see itself, to sign with them. For requests it needs none: the host puts them into headers.

from toolsrv import needs, secrets

needs(secrets=["signing_key"])

key = secrets.read_bytes("signing_key")
"""

from __future__ import annotations

from ._host import use


def read(name: str) -> str:
    """Returns a secret as a text."""
    return read_bytes(name).decode()


def read_bytes(name: str) -> bytes:
    """Returns a secret."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a secret is a str, not {type(name).__name__}")
    return use("secrets.read", name)
