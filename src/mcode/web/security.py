"""What every request has to pass: size, host, origin, and who it is from.

On loopback the address carries a random token, which the first request turns into a cookie that scripts cannot read.
Beyond loopback a request comes with the session of an account, or from a reverse proxy that names the user.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcode.web.accounts import Doorkeeper

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LARGEST_BODY = 1 << 20
LARGEST_SCORE = 16 << 20
SAFE = ("GET", "HEAD")
WITHOUT_NAME = ("/login", "/static/")  # what somebody who is not known yet may see

Identify = Callable[[Request], "str | None"]


@dataclass(frozen=True)
class Guard:
    """Who may come in.

    Attributes
    ----------
    hosts : names that the Host header may have, without port
    reviewer : str, who somebody with the token is, unless he says another name
    token : str or None, the secret of the address; None where accounts or a proxy say who it is
    doorkeeper : Doorkeeper or None, for accounts
    user_header : str or None, the header in which a reverse proxy names the user
    proxies : addresses from which that header is believed
    cookie : str, name of the cookie; it differs by port, because cookies do not
    secure : bool, whether the cookie is sent over https only
    """

    hosts: frozenset[str]
    reviewer: str = "reviewer"
    token: str | None = None
    doorkeeper: Doorkeeper | None = None
    user_header: str | None = None
    proxies: frozenset[str] = field(default_factory=lambda: frozenset({"127.0.0.1", "::1"}))
    cookie: str = "mcode"
    secure: bool = False

    def who(self, request: Request) -> str | None:
        """Return who a request is from; None where nobody says."""
        if self.user_header is not None:
            client = request.client.host if request.client else ""
            name = request.headers.get(self.user_header, "") if client in self.proxies else ""
            return name if 0 < len(name) <= 80 and name.isprintable() else None
        given = self.bearer(request) or request.cookies.get(self.cookie, "")
        if self.doorkeeper is not None:
            return self.doorkeeper.who(given) if given else None
        if self.token is None or not secrets.compare_digest(given.encode(), self.token.encode()):
            return None
        return self.said_name(request)

    def bearer(self, request: Request) -> str:
        """Return the token of an Authorization header, which programs send."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    def said_name(self, request: Request) -> str:
        """Return the name that somebody with the token chose."""
        name = request.headers.get("x-reviewer", "") or unquote(request.cookies.get(f"{self.cookie}_name", ""))
        return name if 0 < len(name) <= 80 and name.isprintable() else self.reviewer


class SecurityMiddleware:
    """Lets a request through if its host, origin, size and sender are right, and puts our headers on every answer."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app, self.guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        request = Request(scope)
        refused = self._refusal(request)
        if refused is not None:
            await refused(scope, receive, self._with_headers(send))
            return
        limit = LARGEST_SCORE if scope["path"] == "/api/score" else LARGEST_BODY
        await self.app(scope, _Counted(receive, limit), self._with_headers(send))

    def _refusal(self, request: Request) -> Callable[[Scope, Receive, Send], Awaitable[None]] | None:
        headers = request.headers
        if host_of(headers.get("host", "")) not in self.guard.hosts:
            return _no(421, "this server does not answer for that host")
        if request.method not in SAFE and not self._same_origin(request):
            return _no(403, "the request comes from another site")
        length = headers.get("content-length", "0")
        limit = LARGEST_SCORE if request.url.path == "/api/score" else LARGEST_BODY
        if not length.isdecimal() or int(length[:20]) > limit:
            return _no(413, f"more than {limit:,} bytes were sent")
        if request.method in SAFE and self.guard.token is not None and "token" in request.query_params:
            return self._welcome(request)
        who = self.guard.who(request)
        if who is None and not request.url.path.startswith(WITHOUT_NAME):
            return self._ask_who(request)
        request.scope["who"] = who
        return None

    def _same_origin(self, request: Request) -> bool:
        """Return whether a request that changes something comes from our own page, or from no page at all."""
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site")
        if origin is not None:
            return origin != "null" and urlsplit(origin).netloc == request.headers.get("host")
        if site is not None:
            return site == "same-origin"
        # A browser says one of them; a program shows its token in a header, which no other site can make it send.
        return bool(self.guard.bearer(request)) or self.guard.user_header is not None

    def _welcome(self, request: Request) -> Response:
        """Turn the token of the address into a cookie, and the address into one without it."""
        token = self.guard.token or ""
        if not secrets.compare_digest(request.query_params["token"].encode(), token.encode()):
            return _no(401, "the token is wrong; the server printed the right address when it started")
        answer = RedirectResponse(request.url.path if request.url.path.startswith("/") else "/", status_code=303)
        set_cookie(answer, self.guard, token)
        return answer

    def _ask_who(self, request: Request) -> Response:
        wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api")
        if wants_page and self.guard.doorkeeper is not None:
            return RedirectResponse("/login", status_code=303)
        if self.guard.token is not None:
            return _no(401, "open the address that the server printed when it started; it carries the token")
        return _no(401, "log in first")

    def _with_headers(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = Headers(raw=message.get("headers", []))
                added = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items() if k.lower() not in present]
                message = {**message, "headers": [*message.get("headers", []), *added]}
            await send(message)

        return sending


def set_cookie(answer: Response, guard: Guard, token: str) -> None:
    """Give the browser the secret, out of reach of scripts and of other sites."""
    answer.set_cookie(guard.cookie, token, httponly=True, samesite="lax", secure=guard.secure, path="/")


def host_of(header: str) -> str:
    """Return the name in a Host header, without its port.

    Examples
    --------
    >>> host_of("localhost:8642"), host_of("[::1]:8642"), host_of("evil.example")
    ('localhost', '::1', 'evil.example')
    """
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""


class _Counted:
    """A body that is read no further than its limit."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._left, self._limit = receive, limit, limit

    async def __call__(self) -> Any:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise HTTPException(413, f"more than {self._limit:,} bytes were sent")
        return message


def _no(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status_code=status)
