"""What a tool is granted, as tests stand in for it."""

import http.client
import json
import time
import urllib.error
import urllib.request
from datetime import timedelta

import pytest

from toolsrv import Failure, ToolError, kv, secrets, settings, testing, tools
from toolsrv import http as web
from toolsrv._exchange import normal


def echo(request):
    """Answers with what was asked."""
    if request.url.endswith("/missing"):
        return web.Response(404, text="not here")
    if request.url.endswith("/moved"):
        return web.Response(302, headers={"Location": "/there"})
    said = {"method": request.method, "url": request.url, "headers": dict(request.headers), "body": request.content.decode()}
    return web.Response(200, json=said, headers=[("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])


@pytest.fixture
def granted():
    values = {"a": b"text"}
    keys = {"key": "ä"}

    def refuse(arguments):
        raise ToolError("No.", code="gone", data=[1])

    own = {"units/convert": lambda a: a["value"] * 2, "units/refuse": refuse}
    with testing.grant(http=echo, kv=values, secrets=keys, settings={"units": "m"}, tools=own):
        yield values


def test_requests(granted):
    got = web.get("https://example.com/a?x=1", params={"y": [1, 2], "z": True, "none": None}, headers={"X-A": "1"})
    assert (got.status_code, got.reason_phrase, got.is_success, got.url) == (200, "OK", True, "https://example.com/a?x=1&y=1&y=2&z=true")
    assert got.json() == {"method": "GET", "url": got.url, "headers": {"x-a": "1", "accept": "*/*"}, "body": ""}
    assert got.headers["set-cookie"] == "a=1, b=2" and got.headers.get_list("Set-Cookie") == ["a=1", "b=2"]
    assert got.raise_for_status() is got
    for method in ("post", "put", "patch"):
        said = getattr(web, method)("https://example.com", json={"a": "ä"}).json()
        assert (said["method"], said["body"], said["headers"]["content-type"]) == (method.upper(), '{"a":"ä"}', "application/json")
    assert web.post("https://example.com", data={"a": "1 2"}).json()["body"] == "a=1+2"
    assert web.post("https://example.com", content="x", headers={"content-type": "a/b"}).json()["headers"]["content-type"] == "a/b"
    assert [web.request(m, "https://example.com").json()["method"] for m in ("delete", "OPTIONS")] == ["DELETE", "OPTIONS"]
    missing = web.get("https://example.com/missing")
    assert (missing.is_client_error, missing.is_error, missing.text, missing.encoding) == (True, True, "not here", "utf-8")
    with pytest.raises(web.HTTPStatusError, match="^https://example.com has answered with status 404$") as wrong:
        missing.raise_for_status()
    assert wrong.value.response is missing and wrong.value.request.method == "GET" and wrong.value.code == "bad_status"
    assert web.get("https://example.com/moved").is_redirect


def test_a_client(granted):
    with web.Client(base_url="https://example.com/v2", headers={"X-A": "1", "X-B": "1"}, params={"k": "1"}) as client:
        said = client.get("/a", headers={"x-a": "2"}).json()
    assert said["url"] == "https://example.com/v2/a?k=1"
    assert said["headers"] == {"x-a": "2", "x-b": "1", "accept": "*/*"}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("timeout", web.TimeoutException),
        ("dns", web.ConnectError),
        ("tls", web.ConnectError),
        ("connect", web.ConnectError),
        ("redirect", web.TooManyRedirects),
        ("not_granted", web.RequestError),
        ("too_large", web.RequestError),
    ],
)
def test_failures_of_requests(code, kind):
    def fail(request):
        raise Failure("no", code=code)

    with testing.grant(http=fail):
        with pytest.raises(kind, match="^no$") as wrong:
            web.get("https://example.com")
        assert (wrong.value.code, wrong.value.request.url) == (code, "https://example.com")
        assert isinstance(wrong.value, web.HTTPError) and isinstance(wrong.value, Failure)
        with pytest.raises(urllib.error.URLError) as below:
            urllib.request.urlopen("https://example.com")
        assert isinstance(below.value.reason, Failure) and below.value.reason.code == code
        assert isinstance(below.value.reason, TimeoutError) == (code == "timeout")
        assert isinstance(below.value.reason, PermissionError) == (code == "not_granted")


@pytest.mark.parametrize(
    ("url", "want"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM:443?a b#c", "https://example.com/?a%20b"),
        ("http://example.com:80/ä/%20/../b/./c/", "http://example.com/%C3%A4/b/c/"),
        ("https://example.com/a/b/..", "https://example.com/a/"),
        ("https://example.com/../../a", "https://example.com/a"),
        ("https://example.com/%2e%2E/a/%2e", "https://example.com/a/"),
        ("https://bücher.example:8443/", "https://xn--bcher-kva.example:8443/"),
        ("https://[2001:db8::1]/a?b=[c]", "https://[2001:db8::1]/a?b=%5Bc%5D"),
        ("https://example.com/a\\b|<>\"'", "https://example.com/a%5Cb|%3C%3E%22'"),
        ("https:/example.com", None),
        ("ftp://example.com", None),
        ("//example.com", None),
        ("", None),
        ("https://", None),
        ("https://user@example.com", None),
        ("https://:secret@example.com", None),
        ("https://example.com:x", None),
        ("https://example.com:99999", None),
        ("https://[::1", None),
    ],
)
def test_urls(url, want):
    if want is None:
        with pytest.raises(ValueError):
            normal(url)
        with testing.grant(http=echo), pytest.raises(web.InvalidURL):
            web.get(url)
    else:
        assert normal(url) == want


def test_headers():
    headers = web.Headers([("A", "1"), ("b", "2"), ("a", "3")])
    assert (headers["a"], list(headers), len(headers), "B" in headers, "c" in headers) == ("1, 3", ["a", "b"], 2, True, False)
    headers["A"] = "4"
    assert headers.multi_items() == [("A", "4"), ("b", "2")]
    headers["c"] = "5"
    del headers["B"]
    assert headers.multi_items() == [("A", "4"), ("c", "5")]
    with pytest.raises(KeyError):
        headers["b"]
    assert web.Headers({"x": "1"}) == {"x": "1"}


def test_texts():
    assert web.Response(200, content=b"\xe4", headers={"content-type": "text/plain; charset=latin-1"}).text == "ä"
    assert web.Response(200, content=b"\xe4", headers={"content-type": "text/plain; charset=nothing"}).text == "\ufffd"
    assert web.Response(599).reason_phrase == "" and repr(web.Response(204)) == "<Response [204 No Content]>"


def test_urllib(granted):
    asked = urllib.request.Request("https://example.com:8443/a?b#c", data=b"body", headers={"X-A": "1"}, method="PUT")
    with urllib.request.urlopen(asked, timeout=5) as answer:
        said = json.load(answer)
        assert (answer.status, answer.reason, answer.url) == (200, "OK", "https://example.com:8443/a?b#c")
        assert answer.headers.get_all("Set-Cookie") == ["a=1", "b=2"] and answer.headers.get_content_type() == "application/json"
    assert (said["method"], said["url"], said["body"]) == ("PUT", "https://example.com:8443/a?b", "body")
    assert said["headers"] == {
        "x-a": "1",
        "user-agent": urllib.request.OpenerDirector().addheaders[0][1],
        "content-type": "application/x-www-form-urlencoded",
    }
    assert json.load(urllib.request.urlopen("http://example.com"))["url"] == "http://example.com/"
    assert json.load(urllib.request.urlopen("https://example.com/moved"))["url"] == "https://example.com/there"
    with pytest.raises(urllib.error.HTTPError, match="HTTP Error 404: Not Found") as wrong:
        urllib.request.urlopen("https://example.com/missing")
    assert (wrong.value.code, wrong.value.read()) == (404, b"not here")
    assert (
        json.load(urllib.request.urlopen("https://example.com/to?u=http://a.example/b"))["url"]
        == "https://example.com/to?u=http://a.example/b"
    )
    assert urllib.request.urlopen("data:,x").read() == b"x"
    chunks = urllib.request.Request("https://example.com", data=iter([b"one", b"", b"two" * 9]), method="POST")
    assert json.load(urllib.request.urlopen(chunks))["body"] == "one" + "two" * 9


def test_the_time_of_urllib():
    seen = []

    class Host:
        def use(self, function, first, second, x, y):
            seen.append(json.loads(first).get("timeout"))
            return False, b'{"code": "timeout", "message": "It took too long."}'

    from toolsrv._double import wired
    from toolsrv._host import doubles

    doubles.append(Host())
    try:
        with wired():
            for timeout in (1.5, 1e-9, None):
                with pytest.raises(urllib.error.URLError, match="It took too long"):
                    urllib.request.urlopen("https://example.com", timeout=timeout)
        with pytest.raises(web.TimeoutException):
            web.get("https://example.com", timeout=2)
        for timeout in (float("inf"), float("nan")):
            with pytest.raises(web.TimeoutException):
                web.get("https://example.com", timeout=timeout)
    finally:
        doubles.pop()
    assert seen == [1500, 1, None, 2000, None, None]


def test_http_client(granted):
    connection = http.client.HTTPSConnection("example.com", timeout=3)
    for _ in range(2):
        connection.request("GET", "/a", headers={"X-A": "1"})
        answer = connection.getresponse()
        assert json.loads(answer.read())["url"] == "https://example.com/a"
    connection.request("HEAD", "/")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, b"")
    connection.putrequest("POST", "/", skip_host=True)
    connection.putheader("Host", "other.example")
    with pytest.raises(OSError, match="the header Host is that of the URL"):
        connection.endheaders()


