"""A tool for the tests, which looks at the files that it was granted."""

import os

from toolsrv import tool


def number(do, *arguments) -> int:
    try:
        do(*arguments)
    except OSError as e:
        return e.errno
    return 0


def read(path: str) -> str:
    with open(path, encoding="utf-8", newline="") as f:
        return f.read()


at_start = number(open, "/geo/cities.csv")


@tool
def report() -> dict[str, object]:
    """Look at the files."""
    with open("/geo/cities.csv", "rb") as f:
        f.seek(6)
        middle = f.read(5).decode()
    with open("/geo/large", "rb") as f:
        total = sum(f.read())
    return {
        "read": read("/geo/cities.csv"), "errno": 0, "root": sorted(os.listdir("/")), "list": sorted(os.listdir("/geo")),
        "many": len(os.listdir("/geo/many")), "relative": read("geo/maps/world.json"), "linked": read("/geo/current/world.json"),
        "sum": total, "size": os.stat("/geo/cities.csv").st_size, "middle": middle,
        "none": number(open, "/geo/none"), "out": number(open, "/geo/out"), "passwd": number(open, "/etc/passwd"), "fifo": number(open, "/geo/fifo"),
        "write": number(open, "/geo/cities.csv", "r+"), "create": number(open, "/geo/new", "w"), "mkdir": number(os.mkdir, "/geo/new"),
        "remove": number(os.remove, "/geo/cities.csv"), "start": at_start, "walked": sum(len(files) for _, _, files in os.walk("/")),
    }
