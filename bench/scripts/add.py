"""The smallest tool, for what a call costs besides its work."""

from toolsrv import module, tool

module(namespace="bench")


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b
