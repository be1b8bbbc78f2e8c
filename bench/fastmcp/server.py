"""Serves an addition over MCP with FastMCP: what a Python program does that serves its own functions.

It is set up for speed: uvicorn with uvloop and httptools, no sessions, answers in JSON, no access log. Its argument is a port
of 127.0.0.1. `make bench-mcp` runs it with the packages of test/mcp/requirements.txt.
"""

import sys

import uvicorn
from fastmcp import FastMCP

server = FastMCP("bench")


@server.tool(name="bench-add")
def add(a: int, b: int) -> int:
    """A tool of the benchmarks."""
    return a + b


if __name__ == "__main__":
    app = server.http_app(path="/mcp", stateless_http=True, json_response=True)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), loop="uvloop", http="httptools", log_level="warning", access_log=False)
