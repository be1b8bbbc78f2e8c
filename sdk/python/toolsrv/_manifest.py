"""Makes a module of the tools of a script: its manifest, and what a call runs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ._call import Compiled
from ._errors import DeclarationError
from ._needs import scripts
from ._tool import Module, Tool, modules, tools


def tools_of(script: ModuleType) -> list[Tool]:
    """Returns the tools of a script: those that it defines, and those that it imports by name from its other files."""
    named = {id(value) for value in vars(script).values()}
    return [tool for tool in tools if tool.home == script.__name__ or id(tool.function) in named]


class Script:
    """The tools of a script, ready to be called. A tool's place in the list is its number."""

    def __init__(self, script: ModuleType) -> None:
        self.module = modules.get(script.__name__, Module())
        self.needs = scripts.get(script.__name__)
        taken: set[str] = set()
        own = tools_of(script)
        for tool in own:
            name = tool.options.name
            if name in taken:
                raise tool.failed(DeclarationError(f'another tool is called "{name}", too: rename one'))
            taken.add(name)
        self.tools = [Compiled(tool) for tool in own]

    def manifest(self) -> dict[str, Any]:
        """Returns the manifest."""
        from . import __version__

        out: dict[str, Any] = {"abi": 1}
        if self.module.namespace:
            out["namespace"] = self.module.namespace
        if self.module.version:
            out["version"] = self.module.version
        if self.needs:
            out["needs"] = self.needs
        return {**out, "sdk": f"python/{__version__}", "tools": [tool.described() for tool in self.tools]}
