"""Reads what a tool file holds beside its engine: the script, modules, data. Imports find them there."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import io
import linecache
import sys
from collections.abc import Iterator, Sequence
from importlib.resources.abc import Traversable, TraversableResources
from types import CodeType, ModuleType
from typing import Any

from ._tool import Located

_MAGIC = b"TSB1"
_MAX_ENTRIES = 100_000


class Bundle:
    """The files of a tool, by their paths."""

    def __init__(self, data: bytes | memoryview) -> None:
        """Reads a bundle, trusting nothing of it. Raises a ValueError for one that is broken."""
        self._view = memoryview(data)
        self._places: dict[str, tuple[int, int]] = {}
        if bytes(self._view[:4]) != _MAGIC:
            raise ValueError("the tool file holds no script")
        count = self._number(4)
        if not 1 <= count <= _MAX_ENTRIES:
            raise ValueError(f"the bundle has {count} files")
        at = 8
        for number in range(count):
            name_size, size = self._number(at), self._number(at + 4)
            at += 8
            if name_size > 4096 or at + name_size + size > len(self._view):
                raise ValueError(f"file {number} of the bundle reaches behind its end")
            name = bytes(self._view[at : at + name_size]).decode()
            parts = name.split("/")
            if "\0" in name or "\\" in name or not all(parts) or "." in parts or ".." in parts:
                raise ValueError(f"file {number} of the bundle has the name {name!r:.80}")
            if name in self._places:
                raise ValueError(f"the bundle has {name!r:.80} twice")
            self._places[name] = (at + name_size, size)
            at += name_size + size
        self.script = next(iter(self._places))
        self.folders = {name[:i] for name in self._places for i in range(len(name)) if name[i] == "/"}

    def _number(self, at: int) -> int:
        if at + 4 > len(self._view):
            raise ValueError("the bundle ends too early")
        return int.from_bytes(self._view[at : at + 4], "little")

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def read(self, name: str) -> bytes:
        """Returns a file's bytes. Raises a KeyError if there is none."""
        at, size = self._places[name]
        return bytes(self._view[at : at + size])


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of a bundle."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        place = fullname.replace(".", "/")
        for name, package in ((f"{place}/__init__.py", True), (f"{place}.py", False)):
            if name in self._bundle:
                return self.spec(fullname, name, package)
        if place in self._bundle.folders and any(n.startswith(place + "/") and n.endswith(".py") for n in self._bundle):
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [f"/{place}"]
            return spec
        return None

    def spec(self, fullname: str, name: str, package: bool) -> importlib.machinery.ModuleSpec:
        """Returns how a module of the bundle is loaded."""
        loader = Loader(self._bundle, name)
        spec = importlib.machinery.ModuleSpec(fullname, loader, origin=f"/{name}", is_package=package)
        spec.has_location = True
        if package:
            spec.submodule_search_locations = [f"/{name.rpartition('/')[0]}"]
        return spec

    def find_distributions(self, context: Any = None) -> Iterator[importlib.metadata.Distribution]:
        """Yields the libraries of the bundle, for importlib.metadata."""
        wanted = getattr(context, "name", None)
        for name in self._bundle:
            folder, _, file = name.partition("/")
            if file == "METADATA" and folder.endswith(".dist-info"):
                own = folder.removesuffix(".dist-info").rpartition("-")[0]
                if wanted is None or _normalized(wanted) == _normalized(own):
                    yield _Library(self._bundle, folder)


def _normalized(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


class _Library(importlib.metadata.Distribution):
    """A library of a bundle."""

    def __init__(self, bundle: Bundle, folder: str) -> None:
        self._bundle = bundle
        self._folder = folder

    def read_text(self, filename: str) -> str | None:
        name = f"{self._folder}/{filename}"
        return self._bundle.read(name).decode() if name in self._bundle else None

    def locate_file(self, path: Any) -> Any:
        return f"/{path}"


class Loader(importlib.abc.InspectLoader):
    """Loads one module of a bundle."""

    def __init__(self, bundle: Bundle, name: str) -> None:
        self._bundle = bundle
        self._name = name

    def is_package(self, fullname: str) -> bool:
        return self._name.endswith("/__init__.py")

    def get_source(self, fullname: str) -> str:
        return decoded(self._bundle.read(self._name))

    def get_code(self, fullname: str) -> CodeType:
        # Who shows a line of it finds it there.
        linecache.cache[self._name] = (functools.partial(self.get_source, fullname),)
        # The bytes: Python looks for a comment that names their encoding.
        try:
            code: CodeType = compile(self._bundle.read(self._name), self._name, "exec", dont_inherit=True)
        except SystemError:  # what CPython's compiler raises in some places where memory is short
            raise MemoryError from None
        return code

    def get_filename(self, fullname: str) -> str:
        return f"/{self._name}"

    def get_data(self, path: str) -> bytes:
        """Returns a file's bytes, for pkgutil."""
        try:
            return self._bundle.read(path.removeprefix("/"))
        except KeyError:
            raise FileNotFoundError(f"the tool file does not hold {path}") from None

    def get_resource_reader(self, fullname: str) -> TraversableResources:
        return _Resources(Resource(self._bundle, self._name.rpartition("/")[0]))


def decoded(source: bytes) -> str:
    """Returns a module's source as a text."""
    import tokenize

    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return io.TextIOWrapper(io.BytesIO(source), encoding).read()


class _Resources(TraversableResources):
    def __init__(self, folder: Resource) -> None:
        self._folder = folder

    def files(self) -> Traversable:
        return self._folder


class Resource(Traversable):
    """A file or a folder of a bundle, for importlib.resources."""

    def __init__(self, bundle: Bundle, path: str) -> None:
        self._bundle = bundle
        self._path = path

    @property
    def name(self) -> str:
        return self._path.rpartition("/")[2]

    def iterdir(self) -> Iterator[Traversable]:
        before = f"{self._path}/" if self._path else ""
        names = dict.fromkeys(n[len(before) :].partition("/")[0] for n in self._bundle if n.startswith(before))
        return (Resource(self._bundle, before + name) for name in names)

    def is_dir(self) -> bool:
        return not self._path or self._path in self._bundle.folders

    def is_file(self) -> bool:
        return self._path in self._bundle

    def joinpath(self, *descendants: Any) -> Traversable:
        parts = [self._path, *(str(part) for part in descendants)]
        return Resource(self._bundle, "/".join(part for part in parts if part))

    def __truediv__(self, child: Any) -> Traversable:
        return self.joinpath(child)

    def read_bytes(self) -> bytes:
        try:
            return self._bundle.read(self._path)
        except KeyError:
            raise FileNotFoundError(f"the tool file does not hold {self._path}") from None

    def read_text(self, encoding: str | None = None) -> str:
        return self.read_bytes().decode(encoding or "utf-8")

    def open(self, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        stream = io.BytesIO(self.read_bytes())
        return stream if "b" in mode else io.TextIOWrapper(stream, *args, **{"encoding": "utf-8", **kwargs})


def run_script(bundle: Bundle) -> ModuleType:
    """Runs the script as the module that an import of it would be, and returns it."""
    finder = Finder(bundle)
    sys.meta_path.append(finder)
    stem = bundle.script.removesuffix(".py")
    for name in bundle:
        top = name.partition("/")[0].removesuffix(".py")
        if top in sys.stdlib_module_names:
            raise Located(f'{name}:1:1: Python has a module "{top}" of its own, which other modules of Python import: rename the file')
    spec = finder.spec(stem, bundle.script, package=False)
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module