def test_urllib_is_itself_again():
    before = http.client.HTTPSConnection.connect
    with testing.grant(http=echo):
        assert http.client.HTTPSConnection.connect is not before
    assert http.client.HTTPSConnection.connect is before


def test_kv(granted):
    assert kv.get("none") is None
    assert kv.get("a").text() == "text" and kv.get("a").expires is None
    version = kv.set("b", '{"n": 1}')
    assert kv.get("b").json() == {"n": 1} and kv.get("b").version == version
    newer = kv.set("b", b"\0", expect=version)
    assert newer > version and granted["b"] == b"\0"
    for wrong in (version, 0):
        with pytest.raises(Failure) as conflict:
            kv.set("b", "x", expect=wrong)
        assert conflict.value.code == "conflict"
    kv.set("new", "x", expect=0, ttl=timedelta(minutes=1))
    assert abs(kv.get("new").expires.timestamp() - time.time() - 60) < 5
    assert list(kv.list()) == ["a", "b", "new"]
    assert kv.delete("new") and not kv.delete("new")
    with pytest.raises(Failure, match="another version"):
        kv.delete("a", expect=99)
    kv.set("short", "x", ttl=0.001)
    granted["ä"] = b"put by the test"
    deadline = time.time() + 60
    while kv.get("short") and time.time() < deadline:
        pass
    assert list(kv.list()) == ["a", "b", "ä"]


