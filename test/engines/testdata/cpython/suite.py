"""Runs CPython's own tests in the sandbox: those of one module in one call. The library is the folder lib of the tool file."""

import builtins
import errno
import fnmatch
import importlib.machinery
import importlib.util
import io
import os
import sys
import tempfile
import types
from typing import Any

from toolsrv import tool

_data = __loader__.get_data


class _Library:
    """Finds the modules that tests need: the tests, and what the engine leaves out of the standard library."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        place = "/lib/" + name.replace(".", "/")
        for origin, package in ((f"{place}/__init__.py", True), (f"{place}.py", False)):
            try:
                source = _data(origin)
            except OSError:
                continue
            spec = importlib.machinery.ModuleSpec(name, _Loader(source, origin), origin=origin, is_package=package)
            spec.has_location = True
            if package:
                spec.submodule_search_locations = [place]
            return spec
        return None


class _Loader:
    def __init__(self, source, origin):
        self._source, self._origin = source, origin

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile(self._source, self._origin, "exec", dont_inherit=True), module.__dict__)

    def get_source(self, name):
        return importlib.util.decode_source(self._source)

    def get_data(self, path):
        return _data(path)


def _stub(name, **members):
    """Makes a module that tests import, without which they would not even start."""
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module


sys.meta_path.insert(0, _Library)
_stub("sysconfig", get_config_var=lambda name: None, get_config_vars=lambda *names: [None for _ in names], is_python_build=lambda *_: False, get_platform=lambda: "wasi")
_stub("select", select=None)


class _Pdb:
    def __init__(self, *args, **named):
        pass

    def reset(self):
        pass


_stub("pdb", Pdb=_Pdb, set_trace=None)
# Many tests write a file and read it again: here they do so in memory.
_written = {}


class _File(io.BytesIO):
    def __init__(self, path, content=b""):
        super().__init__(content)
        self._path = self.name = path

    def flush(self):
        super().flush()
        if self._path is not None:
            _written[self._path] = self.getvalue()

    def close(self):
        if not self.closed:
            self.flush()
        super().close()


def _in_memory(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
    path = os.fsdecode(file)
    kind = mode.replace("b", "").replace("t", "")
    if kind[0] in "wx":
        stream = _File(path)
        stream.flush()
    elif path in _written:
        stream = _File(path, _written[path])
        stream.seek(0, io.SEEK_END if kind[0] == "a" else io.SEEK_SET)
    else:
        try:
            stream = _File(None, _data(path if path.startswith("/lib/") else "/lib/test/" + path))
        except OSError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file) from None
    return stream if "b" in mode else io.TextIOWrapper(stream, encoding or "utf-8", errors, newline)


def _unlink(path, **_):
    if _written.pop(os.fsdecode(path), None) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _temporary(mode="w+b", buffering=-1, encoding=None, newline=None, **_):
    return io.BytesIO() if "b" in mode else io.TextIOWrapper(_File(None), encoding or "utf-8", None, newline)


def _listdir(path="."):
    folder = __loader__.get_resource_reader("suite").files().joinpath(os.fsdecode(path).strip("/"))
    return [entry.name for entry in folder.iterdir()]


builtins.open = io.open = _in_memory
os.unlink = os.remove = _unlink
os.listdir = _listdir
tempfile.TemporaryFile = _temporary

import unittest  # noqa: E402

from test import support  # noqa: E402

# Most tests of asyncio are said to need sockets, which is so of few.
support.requires_working_socket = lambda *, module=False: None if module else lambda test: test


class _Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.bad = {}

    def _note(self, test, error):
        self.bad.setdefault(test.id(), f"{error[0].__name__}: {error[1]}"[-500:])

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(test, err)


def _cases(suite):
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from _cases(part)
        else:
            yield part


@tool
def run(module: str, skip: list[str]) -> Any:
    """Runs the tests of a module but those whose names fit a pattern of skip."""
    used = set()

    def wanted(case):
        fits = {pattern for pattern in skip if fnmatch.fnmatchcase(case.id(), pattern)}
        used.update(fits)
        return not fits

    loaded = unittest.defaultTestLoader.loadTestsFromName(module)
    chosen = unittest.TestSuite(case for case in _cases(loaded) if wanted(case))
    result = _Result()
    chosen.run(result)
    return {"ran": result.testsRun, "skipped": len(result.skipped), "bad": result.bad, "used": sorted(used)}
