"""Serves the additions of bench/scripts/add.py with FastAPI: what a Python program does that serves its own functions.

It is set up for speed: uvicorn with uvloop and httptools, one worker for each processor, no access log. Its argument is a port of
127.0.0.1. `make bench-languages` runs it with the packages of requirements.txt.
"""

import os
import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict

app = FastAPI()


class Terms(BaseModel):
    model_config = ConfigDict(extra="forbid")

    a: int
    b: int


@app.post("/bench/add")
def add(terms: Terms) -> int:
    """Adds two numbers, as the tool does."""
    return terms.a + terms.b


@app.post("/bench/add_async")
async def add_async(terms: Terms) -> int:
    """Adds two numbers on the event loop, for which a function must never block."""
    return terms.a + terms.b


if __name__ == "__main__":
    uvicorn.run(
        "server:app",
        app_dir=os.path.dirname(__file__),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        workers=len(os.sched_getaffinity(0)),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
