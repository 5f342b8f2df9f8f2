"""One part of a file -> its lines of the result."""

from __future__ import annotations

import numpy as np

from mcode.data import Dataset
from mcode.detector import MCODE
from mcode.own_words import explain_new, named_responses, written_values
from mcode.ranking import conformal_p_value, own_p_value
from mcode.report.table import Table, id_column


def score_part(detector: MCODE, data: Dataset, explain_above: float) -> Table:
    """Return the columns of the result for some rows; `rank` is still 0, because the other parts are not known."""
    Y = named_responses(data)
    error = detector.error_probability(data.X, Y)
    blame = detector.response_error_probability(data.X, Y)
    rho = detector.transform(data.X, Y)
    worst = blame.argmax(axis=1)
    codes = detector.encoding_.encode(Y)
    rows = np.arange(len(data))
    code, likely = codes[rows, worst], rho[rows, worst]
    if detector.n_values_ is None:
        expected = np.where(likely < 0.5, 1 - code, code)
    else:
        expected = detector.space_.expected(data.X, codes)[rows, worst]
    written = written_values(detector.encoding_, data)
    scores = detector.outlier_score(data.X, Y)
    reference = detector.reference_score_
    # What detector.p_value returns, without reading the rows once more.
    p_value = own_p_value(scores) if reference is None else conformal_p_value(scores, reference)
    table: Table = {
        id_column(data.id_name): data.row_ids.tolist(),
        "rank": [0] * len(data),
        "score": scores.tolist(),
        "p_value": p_value.tolist(),
        "error_probability": error.tolist(),
        "response": [data.label_names[j] for j in worst],
        "observed": [str(written[j][int(c)]) for j, c in zip(worst, code, strict=True)],
        "expected": [str(written[j][int(c)]) for j, c in zip(worst, expected, strict=True)],
        "probability": likely.tolist(),
        "sentence": [""] * len(data),
    }
    explain_into(table, detector, data, np.flatnonzero(error >= explain_above).tolist())
    return table


def explain_into(table: Table, detector: MCODE, data: Dataset, rows: list[int]) -> None:
    """Name and explain the suspicious response of some rows."""
    if not rows:
        return
    for row, finding in zip(rows, explain_new(detector, data.take(rows)), strict=True):
        first = finding.responses[0]
        table["response"][row] = first.name
        table["observed"][row], table["expected"][row] = str(first.observed), str(first.expected)
        table["probability"][row] = first.probability
        table["sentence"][row] = finding.sentence
