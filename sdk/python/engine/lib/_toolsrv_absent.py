"""What the standard library has elsewhere and the engine has not, and what to do instead."""

import sys

_SOCKETS = "there are no sockets in the sandbox; toolsrv.http and urllib.request ask what the tool was granted"
_FILES = "there are no files in the sandbox; take contents as an argument, and return them"
_PROCESSES = "there are no other processes in the sandbox; do the work in Python"
_TERMINAL = "there is no terminal in the sandbox; take what the tool needs as arguments"
_FOREIGN = "no compiled code can be loaded in the sandbox; use a package that is pure Python"
_DEVELOPMENT = "it is for development; use it where your tests run, outside the sandbox"
_WINDOWS = "it is for another system"
_NEVER = "it means nothing in a sandbox"

# By name, of a module or package with all that is in it: why it is not there, and the remedy.
ABSENT = {
    "_aix_support": _WINDOWS,
    "_android_support": _WINDOWS,
    "_apple_support": _WINDOWS,
    "_ios_support": _WINDOWS,
    "_osx_support": _WINDOWS,
    "_pyrepl": _TERMINAL,
    "antigravity": _NEVER,
    "asyncio.base_subprocess": _PROCESSES,
    "asyncio.proactor_events": _SOCKETS,
    "asyncio.selector_events": _SOCKETS,
    "asyncio.windows_events": _WINDOWS,
    "asyncio.windows_utils": _WINDOWS,
    "asyncio.__main__": _TERMINAL,
    "_bz2": "use zlib or gzip",
    "bz2": "use zlib or gzip",
    "_lzma": "use zlib or gzip",
    "lzma": "use zlib or gzip",
    "bdb": _DEVELOPMENT,
    "cProfile": _DEVELOPMENT,
    "cmd": _TERMINAL,
    "code": _TERMINAL,
    "compileall": _FILES,
    "concurrent.futures.process": _PROCESSES,
    "_ctypes": _FOREIGN,
    "ctypes": _FOREIGN,
    "_curses": _TERMINAL,
    "curses": _TERMINAL,
    "dbm": _FILES,
    "doctest": _DEVELOPMENT,
    "encodings.bz2_codec": "use zlib or gzip",
    "encodings.mbcs": _WINDOWS,
    "encodings.oem": _WINDOWS,
    "ensurepip": _DEVELOPMENT,
    "fcntl": _FILES,
    "filecmp": _FILES,
    "fileinput": _FILES,
    "ftplib": _SOCKETS,
    "getpass": _TERMINAL,
    "grp": _NEVER,
    "http.server": _SOCKETS,
    "idlelib": _TERMINAL,
    "imaplib": _SOCKETS,
    "json.__main__": _TERMINAL,
    "logging.config": "use logging.basicConfig; what is logged goes to the server's log",
    "logging.handlers": _SOCKETS,
    "mailbox": _FILES,
    "mmap": _FILES,
    "modulefinder": _DEVELOPMENT,
    "msvcrt": _WINDOWS,
    "multiprocessing": _PROCESSES,
    "netrc": _FILES,
    "nt": _WINDOWS,
    "nturl2path": _WINDOWS,
    "pdb": _DEVELOPMENT,
    "poplib": _SOCKETS,
    "profile": _DEVELOPMENT,
    "pstats": _DEVELOPMENT,
    "pty": _TERMINAL,
    "pwd": _NEVER,
    "py_compile": _FILES,
    "pyclbr": _DEVELOPMENT,
    "pydoc": _DEVELOPMENT,
    "pydoc_data": _DEVELOPMENT,
    "readline": _TERMINAL,
    "resource": "the operator sets the tool's limits, in the configuration of the server",
    "rlcompleter": _TERMINAL,
    "runpy": _FILES,
    "select": _SOCKETS,
    "selectors": _SOCKETS,
    "shelve": _FILES,
    "site": _NEVER,
    "smtplib": _SOCKETS,
    "_socket": _SOCKETS,
    "socket": _SOCKETS,
    "socketserver": _SOCKETS,
    "_sqlite3": "lists, dicts and the modules collections, bisect and heapq hold what one call needs",
    "sqlite3": "lists, dicts and the modules collections, bisect and heapq hold what one call needs",
    "_ssl": _SOCKETS,
    "ssl": _SOCKETS,
    "subprocess": _PROCESSES,
    "sysconfig": _DEVELOPMENT,
    "syslog": "use logging, or print: both go to the server's log",
    "tabnanny": _DEVELOPMENT,
    "termios": _TERMINAL,
    "test": _DEVELOPMENT,
    "this": _NEVER,
    "_tkinter": _TERMINAL,
    "tkinter": _TERMINAL,
    "toolsrv._double": _DEVELOPMENT,
    "toolsrv.testing": _DEVELOPMENT,
    "trace": _DEVELOPMENT,
    "tty": _TERMINAL,
    "turtle": _TERMINAL,
    "turtledemo": _TERMINAL,
    "unittest": _DEVELOPMENT,
    "venv": _DEVELOPMENT,
    "webbrowser": _NEVER,
    "winreg": _WINDOWS,
    "winsound": _WINDOWS,
    "wsgiref": _SOCKETS,
    "xmlrpc.server": _SOCKETS,
    "zipapp": _DEVELOPMENT,
}


def reason(name):
    """Returns why a module is not there, or None of one that nobody knows."""
    while name:
        if name in ABSENT:
            return ABSENT[name]
        name = name.rpartition(".")[0]
    return None


class Finder:
    """Says why there is no such module, where nobody else finds it: what a script brings itself is taken, whatever its name is."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        why = reason(name)
        if not why:
            return None
        for finder in sys.meta_path[sys.meta_path.index(cls) + 1 :]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        raise ModuleNotFoundError(f"toolsrv's Python has no module {name}: {why}", name=name)


class _Absent:
    """Stands for a module that another one only names: to use more of it than these names is an error."""

    def __init__(self, name, **names):
        self.__dict__.update(names, _name=name)

    def __getattr__(self, name):
        raise AttributeError(f"toolsrv's Python has no {self._name}.{name}: {ABSENT[self._name]}")


class _Socket:
    """Stands for the class, which annotations name."""

    def __new__(cls, *args, **named):
        raise OSError(f"toolsrv's Python has no socket.socket: {_SOCKETS}")


socket = _Absent("socket", AF_UNSPEC=0, AI_PASSIVE=1, SOCK_STREAM=1, error=OSError, socket=_Socket)
subprocess = _Absent("subprocess", PIPE=-1, STDOUT=-2, DEVNULL=-3)
