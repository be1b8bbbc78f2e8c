"""Small changes to modules of the standard library that assume files, sockets or processes where they only name them."""

# By module: what is replaced by what, each of which must be there exactly once.
_EDITS = {
    # asyncio names constants and exceptions of sockets and processes, which a program without either needs nothing of.
    "asyncio.base_events": [
        ("import socket\n", "from _toolsrv_absent import socket\n"),
        ("import subprocess\n", "from _toolsrv_absent import subprocess\n"),
    ],
    "asyncio.events": [
        ("import socket\n", "from _toolsrv_absent import socket\n"),
        ("import subprocess\n", "from _toolsrv_absent import subprocess\n"),
    ],
    "asyncio.streams": [("import socket\n", "from _toolsrv_absent import socket\n")],
    "asyncio.trsock": [("import socket\n", "from _toolsrv_absent import socket\n")],
    "asyncio.subprocess": [("import subprocess\n", "from _toolsrv_absent import subprocess\n")],
    # Connections are the host's: what is written to one is a request that the host sends.
    "http.client": [
        ("import socket\n", "from toolsrv import _wire as socket\n"),
        ("    import ssl\n", "    from toolsrv import _wire as ssl\n"),
    ],
    "urllib.request": [("import socket\n", "from toolsrv import _wire as socket\n")],
    # Frozen modules have no __file__; what stands in its place is how their code names itself.
    "_strptime": [("os.path.dirname(__file__)", '"<frozen "')],
    "zipfile": [("os.path.dirname(__file__)", '"<frozen "')],
    "importlib.resources._common": [("frame_info.filename == __file__", 'frame_info.filename == "<frozen importlib.resources._common>"')],
    "xml.sax.saxutils": [
        ("import os, urllib.parse, urllib.request\n", "import os, urllib.parse\n"),
        ("f = urllib.request.urlopen(source", "import urllib.request; f = urllib.request.urlopen(source"),
    ],
    # The time zones are in the engine, not in the files of a package.
    "zoneinfo._common": [
        (
            """\
    from importlib import resources

    components = key.split("/")
    package_name = ".".join(["tzdata.zoneinfo"] + components[:-1])
    resource_name = components[-1]

    try:
        return resources.files(package_name).joinpath(resource_name).open("rb")
    except (ImportError, FileNotFoundError, UnicodeEncodeError):
""",
            """\
    import io
    import _toolsrv

    try:
        data = _toolsrv.data("zoneinfo/" + key)
        if data is None:
            raise FileNotFoundError(key)
        return io.BytesIO(data)
    except (FileNotFoundError, UnicodeEncodeError, ValueError):
""",
        ),
    ],
    "zoneinfo._tzpath": [
        (
            """\
        with resources.files("tzdata").joinpath("zones").open("r") as f:
            for zone in f:
                zone = zone.strip()
                if zone:
                    valid_zones.add(zone)
    except (ImportError, FileNotFoundError):
""",
            """\
        import _toolsrv

        valid_zones.update(_toolsrv.data("zones").decode().split())
    except ImportError:
""",
        ),
        ("import sysconfig\n", ""),
        ("            env_var = sysconfig.get_config_var(\"TZPATH\")\n", "            env_var = \"\"\n"),
        ("    from importlib import resources\n\n    valid_zones", "    valid_zones"),
    ],
}


def edit(name, source):
    """Returns the source of a module as the engine has it."""
    for old, new in _EDITS.get(name, ()):
        if source.count(old) != 1:
            raise SystemExit(f"edits.py: {name} has {source.count(old)} times, and not once: {old!r}")
        source = source.replace(old, new)
    return source
