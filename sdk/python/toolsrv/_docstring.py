"""Reads docstrings: what a function does, and what it says of its parameters, in the sections of Google, NumPy and reST."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field


@dataclass
class Docstring:
    """A docstring in its parts."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    result: str = ""


_PARAMETERS = {"args", "arguments", "parameters", "params", "attributes", "other parameters", "keyword args", "keyword arguments"}
_RESULT = {"returns", "return"}
# Sections for programmers: a client has no use for them.
_DROPPED = {"raises", "yields", "see also", "references", "todo", "warns"}
_GOOGLE = re.compile(r"([A-Z][A-Za-z ]*):\s*")
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:(?:\s+(.*)|$)")
_NUMPY_ITEM = re.compile(r"\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?")
_REST = re.compile(r":(\w+)(?:\s+([^:]*))?:(?:\s+(.*)|$)")


def parse(text: str | None) -> Docstring:
    """Returns the parts of a docstring."""
    out = Docstring()
    if not text:
        return out
    lines = inspect.cleandoc(text).splitlines()
    kept: list[str] = []
    at = 0
    while at < len(lines):
        section, body = _heading(lines, at)
        if section:
            end = _end(lines, body, underlined=body == at + 2)
            _take(out, section, lines[body:end], numpy=body == at + 2)
            if section not in _PARAMETERS | _RESULT | _DROPPED:
                kept += lines[at:end]
            at = end
        elif field_line := _REST.fullmatch(lines[at]):
            end = at + 1
            while end < len(lines) and lines[end].startswith((" ", "\t")):
                end += 1
            if not _take_rest(out, field_line, lines[at + 1 : end]):
                kept += lines[at:end]
            at = end
        else:
            kept.append(lines[at])
            at += 1
    out.description = _paragraphs(kept)
    return out


def _heading(lines: list[str], at: int) -> tuple[str, int]:
    """Returns the name of the section that begins at a line, in small letters, and its first line; or nothing."""
    known = _PARAMETERS | _RESULT | _DROPPED
    line = lines[at]
    below = lines[at + 1] if at + 1 < len(lines) else ""
    if line and not line[0].isspace():
        if re.fullmatch(r"-{3,}\s*", below):
            return line.strip().lower(), at + 2
        if (match := _GOOGLE.fullmatch(line)) and match[1].lower() in known and (not below.strip() or below[0].isspace()):
            return match[1].lower(), at + 1
    return "", at


def _end(lines: list[str], at: int, underlined: bool) -> int:
    """Returns the first line behind a section's body."""
    while at < len(lines):
        line = lines[at]
        if underlined:
            if _heading(lines, at)[0] or _REST.fullmatch(line):
                return at
        elif line.strip() and not line[0].isspace():
            return at
        at += 1
    return at


def _take(out: Docstring, section: str, body: list[str], numpy: bool) -> None:
    if section in _RESULT:
        out.result = _result(body, numpy)
    if section not in _PARAMETERS:
        return
    names: list[str] = []
    words: list[str] = []

    def done() -> None:
        for name in names:
            out.parameters[name] = _paragraphs(words)

    indents = [len(line) - len(line.lstrip()) for line in body if line.strip()]
    least = min(indents, default=0)
    for line in body:
        item = (_NUMPY_ITEM if numpy else _GOOGLE_ITEM).fullmatch(line.strip())
        if item and line.strip() and len(line) - len(line.lstrip()) == least:
            done()
            names = re.split(r"\s*,\s*", item[1])
            words = [] if numpy else [item[2] or ""]
        else:
            words.append(line.strip())
    done()


def _result(body: list[str], numpy: bool) -> str:
    """Returns what a section says of the result, without the type that some write before it."""
    lines = [line for line in body if line.strip()]
    if numpy and len(lines) > 1 and not lines[0].startswith(" ") and lines[1].startswith(" "):
        body = body[body.index(lines[0]) + 1 :]
    elif not numpy and lines and (match := re.fullmatch(r"\s*[\w.]+(?:\[[^:]*\])?(?: \| \w+)*:\s+(.*)", lines[0])):
        body = [match[1], *body[body.index(lines[0]) + 1 :]]
    return _paragraphs([line.strip() for line in body])


def _take_rest(out: Docstring, match: re.Match[str], more: list[str]) -> bool:
    """Takes a field of reST, and reports whether it was one that programmers write for each other."""
    kind, about = match[1], (match[2] or "").split()
    text = _paragraphs([match[3] or "", *(line.strip() for line in more)])
    if kind in ("param", "parameter", "arg", "argument", "key", "keyword", "ivar", "var", "cvar") and about:
        out.parameters[about[-1].lstrip("*")] = text
        return True
    if kind in ("return", "returns"):
        out.result = text
        return True
    return kind in ("type", "rtype", "raises", "raise", "except", "exception", "meta", "vartype", "yield", "yields")


def _paragraphs(lines: list[str]) -> str:
    """Joins the lines of each paragraph: line breaks are the editor's, not the reader's. Lists and what is indented keep theirs."""
    out: list[str] = []
    for line in lines:
        text = line.rstrip()
        flows = text and not text.startswith((" ", "\t", "- ", "* ", ">>>")) and not re.match(r"\d+[.)] ", text)
        if out and out[-1] and flows and not out[-1].startswith((" ", ">>>")):
            out[-1] += " " + text
        else:
            out.append(text)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()
