"""What is sent and answered under /api, as the OpenAPI description shows it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from mcode.web.database import storable
from mcode.web.filters import Filter
from mcode.web.queue import Cursor

LARGEST_INT = 2**31 - 1
RowNumber = Annotated[int, Field(ge=0, le=LARGEST_INT, description="place of the row in the file, from 0")]
Place = Annotated[int, Field(ge=0, le=LARGEST_INT, description="place of the response")]
Key = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_-]{8,64}$"),
    Field(description="made by the client; the same key sent again changes nothing and gets the same answer"),
]
Status = Literal["open", "corrected", "kept", "skipped", "conflict", "all"]
Kind = Literal["missing", "added", "value", "several", "unclear"]
CursorText = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}\.[0-9]{1,9}$")]
ShortText = Annotated[str, StringConstraints(max_length=200), AfterValidator(storable)]


def printable(text: str) -> str:
    """Refuse text that cannot be seen."""
    if not text.isprintable() or not text.strip():
        raise ValueError("printable text is needed")
    return text.strip()


ShortName = Annotated[str, StringConstraints(min_length=1, max_length=80), AfterValidator(printable)]


def cursor_of(text: str | None) -> Cursor | None:
    """Return the place in the queue that a cursor names."""
    if text is None:
        return None
    position, _, row = text.partition(".")
    return int(position), int(row)


class Sent(BaseModel):
    """What is sent: a name that is not known is refused."""

    model_config = ConfigDict(extra="forbid")


class FilterQuery(Sent):
    """Which findings are meant."""

    status: Status = "open"
    response: Place | None = Field(default=None, description="place of the response that is named first")
    kind: Kind | None = None
    at_least: float = Field(default=0.0, ge=0.0, le=1.0, allow_inf_nan=False, description="smallest error probability")
    text: ShortText = Field(default="", description="words that the context or the id must hold")

    def as_filter(self) -> Filter:
        """Return the filter."""
        return Filter(self.status, self.response, self.kind, self.at_least, self.text)


class RowsQuery(FilterQuery):
    """A page of the queue."""

    limit: int = Field(default=50, ge=1, le=200)
    after: CursorText | None = Field(default=None, description="the cursor of the last row of the page before")

    def as_filter(self) -> Filter:
        """Return the filter."""
        return Filter(self.status, self.response, self.kind, self.at_least, self.text)


class NextRequest(Sent):
    """Which row shall come next."""

    filter: FilterQuery = FilterQuery()
    after: CursorText | None = Field(default=None, description="only rows after this place in the queue")


class Value(Sent):
    """A value that a response shall have."""

    response: Place
    code: int = Field(ge=0, le=255, description="place of the value among the response's choices")


class VerdictRequest(Sent):
    """A verdict on a row."""

    key: Key
    kind: Literal["accept", "change", "keep", "skip"]
    seen: int = Field(default=0, ge=0, le=LARGEST_INT, description="`latest` of the row as it was shown")
    values: list[Value] | None = Field(
        default=None, max_length=100_000, description="for `change`, and for `accept` the repair as it was shown"
    )
    next: NextRequest | None = Field(default=None, description="answer with the next row as well")


class UndoRequest(Sent):
    """Take the last verdict of this reviewer back."""

    key: Key


class BulkQuery(Sent):
    """A verdict on all rows of a filter."""

    filter: FilterQuery = FilterQuery()
    kind: Literal["accept", "keep", "skip"]


class BulkRequest(BulkQuery):
    """A verdict on all rows of a filter, as it was shown."""

    key: Key
    stamp: str = Field(max_length=64, description="`stamp` of the preview")


class ViewRequest(Sent):
    """A filter under a name."""

    filter: FilterQuery


class ReviewerRequest(Sent):
    """Who you are."""

    name: ShortName


class ScoreRequest(Sent):
    """Rows to be scored, each as column: value."""

    rows: list[dict[str, bool | int | float | str | list[str] | None]] = Field(min_length=1, max_length=10_000)


class Error(BaseModel):
    """What went wrong, in one sentence."""

    error: str


class ProgressAnswer(BaseModel):
    """How far the review is."""

    findings: int
    counts: dict[str, int]
    reviewed: int
    errors_left: float


class RowLine(BaseModel):
    """A row of the queue in a list."""

    row: int
    id: str
    cursor: str
    error_probability: float
    error_text: str
    score: float
    response: int
    response_name: str
    observed: str
    expected: str
    probability: float
    probability_text: str
    kind: str
    kind_text: str
    status: str
    sentence: str


class Cell(BaseModel):
    """A cell of the context."""

    column: str
    value: str
    empty: bool
    cut: bool


class EvidencePiece(BaseModel):
    """One thing that moved the expectation of a response."""

    kind: str
    name: str
    value: str
    weight: float
    width: float


class ResponseLine(BaseModel):
    """A response of a row."""

    place: int
    name: str
    choices: list[str]
    observed: int
    expected: int
    current: int
    probability: float
    probability_text: str
    error_probability: float
    error_text: str
    suspicious: bool
    sentence: str
    evidence: list[EvidencePiece]


class RepairLine(BaseModel):
    """A change of the proposed repair."""

    place: int
    name: str
    before: str
    after: str
    code: int


class RecordChange(BaseModel):
    """What an entry of the record changed."""

    place: int
    name: str
    before: str
    after: str


class RecordLine(BaseModel):
    """An entry of the record."""

    seq: int
    row: int
    id: str
    kind: str
    who: str
    at: str
    changes: list[RecordChange]
    undoes: int | None
    batch: str | None
    undone: bool
    standing: bool


class RowAnswer(RowLine):
    """Everything about a row."""

    p_value: float
    latest: int
    held_by: str | None
    context: list[Cell]
    responses: list[ResponseLine]
    n_responses: int
    repair: list[RepairLine]
    odds_before: str
    odds_after: str
    record: list[RecordLine]


class RowsAnswer(BaseModel):
    """A page of the queue."""

    rows: list[RowLine]
    after: str | None
    count: int


class NextAnswer(BaseModel):
    """The next row, None where there is none left, and how far the review is."""

    row: RowAnswer | None
    progress: ProgressAnswer


class RecordedVerdict(BaseModel):
    """A verdict as it stands in the record."""

    seq: int
    row: int
    kind: str
    status: str
    repeated: bool


class VerdictAnswer(BaseModel):
    """A verdict that is on disk, and the next row."""

    recorded: RecordedVerdict
    next: RowAnswer | None
    progress: ProgressAnswer


class UndoAnswer(BaseModel):
    """What was taken back, and its row."""

    undone: int
    row: RowAnswer | None
    progress: ProgressAnswer


class BulkPreview(BaseModel):
    """What a bulk verdict would do."""

    rows: int
    changes: list[dict[str, Any]]
    left_out: int
    stamp: str


class BulkAnswer(BaseModel):
    """What a bulk verdict did."""

    judged: int
    repeated: bool
    progress: ProgressAnswer


class JobAnswer(BaseModel):
    """How far the re-ranking is."""

    state: str
    stage: str
    done: int
    total: int
    message: str


class Hold(BaseModel):
    """Who a row is held for."""

    held: bool
    held_by: str | None
