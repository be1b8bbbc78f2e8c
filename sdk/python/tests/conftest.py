"""What tests share: scripts that are loaded as the engine does, and natively."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import textwrap

import pytest

HERE = pathlib.Path(__file__).parent


class Outcome:
    """What became of a script in the engine's place."""

    def __init__(self, told):
        self.started, self.described, self.calls = told["started"], told["described"], told["calls"]
        self.problem = json.loads(self.described["failure"])["message"] if self.described["status"] else ""
        self.manifest = None if self.problem else json.loads(self.described["output"])


@pytest.fixture
def engine():
    """Returns a function that loads a script, or files with it, and makes calls: (tool's number, arguments)."""

    def run(script, *calls, files=None, name="script.py", **more):
        every = [[name, textwrap.dedent(script)], *([path, textwrap.dedent(text)] for path, text in (files or {}).items())]
        job = {"files": every, "calls": [[n, a if isinstance(a, str) else json.dumps(a)] for n, a in calls], **more}
        done = subprocess.run(
            [sys.executable, "-P", str(HERE / "fake_engine.py")],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": str(HERE.parent), "PYTHONHASHSEED": "0"},
        )
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        return Outcome(json.loads(done.stdout))

    return run


@pytest.fixture
def script(tmp_path, request):
    """Returns a function that imports a script natively."""

    def load(text, name=None):
        path = tmp_path / f"{name or 'script_' + str(len(list(tmp_path.iterdir())))}_{abs(hash(request.node.name)) % 10**6}.py"
        path.write_text(textwrap.dedent(text))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module

    return load
