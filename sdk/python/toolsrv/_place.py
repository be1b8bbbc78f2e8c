"""Finds where in an author's file something is wrong, and shows it: file, line, column, the line itself, a caret."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable
from types import TracebackType
from typing import Any


def pointed(message: str, file: str, line: int, column: int = 0, remedy: str = "", text: str = "") -> str:
    """Returns a message about a place. The column counts from 1; 0 is that of the line's first word."""
    text = (text or linecache.getline(file, line)).rstrip("\n").replace("\t", " ")
    column = column or len(text) - len(text.lstrip()) + 1
    out = f"{file}:{line}:{column}: {message}"
    if text.strip():
        out += f"\n    {text}\n    {' ' * (column - 1)}^"
    return f"{out}\n{remedy}" if remedy else out


def in_function(function: Callable[..., Any], place: str) -> tuple[str, int, int]:
    """Returns the file, line and column of a part of a function's declaration: a parameter, "->", or its name."""
    function = inspect.unwrap(function)
    code = function.__code__
    file, first = code.co_filename, code.co_firstlineno
    source = "".join(linecache.getlines(file))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return file, first, 0
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != function.__name__:
            continue
        if first not in (node.lineno, *(decorator.lineno for decorator in node.decorator_list)):
            continue
        part = _part(node, place)
        if part is None:
            lines = source.splitlines()
            column = lines[node.lineno - 1].find(f" {node.name}", node.col_offset) + 2
            return file, node.lineno, column
        line = source.splitlines()[part[0] - 1]
        return file, part[0], len(line.encode()[: part[1]].decode("utf-8", "replace")) + 1
    return file, first, 0


def _part(node: ast.FunctionDef | ast.AsyncFunctionDef, place: str) -> tuple[int, int] | None:
    """Returns the line and the offset of a part of a function."""
    if place == "->" and node.returns is not None:
        return node.returns.lineno, node.returns.col_offset
    if place == '"""' and node.body and isinstance(node.body[0], ast.Expr):
        return node.body[0].lineno, node.body[0].col_offset
    if place == "@" and node.decorator_list:
        return node.decorator_list[-1].lineno, node.decorator_list[-1].col_offset
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    for argument in every:
        if argument is not None and argument.arg == place:
            where = argument.annotation or argument
            return where.lineno, where.col_offset
    return None


def author_frames(trace: TracebackType | None, ours: Callable[[str], bool]) -> list[TracebackType]:
    """Returns the entries of a traceback that are in files of the author's."""
    out = []
    while trace is not None:
        if ours(trace.tb_frame.f_code.co_filename):
            out.append(trace)
        trace = trace.tb_next
    return out


def column_of(entry: TracebackType) -> int:
    """Returns the column, from 1, at which a frame was when it raised, or 0."""
    positions = list(entry.tb_frame.f_code.co_positions())
    at = entry.tb_lasti // 2
    if at >= len(positions) or positions[at][2] is None or positions[at][0] != entry.tb_lineno:
        return 0
    offset = positions[at][2] or 0
    line = linecache.getline(entry.tb_frame.f_code.co_filename, entry.tb_lineno)
    return len(line.encode()[:offset].decode("utf-8", "replace")) + 1
