"""Sums up the log of a web server: some sixty lines of what people write in Python every day."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Annotated

from toolsrv import Field, module, tool

module(namespace="bench")

LINE = re.compile(
    r"(?P<host>\S+) \S+ (?P<user>\S+) \[(?P<day>[^:]+):(?P<time>[^ ]+) [^\]]+\] "
    r'"(?P<method>[A-Z]+) (?P<path>\S+) [^"]*" (?P<status>\d{3}) (?P<size>\d+|-)'
)
NUMBER = re.compile(r"/\d+")


@dataclass
class Page:
    path: str
    requests: int
    bytes: int
    errors: int


@dataclass
class Summary:
    requests: int
    unread: int
    hosts: int
    busiest_hour: str
    statuses: dict[str, int]
    pages: list[Page]


@tool
def summarise(log: Annotated[str, Field(max_length=1_000_000)], top: Annotated[int, Field(ge=1, le=100)] = 10) -> Summary:
    """Sums up a log in the common format: pages by requests, statuses, the busiest hour."""
    pages: dict[str, Page] = {}
    statuses: Counter[str] = Counter()
    hours: Counter[str] = Counter()
    hosts = set()
    unread = 0
    for line in log.splitlines():
        match = LINE.match(line)
        if match is None:
            unread += 1
            continue
        path = NUMBER.sub("/N", match["path"].split("?")[0])
        page = pages.setdefault(path, Page(path, 0, 0, 0))
        page.requests += 1
        page.bytes += 0 if match["size"] == "-" else int(match["size"])
        page.errors += match["status"] >= "400"
        statuses[match["status"]] += 1
        hours[match["time"][:2]] += 1
        hosts.add(match["host"])
    return Summary(
        requests=statuses.total(),
        unread=unread,
        hosts=len(hosts),
        busiest_hour=min(hours, key=lambda hour: (-hours[hour], hour), default=""),
        statuses=dict(sorted(statuses.items())),
        pages=sorted(pages.values(), key=lambda page: (-page.requests, page.path))[:top],
    )
