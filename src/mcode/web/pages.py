"""The pages: Jinja renders what stands still, scripts ask the API for what moves; everything from data is escaped."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FunctionLoader, StrictUndefined
from sqlalchemy import select
from starlette.exceptions import HTTPException

from mcode.report.histogram import Histogram, bars
from mcode.report.words import count_of, percent
from mcode.web import tables as t
from mcode.web.api import get_response, get_verdicts
from mcode.web.health import response_lines
from mcode.web.packing import KINDS
from mcode.web.progress import progress
from mcode.web.project import read_fact
from mcode.web.replay import STATUSES
from mcode.web.review import Review, Served, Who
from mcode.web.rows import LONGEST_NAME, shortened
from mcode.web.schemas import LARGEST_INT, Place
from mcode.web.security import set_cookie

HERE = Path(str(files("mcode.web")))
LOOK = Path(str(files("mcode.report"))) / "templates" / "page.css"  # the pages look like the report
STATIC = {
    "base.css": (LOOK, "text/css"),
    "review.css": (HERE / "static" / "review.css", "text/css"),
    "common.js": (HERE / "static" / "common.js", "text/javascript"),
    "review.js": (HERE / "static" / "review.js", "text/javascript"),
    "list.js": (HERE / "static" / "list.js", "text/javascript"),
    "icon.svg": (HERE / "static" / "icon.svg", "image/svg+xml"),
}
WORDS = {
    "open": "to review",
    "corrected": "corrected",
    "kept": "kept as it is",
    "skipped": "skipped",
    "conflict": "in conflict",
}
VERDICTS = {
    "accept": "accepted the repair",
    "change": "changed by hand",
    "keep": "kept as it is",
    "skip": "skipped",
    "undo": "took back",
}

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


def _template(name: str) -> str:
    return (HERE / "templates" / name).read_text(encoding="utf-8")


environment = Environment(
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    loader=FunctionLoader(_template),
)
environment.filters |= {"percent": percent, "count": count_of}
environment.globals |= {"kinds": KINDS, "statuses": STATUSES, "words": WORDS, "verdict_words": VERDICTS}


def render(name: str, review: Review, who: str, **context: Any) -> HTMLResponse:
    """Return a page with what all pages show."""
    with review.project.database.read() as connection:
        shared = {
            "source": shortened(read_fact(connection, "summary")["source"], LONGEST_NAME),
            "id_name": shortened(read_fact(connection, "id_name") or "row", LONGEST_NAME),
            "how_far": progress(connection),
            "who": who,
            "may_rename": review.guard.token is not None,
            "may_log_out": review.guard.doorkeeper is not None,
        }
    return HTMLResponse(environment.get_template(name).render(**shared, **context))


@router.get("/")
def review_page(review: Served, who: Who) -> HTMLResponse:
    """Show one row at a time."""
    return render("review.html", review, who, here="review")


@router.get("/list")
def list_page(review: Served, who: Who) -> HTMLResponse:
    """Show the rows of a filter, and judge them together."""
    return render("list.html", review, who, here="list")


@router.get("/overview")
def overview_page(review: Served, who: Who) -> HTMLResponse:
    """Show how far the review is, how scores are distributed, and how healthy each response is."""
    with review.project.database.read() as connection:
        summary = read_fact(connection, "summary")
        responses = response_lines(connection, review.project.about)
        n_rows = read_fact(connection, "n_rows")
        ranking = read_fact(connection, "ranking")
    drawn = bars(Histogram(**{name: tuple(values) for name, values in summary["scores"].items()}))
    edges = summary["scores"]["edges"]
    return render(
        "overview.html", review, who, here="overview", summary=summary, responses=responses, bars=drawn, edges=edges,
        n_rows=n_rows, ranking=ranking,
    )  # fmt: skip


@router.get("/responses/{place}")
def response_page(review: Served, who: Who, place: Place) -> HTMLResponse:
    """Show one response: its health, and what it is confused with."""
    line = get_response(review, place)
    likely = line["likely"]
    edges = tuple(k / max(1, len(likely)) for k in range(len(likely) + 1))
    unlikely = tuple(count if edges[k + 1] <= 0.5 else 0 for k, count in enumerate(likely))
    drawn = bars(Histogram(edges, tuple(likely), unlikely)) if likely else []
    with review.project.database.read() as connection:
        c = t.findings.c
        asked = select(c.row, c.id, c.error_probability, c.status, c.sentence).where(c.response == place)
        worst = connection.execute(asked.order_by(c.position).limit(10)).all()
    shown = [
        (row.row, shortened(row.id, LONGEST_NAME), row.error_probability, row.status, shortened(row.sentence, 1200))
        for row in worst
    ]
    return render("response.html", review, who, here="overview", line=line, bars=drawn, worst=shown)


@router.get("/record")
def record_page(
    review: Served, who: Who, before: Annotated[int | None, Query(ge=1, le=LARGEST_INT)] = None
) -> HTMLResponse:
    """Show every verdict, the newest first."""
    lines = get_verdicts(review, before=before, limit=100)
    return render("record.html", review, who, here="record", lines=lines, before=before)


@router.get("/login")
def login_page(review: Served) -> Response:
    """Ask who it is."""
    if review.guard.doorkeeper is None:
        return RedirectResponse("/", status_code=303)
    return HTMLResponse(environment.get_template("login.html").render(failed=False))


@router.post("/login")
async def log_in(review: Served, request: Request) -> Response:
    """Open a session, if name and password are right."""
    if review.guard.doorkeeper is None:
        return RedirectResponse("/", status_code=303)
    body = (await request.body()).decode("utf-8", "replace")
    form = {name: values[0] for name, values in parse_qs(body).items()}
    token = review.guard.doorkeeper.log_in(form.get("name", ""), form.get("password", ""))
    if token is None:
        return HTMLResponse(environment.get_template("login.html").render(failed=True), status_code=401)
    answer = RedirectResponse("/", status_code=303)
    set_cookie(answer, review.guard, token)
    return answer


@router.post("/logout")
def log_out(review: Served, request: Request) -> Response:
    """End a session."""
    if review.guard.doorkeeper is not None:
        review.guard.doorkeeper.log_out(request.cookies.get(review.guard.cookie, ""))
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(review.guard.cookie)
    return answer


@router.get("/static/{name}")
def static(name: str) -> Response:
    """Return one of our own files; there are no others."""
    if name not in STATIC:
        raise HTTPException(404, "there is no such file")
    path, kind = STATIC[name]
    return Response(path.read_bytes(), media_type=kind, headers={"Cache-Control": "no-cache"})