def test_kv_lists_page_by_page():
    values = {f"many/{n:04}": b"x" for n in range(2500)} | {"z": b"", "ä": b"", "\uffee": b"", "😀": b""}
    with testing.grant(kv=values):
        assert list(kv.list("many/")) == sorted(key for key in values if key.startswith("many/"))
        assert list(kv.list(after="many/2499")) == ["z", "ä", "\uffee", "😀"]
        assert len(list(kv.list(limit=1001))) == 1001 and list(kv.list(limit=0)) == [] and list(kv.list("none")) == []
        assert list(kv.list("many/", after="many/0009", limit=2)) == ["many/0010", "many/0011"]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: kv.get(1),
        lambda: kv.set("a", {"b": 1}),
        lambda: kv.set("a", "b", ttl=-1),
        lambda: kv.set("a", "b", ttl=float("nan")),
        lambda: kv.set("a", "b", expect=-1),
        lambda: kv.set("a", "b", expect=True),
        lambda: list(kv.list(1)),
        lambda: secrets.read(1),
        lambda: tools.call(1),
        lambda: tools.call("a", {"b": float("inf")}),
        lambda: web.post("https://example.com", content=1),
    ],
)
def test_what_they_do_not_take(granted, wrong):
    with pytest.raises((TypeError, ValueError)):
        wrong()


def test_secrets_settings_and_tools(granted):
    assert (secrets.read("key"), secrets.read_bytes("key")) == ("ä", "ä".encode())
    assert settings.read() == {"units": "m"}
    assert tools.call("units/convert", value=4) == tools.call("/units/convert", {"value": 4}) == 8
    with pytest.raises(Failure, match="^No.$") as refused:
        tools.call("units/refuse")
    assert (refused.value.code, refused.value.tool_code, refused.value.data) == ("tool_error", "gone", [1])
    for wrong in (lambda: tools.call("a/b"), lambda: secrets.read("other")):
        with pytest.raises(Failure, match="the test has none with the name"):
            wrong()


def test_nothing_is_granted_by_itself():
    for wrong in (lambda: kv.get("a"), lambda: web.get("https://example.com"), lambda: secrets.read("a"), settings.read):
        with pytest.raises(Failure, match="there is no host here: in a test, toolsrv.testing.grant") as none:
            wrong()
        assert none.value.code == "not_granted"
        with testing.grant(), pytest.raises(Failure, match="the test grants nothing: pass"):
            wrong()


SCRIPT = """
from dataclasses import dataclass
from toolsrv import Needs, http, kv, needs, secrets, settings, tool, tools

@dataclass
class Settings:
    limit: int
    units: str = "m"

needs(http=["https://api.example.com/v2/", "https://*.example.org"], secrets=["key"], settings=Settings)
loaded = settings.load(Settings)
doubled = settings.load(lambda s: s["limit"] * 2)

@tool(needs=Needs(kv=True, tools=["units/convert"]))
def all(url: str = "https://api.example.com/v2/x") -> list[str]:
    "All."
    kv.set("a", "b")
    return [http.get(url).text, secrets.read("key"), loaded.get().units, str(doubled.get()), str(tools.call("units/convert"))]

@tool
def none() -> None:
    "None."
    kv.get("a")
"""


