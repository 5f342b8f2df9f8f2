"""Everything the page does, as an API."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from sqlalchemy import Connection, delete, insert, select
from starlette.background import BackgroundTask

from mcode.errors import ParameterError
from mcode.web import schemas as s
from mcode.web import tables as t
from mcode.web.bulk import judge_all, preview
from mcode.web.export import patch_text, write_table
from mcode.web.health import confusion_lines, response_lines
from mcode.web.packing import KINDS
from mcode.web.progress import open_by, progress
from mcode.web.project import read_fact
from mcode.web.queue import hold, next_row, page, release
from mcode.web.recording import Verdict, once_more, record_in, undo_last
from mcode.web.review import Review, Served, Who
from mcode.web.rows import LONGEST_NAME, cell_text, listed, origins_of, record_lines, shortened, whole

SENTENCES: dict[int | str, dict[str, Any]] = {
    code: {"model": s.Error, "description": said}
    for code, said in {
        400: "it is no JSON",
        401: "who is it?",
        403: "from another site",
        404: "there is no such thing",
        409: "something changed in between",
        413: "too large",
        421: "wrong host",
        422: "it cannot be used",
    }.items()
}
router = APIRouter(prefix="/api", responses=SENTENCES)


def _progress(connection: Connection) -> dict[str, Any]:
    return dataclasses.asdict(progress(connection))


@router.get("/project", tags=["project"])
def get_project(review: Served, who: Who) -> dict[str, Any]:
    """Return what is reviewed: the source, its columns and responses, saved views, counts, and who you are."""
    about, project = review.project.about, review.project
    with project.database.read() as connection:
        by_response, by_kind = open_by(connection, "response"), open_by(connection, "kind")
        views = connection.execute(select(t.views).order_by(t.views.c.name)).all()
        summary = read_fact(connection, "summary")
        return {
            "source": shortened(summary["source"], LONGEST_NAME),
            "n_rows": read_fact(connection, "n_rows"),
            "id_name": shortened(read_fact(connection, "id_name") or "row", LONGEST_NAME),
            "model": summary["model"],
            "score": summary["score"],
            "ranking": read_fact(connection, "ranking"),
            "responses": [
                {"place": at, "name": shortened(about.names[at], LONGEST_NAME), "open": count}
                for at, count in sorted(by_response.items(), key=lambda item: (-item[1], item[0]))
            ],
            "kinds": [{"kind": kind, "text": text, "open": by_kind.get(kind, 0)} for kind, text in KINDS.items()],
            "views": [{"name": view.name, "who": view.who, "filter": json.loads(view.query)} for view in views],
            "progress": _progress(connection),
            "who": who,
            "may_rename": review.guard.token is not None,
            "scores_new_rows": review.scorer is not None,
        }


@router.get("/progress", tags=["project"])
def get_progress(review: Served) -> s.ProgressAnswer:
    """Return how far the review is."""
    with review.project.database.read() as connection:
        return s.ProgressAnswer(**_progress(connection))


@router.get("/rows", tags=["queue"])
def get_rows(review: Served, query: Annotated[s.RowsQuery, Query()]) -> s.RowsAnswer:
    """Return a page of the queue, most suspicious first."""
    wanted = query.as_filter()
    with review.project.database.read() as connection:
        found = page(connection, wanted, query.limit, s.cursor_of(query.after))
        lines = [s.RowLine(**listed(row, review.project.about)) for row in found]
        more = lines[-1].cursor if len(lines) == query.limit else None
        return s.RowsAnswer(rows=lines, after=more, count=wanted.count(connection))


@router.get("/rows/{row}", tags=["queue"])
def get_row(review: Served, who: Who, row: s.RowNumber, every_response: bool = False) -> s.RowAnswer:
    """Return everything about a row: context, responses with the suspicious ones first, evidence, repair, record."""
    with review.project.database.read() as connection:
        return s.RowAnswer(**whole(connection, row, review.project.about, who, every_response=every_response))


@router.get("/rows/{row}/cells/{place}", tags=["queue"], response_class=PlainTextResponse)
def get_cell(review: Served, row: s.RowNumber, place: s.Place) -> PlainTextResponse:
    """Return the whole text of a cell of the context."""
    with review.project.database.read() as connection:
        return PlainTextResponse(storable_text(cell_text(connection, row, place)))


def storable_text(text: str) -> str:
    """Return text that can be sent: without halves of characters."""
    return text.encode("utf-8", "replace").decode("utf-8")


@router.post("/next", tags=["queue"])
def post_next(review: Served, who: Who, asked: s.NextRequest) -> s.NextAnswer:
    """Return the most suspicious row that nobody else is looking at, and hold it for you."""
    with review.project.database.write() as connection:
        row = _next(connection, review, who, asked)
        return s.NextAnswer(row=row, progress=s.ProgressAnswer(**_progress(connection)))


def _next(connection: Connection, review: Review, who: str, asked: s.NextRequest) -> s.RowAnswer | None:
    row = next_row(connection, asked.filter.as_filter(), who, s.cursor_of(asked.after))
    return None if row is None else s.RowAnswer(**whole(connection, row, review.project.about, who))


@router.post("/rows/{row}/hold", tags=["queue"])
def post_hold(review: Served, who: Who, row: s.RowNumber) -> s.Hold:
    """Hold a row for you while you look at it; another reviewer who holds it keeps it."""
    with review.project.database.write() as connection:
        other = hold(connection, row, who)
        return s.Hold(held=other is None, held_by=other)


@router.delete("/rows/{row}/hold", tags=["queue"])
def delete_hold(review: Served, who: Who, row: s.RowNumber) -> s.Hold:
    """Let a row go."""
    release(review.project.database, row, who)
    return s.Hold(held=False, held_by=None)


@router.post("/rows/{row}/verdicts", tags=["verdicts"])
def post_verdict(review: Served, who: Who, row: s.RowNumber, given: s.VerdictRequest) -> s.VerdictAnswer:
    """Record a verdict; when this answers, it is on disk."""
    values = _checked_values(review, given)
    verdict = Verdict(given.key, row, given.kind, who, given.seen, values)

    def work() -> s.VerdictAnswer:
        with review.project.database.write() as connection:
            recorded = record_in(connection, [verdict])[0]
            following = None if given.next is None else _next(connection, review, who, given.next)
            return s.VerdictAnswer(
                recorded=s.RecordedVerdict(**dataclasses.asdict(recorded)),
                next=following,
                progress=s.ProgressAnswer(**_progress(connection)),
            )

    return once_more(work)


def _checked_values(review: Review, given: s.VerdictRequest) -> dict[int, int] | None:
    """Return the values of a verdict, each a choice of its response."""
    if given.values is None:
        if given.kind == "change":
            raise ParameterError("values", None, "the values that the responses shall have")
        return None
    choices = review.project.about.choices
    for value in given.values:
        if value.response >= len(choices):
            raise ParameterError("response", value.response, f"a place from 0 to {len(choices) - 1}")
        if value.code >= len(choices[value.response]):
            raise ParameterError("code", value.code, f"from 0 to {len(choices[value.response]) - 1}")
    return {value.response: value.code for value in given.values}


@router.post("/undo", tags=["verdicts"])
def post_undo(review: Served, who: Who, asked: s.UndoRequest) -> s.UndoAnswer:
    """Take your last verdict back; all of them, where it was one on all rows of a filter."""
    undone = once_more(lambda: undo_last(review.project.database, key=asked.key, who=who))
    with review.project.database.write() as connection:
        row = None
        if undone:
            hold(connection, undone[0].row, who)
            row = s.RowAnswer(**whole(connection, undone[0].row, review.project.about, who))
        return s.UndoAnswer(undone=len(undone), row=row, progress=s.ProgressAnswer(**_progress(connection)))


@router.post("/bulk/preview", tags=["verdicts"])
def post_bulk_preview(review: Served, who: Who, asked: s.BulkQuery) -> s.BulkPreview:
    """Return what a verdict on all rows of a filter would change; nothing is recorded."""
    with review.project.database.read() as connection:
        shown = preview(connection, asked.filter.as_filter(), asked.kind, who, review.project.about)
        return s.BulkPreview(**dataclasses.asdict(shown))


@router.post("/bulk", tags=["verdicts"])
def post_bulk(review: Served, who: Who, asked: s.BulkRequest) -> s.BulkAnswer:
    """Record one verdict on all rows of a filter, if they are still those that the preview showed."""
    database = review.project.database
    made = once_more(
        lambda: judge_all(database, asked.filter.as_filter(), asked.kind, who, key=asked.key, stamp=asked.stamp)
    )
    with database.read() as connection:
        return s.BulkAnswer(
            judged=len(made),
            repeated=any(recorded.repeated for recorded in made),
            progress=s.ProgressAnswer(**_progress(connection)),
        )


@router.get("/verdicts", tags=["verdicts"])
def get_verdicts(
    review: Served,
    before: Annotated[int | None, Query(ge=1, le=s.LARGEST_INT)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> list[s.RecordLine]:
    """Return the record of the project, the newest entry first."""
    c = t.verdicts.c
    asked = select(t.verdicts).order_by(c.seq.desc()).limit(limit)
    with review.project.database.read() as connection:
        entries = connection.execute(asked if before is None else asked.where(c.seq < before)).all()
        origins = origins_of(connection, {entry.row for entry in entries})
        return [s.RecordLine(**line) for line in record_lines(entries, review.project.about, origins)]


@router.put("/views/{name}", tags=["views"])
def put_view(review: Served, who: Who, name: s.ShortName, asked: s.ViewRequest) -> dict[str, str]:
    """Save a filter under a name."""

    def work() -> None:
        with review.project.database.write() as connection:
            connection.execute(delete(t.views).where(t.views.c.name == name))
            query = json.dumps(asked.filter.model_dump())
            connection.execute(insert(t.views).values(name=name, query=query, who=who))

    once_more(work)
    return {"name": name}


@router.delete("/views/{name}", tags=["views"])
def delete_view(review: Served, name: s.ShortName) -> dict[str, str]:
    """Forget a saved filter."""
    with review.project.database.write() as connection:
        connection.execute(delete(t.views).where(t.views.c.name == name))
    return {"name": name}


@router.get("/responses", tags=["responses"])
def get_responses(review: Served) -> list[dict[str, Any]]:
    """Return the health of each response, the one with most expected errors first."""
    with review.project.database.read() as connection:
        return response_lines(connection, review.project.about)


@router.get("/responses/{place}", tags=["responses"])
def get_response(review: Served, place: s.Place) -> dict[str, Any]:
    """Return the health of a response, and its confusions with others."""
    about = review.project.about
    if place >= len(about.names):
        raise NoSuchResponseError(place)
    with review.project.database.read() as connection:
        line = next(line for line in response_lines(connection, about) if line["place"] == place)
        return {**line, "confusions": confusion_lines(connection, place, about)}


class NoSuchResponseError(ParameterError):
    """A place at which there is no response."""

    def __init__(self, place: int) -> None:
        super().__init__("the response", place, "the place of one of the responses")


@router.post("/reviewer", tags=["project"])
def post_reviewer(review: Served, asked: s.ReviewerRequest) -> JSONResponse:
    """Say who you are, where the address alone lets you in; accounts and proxies say it themselves."""
    if review.guard.token is None:
        raise ParameterError("the name", asked.name, "that of your account; log in with another one")
    answer = JSONResponse({"who": asked.name})
    answer.set_cookie(
        f"{review.guard.cookie}_name", quote(asked.name), httponly=True, samesite="lax", max_age=365 * 86400, path="/"
    )
    return answer


@router.get("/rerank", tags=["learning"])
def get_rerank(review: Served) -> s.JobAnswer:
    """Return how far the re-ranking is."""
    return s.JobAnswer(**dataclasses.asdict(review.job.state))


@router.post("/rerank", tags=["learning"], status_code=202)
def post_rerank(review: Served) -> s.JobAnswer:
    """Fit anew with the verdicts, in the background, and reorder what is left."""
    review.job.start()
    return s.JobAnswer(**dataclasses.asdict(review.job.state))


@router.get("/export/table", tags=["out"], response_class=FileResponse)
def get_table(review: Served) -> FileResponse:
    """Return the source table with all corrections made, in its own format and order of columns."""
    source = Path(review.project.source.path)
    suffix = "".join(source.suffixes[-2:] if source.suffix.lower() == ".gz" else source.suffixes[-1:])
    name = f"{source.name.removesuffix(suffix)}-corrected{suffix}"
    folder = tempfile.TemporaryDirectory(prefix="mcode-")
    out = Path(folder.name) / f"table{suffix}"
    try:
        write_table(review.project, out)
    except BaseException:
        folder.cleanup()
        raise
    done = BackgroundTask(folder.cleanup)
    return FileResponse(out, filename=name, media_type="application/octet-stream", background=done)


@router.get("/export/patch", tags=["out"], response_class=Response)
def get_patch(review: Served) -> Response:
    """Return what was corrected, as CSV: row, id, response, before, after, who, when."""
    headers = {"Content-Disposition": 'attachment; filename="patch.csv"'}
    return Response(patch_text(review.project), media_type="text/csv; charset=utf-8", headers=headers)


@router.post("/score", tags=["new data"])
def post_score(review: Served, asked: s.ScoreRequest) -> list[dict[str, Any]]:
    """Score rows with the saved model that the server was started with; return one finding for each."""
    if review.scorer is None:
        raise ParameterError("the model", None, "given when the server starts: mcode review PROJECT --model MODEL")
    return review.scorer.score(asked.rows)
