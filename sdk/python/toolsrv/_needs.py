"""What tools need of the world outside of them, as a script declares it and as the manifest has it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ._errors import DeclarationError


@dataclass(frozen=True)
class Needs:
    """What a tool needs, besides what its script says with [needs]: an operator grants it, or the tool is not there.

    `http` are the addresses that it asks: origins, with a path that what is asked for begins with, such as "https://*.example.com/v2/".
    `kv` says that it keeps values, `secrets` which ones it reads itself, `tools` what other tools it calls, such as "units/convert",
    and `files` the folders that it reads.
    """

    http: Sequence[str] = ()
    kv: bool = False
    secrets: Sequence[str] = ()
    tools: Sequence[str] = ()
    files: Sequence[str] = ()

    def described(self) -> dict[str, Any]:
        """Returns the needs as a manifest has them. Raises a DeclarationError for what they can't be."""
        out: dict[str, Any] = {}
        for name in ("http", "secrets", "tools", "files"):
            values = getattr(self, name)
            if isinstance(values, str) or not all(isinstance(value, str) and value for value in values):
                raise DeclarationError(f"needs: {name}={values!r:.80} is not a list of texts")
            if values:
                out[name] = list(values)
        if not isinstance(self.kv, bool):
            raise DeclarationError(f"needs: kv={self.kv!r:.80} is not True or False")
        if self.kv:
            out["kv"] = True
        return out


# What each script needs, by its module's name, as its manifest has it.
scripts: Final[dict[str, dict[str, Any]]] = {}


def needs(
    *,
    http: Sequence[str] = (),
    kv: bool = False,
    secrets: Sequence[str] = (),
    settings: Any = None,
    tools: Sequence[str] = (),
    files: Sequence[str] = (),
) -> None:
    """Says what all tools of the script need: [Needs] has what each is.

    `settings` describes the settings that an operator gives them: a dataclass, a TypedDict, or a JSON Schema.
    """
    home = sys._getframe(1).f_globals.get("__name__", "")
    if home in scripts:
        raise DeclarationError("needs is called twice: say it once")
    out = Needs(http, kv, secrets, tools, files).described()
    if settings is not None:
        out["settings"] = _schema(settings)
    scripts[home] = out


def _schema(settings: Any) -> dict[str, Any]:
    """Returns the JSON Schema of settings."""
    if isinstance(settings, dict):
        try:
            copy: dict[str, Any] = json.loads(json.dumps(settings, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise DeclarationError(f"needs: settings is not a JSON Schema: {error}") from None
        return copy
    from ._derive import Deriver
    from ._node import Definitions

    definitions = Definitions(arguments=True)
    schema = Deriver().of(settings, "settings").content(definitions)
    if schema.get("type") != "object":
        raise DeclarationError("needs: settings is a dataclass, a TypedDict or the JSON Schema of an object")
    return {**schema, "$defs": definitions.schemas} if definitions.schemas else schema
