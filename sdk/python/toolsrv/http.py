"""Requests, with the names of httpx.

from toolsrv import http, needs

needs(http=["https://api.example.com"])

answer = http.get("https://api.example.com/cities", params={"name": "Ulm"})
answer.raise_for_status()
cities = answer.json()

An answer comes as a whole. What the operator has not granted raises a RequestError whose code is "not_granted".
"""

from __future__ import annotations

import json as _json
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit, urlunsplit

from ._errors import Failure
from ._exchange import exchange

_Headers = Mapping[str, str] | Iterable[tuple[str, str]]
_Params = Mapping[str, Any] | Iterable[tuple[str, Any]] | str


class HTTPError(Exception):
    """The base of all errors of this module but InvalidURL. It has the request."""

    def __init__(self, message: str, *, request: Request | None = None) -> None:
        super().__init__(message)
        self.request = request


class InvalidURL(Exception):
    """A URL that can't be asked for."""


class HTTPStatusError(HTTPError, Failure):
    """An answer whose status says that something went wrong. `code` is "bad_status".

    The message has neither the rest of the URL nor the body, which may hold what clients should not see.
    """

    def __init__(self, message: str, *, request: Request | None, response: Response) -> None:
        Failure.__init__(self, message, code="bad_status")
        self.request = request
        self.response = response


class RequestError(HTTPError, Failure):
    """There is no answer. `code` says why."""

    def __init__(self, message: str, *, request: Request | None = None, code: str = "unavailable") -> None:
        Failure.__init__(self, message, code=code)
        self.request = request


class TransportError(RequestError):
    """There is no answer, for a reason below HTTP."""


class TimeoutException(TransportError):
    """It took too long."""


class ConnectError(TransportError):
    """There is no connection: the name is not known, nobody listens, or it is not who it should be."""


class TooManyRedirects(RequestError):
    """The server sends from one place to the next."""


_ERRORS: dict[str, type[RequestError]] = {
    "timeout": TimeoutException,
    "connect": ConnectError,
    "dns": ConnectError,
    "tls": ConnectError,
    "unavailable": ConnectError,
    "redirect": TooManyRedirects,
}


class Headers(MutableMapping[str, str]):
    """Headers, by names in any case. One that stands several times has its values joined by commas."""

    def __init__(self, headers: _Headers | None = None) -> None:
        pairs = (
            headers.multi_items() if isinstance(headers, Headers) else headers.items() if isinstance(headers, Mapping) else headers or ()
        )
        self._list = [(str(name), str(value)) for name, value in pairs]

    def __getitem__(self, name: str) -> str:
        values = self.get_list(name)
        if not values:
            raise KeyError(name)
        return ", ".join(values)

    def __setitem__(self, name: str, value: str) -> None:
        at = next((i for i, (own, _) in enumerate(self._list) if own.lower() == name.lower()), len(self._list))
        kept = [(i, pair) for i, pair in enumerate(self._list) if pair[0].lower() != name.lower()]
        before = [pair for i, pair in kept if i < at]
        self._list = [*before, (name, value), *(pair for i, pair in kept if i > at)]

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self._list = [pair for pair in self._list if pair[0].lower() != name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and any(own.lower() == name.lower() for own, _ in self._list)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.lower() for name, _ in self._list))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"Headers({self._list!r})"

    def get_list(self, name: str) -> list[str]:
        """Returns all values of a header."""
        return [value for own, value in self._list if own.lower() == name.lower()]

    def multi_items(self) -> list[tuple[str, str]]:
        """Returns names and values as they stand."""
        return list(self._list)


class Request:
    """What is asked for."""

    def __init__(
        self,
        method: str,
        url: str,
        *,
        params: _Params | None = None,
        headers: _Headers | None = None,
        content: str | bytes | None = None,
        data: Mapping[str, Any] | None = None,
        json: Any = None,
    ) -> None:
        self.method = method.upper()
        self.url = _with_params(str(url), params)
        self.headers = Headers(headers)
        self.content, kind = _encoded(content, data, json)
        if kind and "content-type" not in self.headers:
            self.headers["Content-Type"] = kind

    def __repr__(self) -> str:
        return f"<Request({self.method!r}, {self.url!r})>"


