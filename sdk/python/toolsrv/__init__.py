"""Package toolsrv makes tools of Python functions, for the server of the same name.

    from typing import Annotated, Literal
    from toolsrv import Field, tool

    @tool
    def greet(name: Annotated[str, Field(min_length=1)], style: Literal["short", "long"] = "short") -> str:
        \"\"\"Greets somebody.\"\"\"
        return f"Hello, {name}!"

The JSON Schema of the arguments and of the result follows from the signature and its annotations, the description from the
docstring. `toolsrv build hello.py` makes a .wasm of the script; under an ordinary Python the function stays what it is, so that
tests call it, or call it as a client would with `toolsrv.testing`.

The script is loaded once, and each call begins with the state after that: what a call changes is gone when it ends.
"""

from ._errors import DeclarationError, Failure, ResultError, ToolError
from ._field import Field
from ._host import log, progress, time_left
from ._icon import Icon
from ._needs import Needs, needs
from ._tool import Example, module, tool

__version__ = "0.1.0"

__all__ = [
    "DeclarationError",
    "Example",
    "Failure",
    "Field",
    "Icon",
    "Needs",
    "ResultError",
    "ToolError",
    "log",
    "module",
    "needs",
    "progress",
    "time_left",
    "tool",
]