def test_needs(script):
    own = script(SCRIPT)
    manifest = testing.manifest(own)
    assert manifest["needs"] == {
        "http": ["https://api.example.com/v2/", "https://*.example.org"],
        "secrets": ["key"],
        "settings": {
            "type": "object",
            "properties": {"limit": {"type": "integer"}, "units": {"type": "string", "default": "m"}},
            "required": ["limit"],
            "additionalProperties": False,
        },
    }
    assert [tool.get("needs") for tool in manifest["tools"]] == [{"tools": ["units/convert"], "kv": True}, None]
    world = {"http": lambda r: web.Response(200, text="x"), "kv": {}, "secrets": {"key": "s", "other": "o"}, "settings": {"limit": 2}}
    with testing.grant(**world, tools={"units/convert": lambda a: 1}):
        assert testing.call(own.all) == ["x", "s", "m", "4", "1"]
        assert testing.call(own.all, url="https://a.example.org")[0] == "x"
        for url in ("https://api.example.com/v1/", "https://api.example.com/v20", "http://api.example.com/v2/", "https://example.org"):
            with pytest.raises(Failure, match="doesn't declare"):
                testing.call(own.all, url=url)
        with pytest.raises(Failure, match="kv: the tool doesn't declare"):
            testing.call(own.none)
    with testing.grant(**{**world, "settings": {"limit": "x"}}), pytest.raises(Failure, match="settings: limit: "):
        testing.call(own.all)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ('needs(http="https://a.example")', "http='https://a.example' is not a list of texts"),
        ('needs(secrets=[""])', "secrets=.* is not a list of texts"),
        ("needs(kv=1)", "kv=1 is not True or False"),
        ("needs(settings=int)", "settings is a dataclass, a TypedDict or the JSON Schema of an object"),
        ('needs(settings={"a": object()})', "settings is not a JSON Schema"),
        ("needs(kv=True)\nneeds(kv=True)", "needs is called twice"),
        ("@tool(needs={'kv': True})\ndef f() -> None:\n    'F.'\n", "write needs=Needs"),
        ("@tool(needs=Needs(tools='a/b'))\ndef f() -> None:\n    'F.'\n", "tools='a/b' is not a list of texts"),
    ],
)
def test_needs_that_are_wrong(script, said, message):
    from toolsrv import DeclarationError

    with pytest.raises(DeclarationError, match=message):
        script("from toolsrv import Needs, needs, tool\n" + said)


ENGINE = """
    import urllib.request
    from toolsrv import Failure, ToolError, http, kv, needs, settings, tool
    needs(kv=True, settings={"type": "object"})
    made = settings.load(lambda s: s["a"])
    try:
        early = kv.get("a")
    except Failure as failure:
        early = failure.code

    @tool
    def run(what: str) -> str:
        "Runs."
        match what:
            case "early": return early
            case "settings": return made.get()
            case "kv": return kv.get("a").text()
            case "http": return http.get("https://example.com").text
            case "urllib": return urllib.request.urlopen("https://example.com").read().decode()
            case "other":
                try:
                    kv.get("b")
                except Failure:
                    raise ValueError("mine")
            case "tool":
                raise ToolError("mine", code="own")
            case "odd":
                raise Failure(5, code=5)
"""


def test_in_the_engine(engine):
    answers = {
        "settings.read": [True, {"a": "settings"}],
        "kv.get": [False, {"code": "not_granted", "message": "kv is not granted: add kv = …"}],
        "http.send": [False, {"code": "dns", "message": "example.com is not known"}],
    }
    whats = ("early", "settings", "kv", "http", "urllib", "other", "tool", "odd")
    got = engine(ENGINE, *((0, {"what": what}) for what in whats), answers=answers)
    assert not got.problem and got.manifest["needs"] == {"kv": True, "settings": {"type": "object"}}
    early, made, *failed = got.calls
    assert (early["output"], made["output"]) == ('"not_granted"', '"settings"')
    assert [json.loads(call["failure"]) for call in failed] == [
        {"message": "kv is not granted: add kv = …", "code": "not_granted", "status": 502},
        {"message": "example.com is not known", "code": "dns", "status": 502},
        {"message": "example.com is not known", "code": "dns", "status": 502},
        {"message": "ValueError: mine", "status": 500},
        {"message": "mine", "code": "own", "status": 400},
        {"message": "5", "code": "unavailable", "status": 502},
    ]


def test_without_settings_where_a_tool_is_built(engine):
    got = engine(
        ENGINE,
        (0, {"what": "settings"}),
        answers={"settings.read": [False, {"code": "not_granted", "message": "none"}], "kv.get": [True, ""]},
    )
    assert not got.problem
    assert json.loads(got.calls[0]["failure"]) == {"message": "none", "code": "not_granted", "status": 502}
