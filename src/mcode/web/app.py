"""The application: the API, the pages, and one place where an error becomes an answer."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

import mcode
from mcode.errors import McodeError
from mcode.web import api, pages
from mcode.web.bulk import ChangedSinceError
from mcode.web.recording import KeyUsedError, NoSuchRowError
from mcode.web.reranking import AlreadyRunningError
from mcode.web.review import Review
from mcode.web.security import SecurityMiddleware

STATUS_OF: dict[type[McodeError], int] = {
    NoSuchRowError: 404,
    api.NoSuchResponseError: 404,
    KeyUsedError: 409,
    ChangedSinceError: 409,
    AlreadyRunningError: 409,
}


def create_app(review: Review) -> FastAPI:
    """Return the application that serves a review."""
    app = FastAPI(
        title="mcode review",
        version=mcode.__version__,
        description="Everything the review page does. Programs send `Authorization: Bearer TOKEN`.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # the usual page of documentation asks other sites for its scripts
        redoc_url=None,
    )
    app.state.review = review
    app.include_router(api.router)
    app.include_router(pages.router)
    app.add_exception_handler(McodeError, _expected)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _http)
    app.add_middleware(SecurityMiddleware, guard=review.guard)
    return app


def _expected(_request: Request, error: Exception) -> JSONResponse:
    status = next((code for kind, code in STATUS_OF.items() if isinstance(error, kind)), 422)
    return JSONResponse({"error": _sendable(f"{error}")}, status_code=status)


def _not_valid(_request: Request, error: Exception) -> JSONResponse:
    said = "it cannot be used"
    if isinstance(error, RequestValidationError) and error.errors():
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        said = f"{where}: {first['msg']}"
    return JSONResponse({"error": _sendable(said)}, status_code=422)


def _http(_request: Request, error: Exception) -> JSONResponse:
    code = error.status_code if isinstance(error, HTTPException) else 500
    said = str(error.detail) if isinstance(error, HTTPException) else "a defect of mcode"
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    return JSONResponse({"error": _sendable(said)}, status_code=code, headers=headers)


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")[:1000]
