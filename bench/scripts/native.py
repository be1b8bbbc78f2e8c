"""Calls a tool's function again and again in this process, as a service of long life would: JSON in, JSON out.

Its arguments are a script, the name of a function in it, and how many seconds to call it in each turn. The first line of its input has
the arguments of a call, each further line asks for a turn, which is answered with the median time of a call in nanoseconds.
"""

import dataclasses
import importlib.util
import json
import sys
from time import perf_counter_ns


def main() -> None:
    script, name, span = sys.argv[1], sys.argv[2], float(sys.argv[3])
    spec = importlib.util.spec_from_file_location("script", script)
    module = importlib.util.module_from_spec(spec)
    sys.modules["script"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    function = getattr(module, name)
    arguments = sys.stdin.readline()
    for _ in sys.stdin:
        times = []
        end = perf_counter_ns() + int(span * 1e9)
        while not times or times[-1][0] < end:
            begin = perf_counter_ns()
            result = function(**json.loads(arguments))
            json.dumps(dataclasses.asdict(result) if dataclasses.is_dataclass(result) else result)
            now = perf_counter_ns()
            times.append((now, now - begin))
        print(sorted(took for _, took in times)[len(times) // 2], flush=True)


main()
