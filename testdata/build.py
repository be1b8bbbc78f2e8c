"""Builds each .wat below this folder into the .wasm beside it; --check compares instead, and fails on a difference.

Needs wasmtime from PyPI: make fixtures and make fixtures-check bring it.
"""

import pathlib
import sys

import wasmtime

check = sys.argv[1:] == ["--check"]
if sys.argv[1:] and not check:
    sys.exit("usage: build.py [--check]")

here = pathlib.Path(__file__).parent
stale = 0
sources = sorted(here.rglob("*.wat"))
for source in sources:
    target = source.with_suffix(".wasm")
    try:
        built = bytes(wasmtime.wat2wasm(source.read_text()))
    except wasmtime.WasmtimeError as error:
        sys.exit(f"{source.relative_to(here)}: {error}")
    if target.exists() and target.read_bytes() == built:
        continue
    stale += 1
    if check:
        print(f"{target.relative_to(here)} is not what its .wat says: run make fixtures")
    else:
        target.write_bytes(built)
for target in sorted(here.rglob("*.wasm")):
    if not target.with_suffix(".wat").exists():
        stale += 1
        print(f"{target.relative_to(here)} has no .wat beside it: remove it")
print(f"{len(sources)} sources, {stale} {'differ' if check else 'written'}")
sys.exit(1 if check and stale else 0)
