"""Runs a script as the engine does, with host functions of its own: a job comes on standard input, its outcome goes to standard output."""

import json
import sys
import types

job = json.load(sys.stdin)
events: list[list[object]] = []
now = {"input": b"", "output": None, "failure": None}


def keep(name: str):
    def write(data) -> None:
        now[name] = data.encode() if isinstance(data, str) else bytes(data)

    return write


host = types.ModuleType("_toolsrv")
host.input = lambda: now["input"]
host.output = keep("output")
host.fail = keep("failure")
host.log = lambda level, text: events.append(["log", level, text.encode().decode()])
host.progress = lambda done, total, text: events.append(["progress", done, total, text])
host.deadline = lambda: job.get("deadline", -1)


def use(function, first=b"", second=b"", x=0, y=0):
    done, answer = job["answers"][function]
    return done, b"" if answer == "" else json.dumps(answer).encode()


host.use = use
sys.modules["_toolsrv"] = host


def packed(files: list[list[str]]) -> bytes:
    out = b"TSB1" + len(files).to_bytes(4, "little")
    for name, text in files:
        raw, data = name.encode(), text.encode("utf-8", "surrogateescape")
        out += len(raw).to_bytes(4, "little") + len(data).to_bytes(4, "little") + raw + data
    return out


def outcome(status: int) -> dict:
    def text(data):
        return None if data is None else data.decode()

    told = {"status": status, "output": text(now["output"]), "failure": text(now["failure"]), "events": list(events)}
    now.update(output=None, failure=None)
    events.clear()
    return told


real = sys.stdout
from toolsrv import _guest  # noqa: E402

if job.get("rehearse"):
    _guest.rehearse()
assert not events and now["output"] is None and sys.stdout is real and "rehearsal" not in sys.modules
if "answers" in job:  # as the engine's http.client does always
    from toolsrv._double import wired

    asking = wired()
    asking.__enter__()
bundle = bytes.fromhex(job["raw"]) if "raw" in job else packed(job["files"])
_guest.load(memoryview(bundle))
_guest.warm()
started = outcome(0)
described = outcome(_guest.describe())
calls = []
for number, text in job["calls"]:
    now["input"] = text.encode()
    calls.append(outcome(_guest.call(number)))
real.write(json.dumps({"started": started, "described": described, "calls": calls}))
real.flush()
