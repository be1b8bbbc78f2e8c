"""Other tools of the server.

from toolsrv import needs, tools

needs(tools=["units/convert"])

miles = tools.call("units/convert", value=5, source="km", target="mi")
"""

from __future__ import annotations

import json
from typing import Any

from ._host import use


def call(path: str, arguments: dict[str, Any] | None = None, /, **more: Any) -> Any:
    """Calls another tool, such as "units/convert", and returns its result as JSON has it.

    A Failure says why it has none: where the tool itself said so, its code is "tool_error", and it has the `tool_code` and the `data`
    that the tool gave.
    """
    if not isinstance(path, str):
        raise TypeError(f"the path of a tool is a str, not {type(path).__name__}")
    return json.loads(use("tools.call", path, json.dumps({**(arguments or {}), **more}, allow_nan=False)))
