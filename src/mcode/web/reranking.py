"""Re-rank: fit anew with what the verdicts say, and reorder what is left.

Corrected rows count with their corrected responses, kept rows as they are; both are trusted. Which alarms turned out
true is learned as well: the alarms of a response that reviewers mostly keep move down.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

import mcode
from mcode._progress import advance
from mcode.data import Dataset
from mcode.detector import Audit
from mcode.detector.feedback import learned_shifts
from mcode.errors import McodeError
from mcode.explain.finding import Finding
from mcode.models import as_model
from mcode.own_words import explain_audit, named_responses
from mcode.report.summary import Cut, Summary, summarise
from mcode.web import tables as t
from mcode.web.project import Project
from mcode.web.queue_filling import Ranked, fill

LARGEST = 1.0 - 1e-12
# How far, in log odds, verdicts may move all alarms, and those of one response. The strongest alarms are judged first;
# what is true of them holds less for those that are left: more finds fewer errors where they may be anywhere.
SPREAD_OF_ALL, SPREAD_OF_SOME = 1.0, 0.25


@dataclass(frozen=True)
class Judged:
    """The rows that reviewers have judged, one entry each.

    Attributes
    ----------
    row : (n,) array, places in the data set
    wrong : (n,) boolean array, whether it was corrected
    error_probability : (n,) array, what the queue said when it was judged
    response, observed : (n,) arrays, the response named first and its recorded code
    corrections : dict, row -> response -> code
    """

    row: NDArray[np.intp]
    wrong: NDArray[np.bool_]
    error_probability: NDArray[np.float64]
    response: NDArray[np.intp]
    observed: NDArray[np.intp]
    corrections: Mapping[int, Mapping[int, int]]


def judged_rows(project: Project, data: Dataset) -> Judged:
    """Return what reviewers have decided, by the rows' places in the data set."""
    places = np.arange(len(data)) if data.places is None else data.places
    at = {int(place): k for k, place in enumerate(places)}
    c, k = t.findings.c, t.corrections.c
    with project.database.read() as connection:
        asked = select(c.row, c.status, c.error_probability, c.response, c.observed)
        rows = connection.execute(asked.where(c.status.in_(("corrected", "kept"))).order_by(c.row)).all()
        corrections: dict[int, dict[int, int]] = {}
        for row, response, after in connection.execute(select(k.row, k.response, k.after)):
            corrections.setdefault(at[row], {})[response] = after
    return Judged(
        row=np.array([at[row.row] for row in rows], np.intp),
        wrong=np.array([row.status == "corrected" for row in rows], bool),
        error_probability=np.array([row.error_probability for row in rows], np.float64),
        response=np.array([row.response for row in rows], np.intp),
        observed=np.array([row.observed for row in rows], np.intp),
        corrections=corrections,
    )


def corrected_data(data: Dataset, judged: Judged) -> Dataset:
    """Return the data set with the corrections made."""
    Y = data.Y.copy()
    for row, cells in judged.corrections.items():
        for place, code in cells.items():
            Y[row, place] = code
    return dataclasses.replace(data, Y=Y)


def relearned_log_odds(found: Audit, judged: Judged) -> NDArray[np.float64]:
    """Return the log odds that each row is wrong, moved by what the verdicts say about alarms like it."""
    n_responses = found.rho.shape[1]
    first = found.response_error_probability.argmax(axis=1)
    own = found.codes[np.arange(len(first)), first].astype(np.intp)
    log_odds = _log_odds(found.error_probability)
    if not len(judged.row):
        return log_odds
    shifts = learned_shifts(
        _log_odds(judged.error_probability),
        _groups(judged.response, judged.observed, n_responses),
        judged.wrong,
        1 + 3 * n_responses,
        np.r_[SPREAD_OF_ALL, np.full(3 * n_responses, SPREAD_OF_SOME)],
    )
    return np.asarray(log_odds + shifts[_groups(first, own, n_responses)].sum(axis=1))


