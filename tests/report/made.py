"""Findings and summaries made by hand, for tests of what is said about them."""

import numpy as np

from mcode.explain.finding import Change, Evidence, Finding, Repair, ResponseFinding
from mcode.report.histogram import Histogram
from mcode.report.summary import Cut, ResponseHealth, Summary


def finding(row=0, *, id=None, rank=1, name="insulin", error=0.9, sentence="`insulin` is absent.", extra=()):
    response = ResponseFinding(
        name=name,
        observed=0,
        expected=1,
        probability=0.03 / rank,
        error_probability=error,
        p_value=0.01,
        evidence=(Evidence("feature", "hba1c", 9.1, 2.0), Evidence("response", "diabetes", 1, -0.5), *extra),
        sentence=sentence,
    )
    other = ResponseFinding("statin", "no", "no", 0.97, 0.02, 0.8)
    return Finding(
        row=row,
        id=id,
        rank=rank,
        score=5.0 - rank,
        p_value=0.001 * rank,
        error_probability=error,
        responses=(response, other),
        repair=Repair((Change(name, 0, 1),), 2e-6, 0.4),
        sentence=sentence,
    )


def summary(n_flagged=1, source="visits.csv", names=("insulin", "statin")):
    scores = np.linspace(0.0, 5.0, 100)
    return Summary(
        source=source,
        n_rows=100,
        n_features=7,
        n_responses=len(names),
        model="dbr",
        score="learned",
        error_rate=0.02,
        cut=Cut("fdr", 0.1, n_flagged, 0.1 * n_flagged),
        scores=Histogram.of(scores, np.arange(100 - n_flagged, 100)),
        health=tuple(
            ResponseHealth(name, 0.1 * (j + 1), 0.9 - 0.3 * j, 3.0 - j, n_flagged, 0.5 if j else None)
            for j, name in enumerate(names)
        ),
    )
