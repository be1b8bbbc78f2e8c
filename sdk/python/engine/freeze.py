"""Writes frozen.c and the bytes it embeds: the standard library and the SDK, compiled, and files of data.

It is run by the _bootstrap_python of the very source that the engine is built from, because code is marshalled in the form
of one version, and that has hardly any extension modules: what is imported here must do without.

    freeze.py LIB SDK TZDATA OUT
"""

import marshal
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(HERE, "lib")]

import edits  # noqa: E402
from _toolsrv_absent import reason  # noqa: E402


def modules(root, package=""):
    """Yields the name, the path and whether it is a package of each module below a folder, in the order of names."""
    for entry in sorted(os.listdir(root)):
        path = os.path.join(root, entry)
        if entry.endswith(".py"):
            name = entry[:-3]
            if name == "__init__":
                yield package.rstrip("."), path, True
            else:
                yield package + name, path, False
        elif os.path.isfile(os.path.join(path, "__init__.py")):
            yield from modules(path, package + entry + ".")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def standard_library(lib):
    """Yields name, source and whether it is a package of what the engine has of Lib/."""
    for name, path, is_package in modules(lib):
        if not reason(name):
            yield name, edits.edit(name, read(path)), is_package


def own(sdk):
    """Yields the same for the SDK, and for what this folder adds to the library."""
    for name, path, is_package in modules(os.path.join(sdk, "toolsrv"), "toolsrv."):
        if not reason(name):
            yield name, read(path), is_package
    added = os.path.join(HERE, "lib")
    for name, path, is_package in modules(added):
        yield name, read(path), is_package


def frozen(lib, sdk):
    """Returns name, code and whether it is a package of every module; later ones replace earlier ones."""
    table = {}
    for name, source, is_package in standard_library(lib):
        # Without docstrings and assertions: nobody reads them here, and each would be a page in every tool.
        table[name] = compile(source, f"<frozen {name}>", "exec", dont_inherit=True, optimize=2), is_package
    for name, source, is_package in own(sdk):
        table[name] = compile(source, f"<frozen {name}>", "exec", dont_inherit=True, optimize=0), is_package
    return [(name, marshal.dumps(code), is_package) for name, (code, is_package) in table.items()]


def zones(tzdata):
    """Yields name and bytes of the time zones, and a list of their names."""
    names = read(os.path.join(tzdata, "zones")).split()
    yield "zones", "\n".join(sorted(names)).encode()
    for name in sorted(names):
        with open(os.path.join(tzdata, "zoneinfo", name), "rb") as file:
            yield "zoneinfo/" + name, file.read()


class Blob:
    """Bytes one after the other, where equal ones stand once."""

    def __init__(self):
        self.parts, self.size, self.places = [], 0, {}

    def place(self, piece):
        if piece not in self.places:
            self.places[piece] = self.size
            self.parts.append(piece)
            self.size += len(piece)
        return self.places[piece]


def main(lib, sdk, tzdata, out):
    blob = Blob()
    lines = ['#include "engine.h"', "", "static const unsigned char blob[] = {", '#embed "frozen.bin"', "};", ""]
    lines.append("const struct _frozen toolsrv_frozen[] = {")
    for name, code, is_package in frozen(lib, sdk):
        lines.append(f'    {{"{name}", blob + {blob.place(code)}, {len(code)}, {int(is_package)}}},')
    lines += ["    {0},", "};", "", "const struct toolsrv_data toolsrv_data[] = {"]
    for name, data in zones(tzdata):
        lines.append(f'    {{"{name}", blob + {blob.place(data)}, {len(data)}}},')
    lines += ["    {0},", "};", ""]
    with open(os.path.join(out, "frozen.bin"), "wb") as file:
        file.write(b"".join(blob.parts))
    with open(os.path.join(out, "frozen.c"), "w") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
