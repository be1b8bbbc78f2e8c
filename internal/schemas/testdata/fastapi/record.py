"""Records in answers.jsonl, beside this file, what FastAPI answers: one line for a model's schema, a body and the violations.

Needs fastapi and httpx (recorded with fastapi 0.165.0 and pydantic 2.14.3). Only such bodies are here for which a
model and its JSON Schema mean the same: a model also takes "1" for 1, and reads more formats.
"""
import enum, ipaddress, json, pathlib
from typing import Annotated, Literal, Optional

from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel, Base64Bytes, ConfigDict, Field, Strict, create_model


class Colour(enum.Enum):
    red, green, blue = "red", "green", "blue"


class Point(BaseModel):
    x: int
    y: str = "d"


class Exact(BaseModel):
    model_config = ConfigDict(extra="forbid")
    x: int


def bounded(type, **bounds):
    return Annotated[type, Field(**bounds)]


CASES = [
    (int, ["{}", '{"b":1}', '{"a":1.5}', '{"a":null}', '{"a":[]}', '{"a":{}}']),
    (Annotated[int, Strict()], ['{"a":"1"}', '{"a":true}']),
    (float, ['{"a":null}', '{"a":[]}']),
    (str, ['{"a":1}', '{"a":null}', '{"a":{}}']),
    (bool, ['{"a":[]}', '{"a":null}']),
    (list[int], ['{"a":1}', '{"a":{"x":1}}', '{"a":null}', '{"a":[1,null,[]]}']),
    (dict[str, int], ['{"a":1}', '{"a":[]}', '{"a":{"k":[]}}']),
    (Point, ['{"a":1}', '{"a":[]}', '{"a":{}}', '{"a":null}', '{"a":{"x":[],"y":1}}']),
    (list[Point], ['{"a":[{"x":1},{"y":1},2]}']),
    (Exact, ['{"a":{"x":1,"z":2}}', '{"a":{"w":3,"z":2}}']),
    (Optional[int], ['{"a":[]}']),
    (bounded(int, ge=3), ['{"a":1}']),
    (bounded(int, gt=3), ['{"a":3}']),
    (bounded(int, le=3), ['{"a":4}']),
    (bounded(float, lt=3.5), ['{"a":4}']),
    (bounded(int, multiple_of=5), ['{"a":4}']),
    (bounded(str, min_length=1), ['{"a":""}']),
    (bounded(str, min_length=2), ['{"a":"x"}']),
    (bounded(str, max_length=1), ['{"a":"xxx"}']),
    (bounded(str, max_length=2), ['{"a":"xxx"}']),
    (bounded(str, pattern="^[a-z]+$"), ['{"a":"1"}']),
    (bounded(list[int], min_length=1), ['{"a":[]}']),
    (bounded(list[int], min_length=2), ['{"a":[1]}']),
    (bounded(list[int], max_length=2), ['{"a":[1,2,3]}']),
    (bounded(dict[str, int], min_length=1), ['{"a":{}}']),
    (Colour, ['{"a":"x"}', '{"a":1}', '{"a":null}']),
    (Literal["only"], ['{"a":"x"}', '{"a":1}']),
    (ipaddress.IPv4Address, ['{"a":"x"}']),
    (ipaddress.IPv6Address, ['{"a":"x"}']),
    (Base64Bytes, ['{"a":"%"}']),
    (None, ['{"a":1}']),
    (int, ["[1]", "1", "null", '"x"', "{", '{"a":}', '{"a":1,}', '{"a":1} x', '{"a":01}', "nul", "{a:1}", '{"a" 1}', '{"a":"\\x"}', '{"a":"x']),
    (int, ['{"a":1 "b":2}', "[1,", "[1 2]", '{"a":"\t"}', '{"a":-}', '{"a":tru}', ",", '{"a":1}}', "{,}", '["x",]', '{"a":1,"b"}', "{'a':1}"]),
]

with open(pathlib.Path(__file__).with_name("answers.jsonl"), "w") as out:
    for type, bodies in CASES:
        model = create_model("Model", a=(type, ...))
        app = FastAPI()

        def endpoint(body):
            return {}

        endpoint.__annotations__ = {"body": model}
        app.post("/")(endpoint)
        client = TestClient(app)
        for body in bodies:
            answer = client.post("/", content=body, headers={"content-type": "application/json"})
            assert answer.status_code == 422, (type, body)
            line = {"schema": model.model_json_schema(), "body": body, "detail": answer.json()["detail"]}
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