def _groups(response: NDArray[np.intp], code: NDArray[np.intp], n_responses: int) -> NDArray[np.intp]:
    """Return the groups of an alarm: all alarms, those of its response, those of its response with its value."""
    both = 1 + n_responses + 2 * response + np.minimum(code, 1)
    return np.column_stack([np.zeros(len(response), np.intp), 1 + response, both])


def _log_odds(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    p = np.clip(probability, 1.0 - LARGEST, LARGEST)
    return np.asarray(np.log(p) - np.log1p(-p))


def reranked(data: Dataset, judged: Judged, auditing: Mapping[str, Any]) -> tuple[Audit, NDArray[np.intp]]:
    """Audit with what the verdicts say; return the audit and the rows that are not judged, most suspicious first."""
    right = corrected_data(data, judged)
    options = dict(auditing)
    model = as_model(options.pop("model", "dbr"), options.pop("learner", None))
    found = mcode.audit(right.X, named_responses(right), model=model, **options)
    log_odds = relearned_log_odds(found, judged)
    found = dataclasses.replace(found, error_probability=1.0 / (1.0 + np.exp(-log_odds)))
    order = np.lexsort((-found.outlier_score, -log_odds))
    left = np.ones(len(data), bool)
    left[judged.row] = False
    return found, order[left[order]]


def rerank(project: Project) -> int:
    """Fit anew with the verdicts and make what is left the queue; return how many verdicts were used."""
    data = project.read_source()
    judged = judged_rows(project, data)
    found, order = reranked(data, judged, project.source.auditing)
    size = int(project.fact("queue_size"))
    rows = order[: max(0, size - len(judged.row))]
    findings = explain_audit(found, corrected_data(data, judged), rows)
    ranked = Ranked(data, found, findings, _summary(project, data, found, findings))
    fill(project.database, ranked, note={"verdicts": len(judged.row)})
    return len(judged.row)


def _summary(project: Project, data: Dataset, found: Audit, findings: list[Finding]) -> Summary:
    before = project.fact("summary")
    flagged = found.ranking[: before["cut"]["n_flagged"]]
    return summarise(
        found,
        flagged,
        Cut(**before["cut"]),
        source=before["source"],
        n_features=data.X.shape[1],
        label_names=data.label_names,
        first_named=[finding.responses[0].name for finding in findings],
        model=before["model"],
        score=before["score"],
    )


class AlreadyRunningError(McodeError):
    """A second re-rank while one is running."""

    def __str__(self) -> str:
        return "the rows are being re-ranked already"


@dataclass(frozen=True)
class JobState:
    """How far a job is.

    Attributes
    ----------
    state : "idle", "running", "done" or "failed"
    stage, done, total : what it is doing, and how much of that is done
    message : str, what came of it
    """

    state: str = "idle"
    stage: str = ""
    done: int = 0
    total: int = 0
    message: str = ""


class RerankJob:
    """Re-ranking in the background, one at a time.

    Parameters
    ----------
    work : function that re-ranks and returns how many verdicts it used
    """

    def __init__(self, work: Callable[[], int]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self.state = JobState()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, unless it is running already."""
        with self._lock:
            if self.state.state == "running":
                raise AlreadyRunningError
            self.state = JobState("running", "begin")
        self._thread = threading.Thread(target=self._run, name="rerank", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with mcode.reporting(self._note):
                advance("begin", 0, 1)
                used = self._work()
        except McodeError as error:
            self.state = JobState("failed", message=str(error))
        except Exception as error:  # a defect must be told, not lost in a thread
            self.state = JobState("failed", message=f"this is a defect of mcode ({type(error).__name__}: {error})")
        else:
            self.state = JobState("done", message=f"Re-ranked with {used:,} verdicts.")

    def _note(self, stage: str, done: int, total: int) -> None:
        self.state = JobState("running", stage, done, total)

    def join(self, seconds: float) -> None:
        """Wait for the end."""
        if self._thread is not None:
            self._thread.join(seconds)