class Response:
    """An answer. Those of tests are made as httpx makes them: Response(200, json={…})."""

    def __init__(
        self,
        status_code: int,
        *,
        headers: _Headers | None = None,
        content: bytes | str | None = None,
        text: str | None = None,
        json: Any = None,
        request: Request | None = None,
        url: str = "",
    ) -> None:
        self.status_code = status_code
        self.headers = Headers(headers)
        self.content, kind = _encoded(content if text is None else text, None, json)
        if text is not None:
            kind = "text/plain; charset=utf-8"
        if kind and "content-type" not in self.headers:
            self.headers["Content-Type"] = kind
        self.request = request
        self.url = url or (request.url if request else "")

    def __repr__(self) -> str:
        return f"<Response [{self.status_code} {self.reason_phrase}]>"

    @property
    def reason_phrase(self) -> str:
        try:
            return HTTPStatus(self.status_code).phrase
        except ValueError:
            return ""

    @property
    def is_success(self) -> bool:
        return 200 <= self.status_code <= 299

    @property
    def is_redirect(self) -> bool:
        return 300 <= self.status_code <= 399

    @property
    def is_client_error(self) -> bool:
        return 400 <= self.status_code <= 499

    @property
    def is_server_error(self) -> bool:
        return 500 <= self.status_code <= 599

    @property
    def is_error(self) -> bool:
        return 400 <= self.status_code <= 599

    @property
    def encoding(self) -> str:
        """The encoding of the text: what the server says, or UTF-8."""
        for part in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = part.partition("=")
            if name.strip().lower() == "charset":
                encoding = value.strip().strip("\"'")
                try:
                    "".encode(encoding)
                    return encoding
                except LookupError:
                    break
        return "utf-8"

    @property
    def text(self) -> str:
        return self.content.decode(self.encoding, "replace")

    def json(self) -> Any:
        return _json.loads(self.content)

    def raise_for_status(self) -> Response:
        """Raises an HTTPStatusError unless the status says that it has worked."""
        if self.is_success:
            return self
        parts = urlsplit(self.url)
        who = f"{parts.scheme}://{parts.netloc}" if parts.netloc else "the server"
        raise HTTPStatusError(f"{who} has answered with status {self.status_code}", request=self.request, response=self)


class Client:
    """Requests that have something in common. There is nothing to close: connections are the host's."""

    def __init__(
        self,
        *,
        base_url: str = "",
        params: _Params | None = None,
        headers: _Headers | None = None,
        timeout: float | None = None,
        follow_redirects: bool = False,
    ) -> None:
        self.base_url, self.params, self.headers = base_url, params, Headers(headers)
        self.timeout, self.follow_redirects = timeout, follow_redirects

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def close(self) -> None:
        pass

    def request(
        self,
        method: str,
        url: str,
        *,
        params: _Params | None = None,
        headers: _Headers | None = None,
        content: str | bytes | None = None,
        data: Mapping[str, Any] | None = None,
        json: Any = None,
        timeout: float | None = None,
        follow_redirects: bool | None = None,
    ) -> Response:
        """Sends a request and returns its answer, whatever its status.

        `params` are added to the URL. The body is `content`, or `data` as a form, or `json`. `timeout` is in seconds; the call's own
        deadline holds all the same. A redirect is an answer unless `follow_redirects` is set and the operator allows some.
        """
        if self.base_url and not urlsplit(url).scheme:
            url = urljoin(self.base_url.rstrip("/") + "/", url.lstrip("/"))
        own = Headers(self.headers)
        own.update(Headers(headers))
        asked = Request(method, _with_params(url, self.params), params=params, headers=own, content=content, data=data, json=json)
        follow = self.follow_redirects if follow_redirects is None else follow_redirects
        return send(asked, timeout=self.timeout if timeout is None else timeout, follow_redirects=follow)

    def get(self, url: str, **more: Any) -> Response:
        return self.request("GET", url, **more)

    def head(self, url: str, **more: Any) -> Response:
        return self.request("HEAD", url, **more)

    def options(self, url: str, **more: Any) -> Response:
        return self.request("OPTIONS", url, **more)

    def post(self, url: str, **more: Any) -> Response:
        return self.request("POST", url, **more)

    def put(self, url: str, **more: Any) -> Response:
        return self.request("PUT", url, **more)

    def patch(self, url: str, **more: Any) -> Response:
        return self.request("PATCH", url, **more)

    def delete(self, url: str, **more: Any) -> Response:
        return self.request("DELETE", url, **more)


_client = Client()
request = _client.request
get = _client.get
head = _client.head
options = _client.options
post = _client.post
put = _client.put
patch = _client.patch
delete = _client.delete


def send(request: Request, *, timeout: float | None = None, follow_redirects: bool = False) -> Response:
    """Sends a request and returns its answer."""
    pairs = request.headers.multi_items()
    if "accept" not in request.headers:
        pairs.append(("Accept", "*/*"))
    try:
        answer = exchange(request.method, request.url, pairs, request.content, timeout, follow_redirects)
    except Failure as failure:
        kind = _ERRORS.get(failure.code, RequestError)
        raise kind(failure.message, request=request, code=failure.code) from None
    except ValueError as error:
        raise InvalidURL(str(error)) from None
    return Response(answer.status, headers=answer.headers, content=answer.body, request=request, url=answer.url)


def _with_params(url: str, params: _Params | None) -> str:
    if not params:
        return url
    if not isinstance(params, str):
        pairs = params.items() if isinstance(params, Mapping) else params
        params = urlencode([(name, _param(value)) for name, value in pairs if value is not None], doseq=True)
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=f"{parts.query}&{params}" if parts.query else params))


def _param(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _encoded(content: str | bytes | None, data: Mapping[str, Any] | None, json: Any) -> tuple[bytes, str]:
    """Returns a body, and the type that it has by itself."""
    if content is not None:
        if not isinstance(content, str | bytes):
            raise TypeError(f"content is a str or bytes, not {type(content).__name__}")
        return content.encode() if isinstance(content, str) else content, ""
    if data is not None:
        return urlencode(data, doseq=True).encode(), "application/x-www-form-urlencoded"
    if json is not None:
        return _json.dumps(json, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(), "application/json"
    return b"", ""
