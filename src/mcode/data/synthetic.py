"""Clinic visits with known truth: a realistic table in which some responses are recorded wrong on purpose.

Context (age, sex, laboratory values, a short reason for the visit, ...) makes diagnoses more or less likely, diagnoses
make each other likelier, and drugs follow diagnoses. Then a share of the rows gets an error of one of several kinds.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcode._optional import require
from mcode.corruption import Add, Drop, ErrorKind, Flip, Mismatch, Swap
from mcode.errors import ParameterError
from mcode.models.encoding import Codes

Column = NDArray[Any]

DIAGNOSES = ("diabetes", "hypertension", "obesity", "copd", "asthma", "heart_failure", "kidney_disease", "depression")
DRUGS = (
    "metformin",
    "insulin",
    "ace_inhibitor",
    "statin",
    "bronchodilator",
    "diuretic",
    "antidepressant",
    "painkiller",
)
LABELS = tuple(f"dx_{name}" for name in DIAGNOSES) + tuple(f"rx_{name}" for name in DRUGS)
DEFAULT_ERRORS: tuple[ErrorKind, ...] = (Flip(), Flip(k=2), Add(), Drop(), Swap(), Mismatch())
MISSING_SHARE = {"hba1c": 0.12, "bmi": 0.05, "smoker": 0.04, "egfr": 0.10, "reason": 0.02}
COMPLAINTS = {
    "diabetes": ("thirst and tiredness", "high sugar at home", "foot ulcer"),
    "hypertension": ("headache in the morning", "dizziness", "high pressure at home"),
    "copd": ("cough with sputum", "short of breath on stairs"),
    "asthma": ("wheezing at night", "short of breath after sport"),
    "heart_failure": ("swollen legs", "short of breath lying down"),
    "kidney_disease": ("swollen ankles", "itching and tiredness"),
    "depression": ("poor sleep", "low mood", "tiredness"),
    "": ("routine check", "back pain", "vaccination", "sore throat", "knee pain"),
}


@dataclass(frozen=True)
class Truth:
    """What was recorded wrong.

    Attributes
    ----------
    Y : (n, d) array: the responses as they should be
    recorded : (n, d) array: the responses as the table has them
    kind : (n,) array of str: the kind of error of each row, "" where it has none
    """

    Y: Codes
    recorded: Codes
    kind: Column

    @property
    def is_wrong(self) -> NDArray[np.bool_]:
        """Which rows hold an error, (n,)."""
        return np.asarray(self.cell_is_wrong.any(axis=1))

    @property
    def cell_is_wrong(self) -> NDArray[np.bool_]:
        """Which responses are wrong, (n, d)."""
        return np.asarray(self.recorded != self.Y)


@dataclass(frozen=True)
class Visits:
    """A table of clinic visits, and what is wrong in it.

    Attributes
    ----------
    columns : dict, name -> (n,) array; None where a cell is empty
    truth : Truth
    """

    columns: dict[str, Column]
    truth: Truth

    def __len__(self) -> int:
        return len(self.truth.Y)

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the responses."""
        return LABELS

    def to_arrow(self) -> Any:
        """Return the table as an Arrow table, ready for `mcode.read`."""
        arrow = require("pyarrow", extra="tables")
        return arrow.table({name: arrow.array(column.tolist()) for name, column in self.columns.items()})

    def to_pandas(self) -> Any:
        """Return the table as a pandas table."""
        return self.to_arrow().to_pandas()

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV, an empty cell where a value is missing."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            for row in zip(*(column.tolist() for column in self.columns.values()), strict=True):
                writer.writerow(["" if cell is None else cell for cell in row])


def clinic_visits(
    n_rows: int = 5000,
    *,
    error_rate: float = 0.02,
    errors: Sequence[ErrorKind] = DEFAULT_ERRORS,
    random_state: int = 0,
) -> Visits:
    """Generate clinic visits of which a known share is recorded wrong.

    Parameters
    ----------
    n_rows : int, default=5000
    error_rate : float, default=0.02
        Share of the rows that get an error.
    errors : list of kinds from mcode.corruption
        Each wrong row gets one of these, in equal numbers.
    random_state : int, default=0

    Returns
    -------
    Visits

    Examples
    --------
    >>> visits = clinic_visits(1000)
    >>> len(visits), visits.truth.is_wrong.sum(), len(visits.label_names)
    (1000, np.int64(20), 16)
    >>> list(visits.columns)[:6]
    ['visit_id', 'visit_date', 'department', 'age', 'sex', 'smoker']
    """
    if n_rows < 2:
        raise ParameterError("n_rows", n_rows, "a whole number of at least 2")
    if not 0.0 <= error_rate <= 1.0:
        raise ParameterError("error_rate", error_rate, "a number from 0 to 1")
    if not errors:
        raise ParameterError("errors", errors, "at least one kind of error")
    rng = np.random.default_rng(random_state)
    person = _people(n_rows, rng)
    responses = _responses(person, rng)
    Y = np.column_stack([responses[name] for name in (*DIAGNOSES, *DRUGS)]).astype(np.uint8)
    truth = _corrupt(Y, error_rate, errors, rng)
    context = _context(person, responses, rng)
    recorded = {name: truth.recorded[:, j] for j, name in enumerate(LABELS)}
    return Visits({**context, **recorded}, truth)


def _people(n: int, rng: np.random.Generator) -> dict[str, Column]:
    """Draw the people who visit, with what is true of them before any diagnosis."""
    age = np.clip(rng.normal(54, 18, n), 18, 96).round()
    sex = rng.choice(["F", "M"], n)
    smoker = rng.random(n) < np.where(age < 65, 0.28, 0.15)
    bmi = np.clip(rng.gamma(16, 1.7, n) + 0.03 * (age - 50), 16, 55)
    return {"age": age, "sex": sex, "smoker": smoker, "bmi": bmi}


def _draw(log_odds: Column, rng: np.random.Generator) -> NDArray[np.bool_]:
    return np.asarray(rng.random(len(log_odds)) < 1.0 / (1.0 + np.exp(-log_odds)))


def _responses(person: dict[str, Column], rng: np.random.Generator) -> dict[str, NDArray[np.bool_]]:
    """Draw diagnoses from the person and from each other, then drugs from diagnoses."""
    age, bmi, smoker = person["age"], person["bmi"], person["smoker"]
    decade = (age - 55) / 10
    r: dict[str, NDArray[np.bool_]] = {}
    r["obesity"] = _draw(2.0 * (bmi - 31), rng)
    r["diabetes"] = _draw(-3.0 + 0.5 * decade + 2.2 * r["obesity"], rng)
    r["hypertension"] = _draw(-1.6 + 0.8 * decade + 1.2 * r["obesity"] + 1.0 * r["diabetes"], rng)
    r["copd"] = _draw(-5.0 + 0.7 * decade + 3.6 * smoker, rng)
    r["asthma"] = _draw(-2.4 - 0.3 * decade - 2.0 * r["copd"], rng)
    r["heart_failure"] = _draw(-5.0 + 0.9 * decade + 2.0 * r["hypertension"] + 0.8 * r["diabetes"], rng)
    r["kidney_disease"] = _draw(-4.6 + 0.6 * decade + 1.8 * r["diabetes"] + 1.5 * r["hypertension"], rng)
    r["depression"] = _draw(-2.2 + 0.6 * (person["sex"] == "F") + 0.5 * r["copd"] + 0.5 * r["heart_failure"], rng)
    return r | _drugs(r, person, rng)


def _drugs(
    r: dict[str, NDArray[np.bool_]], person: dict[str, Column], rng: np.random.Generator
) -> dict[str, NDArray[np.bool_]]:
    d: dict[str, NDArray[np.bool_]] = {}
    d["metformin"] = _draw(-6.0 + 8.5 * r["diabetes"] - 4.0 * r["kidney_disease"], rng)
    d["insulin"] = _draw(-7.0 + 7.5 * r["diabetes"] - 3.5 * d["metformin"] + 2.0 * r["kidney_disease"], rng)
    d["ace_inhibitor"] = _draw(-5.0 + 6.5 * r["hypertension"] + 2.5 * r["heart_failure"], rng)
    d["statin"] = _draw(-5.0 + 4.0 * r["diabetes"] + 2.5 * r["hypertension"] + 0.5 * (person["age"] > 60), rng)
    d["bronchodilator"] = _draw(-6.0 + 8.5 * (r["copd"] | r["asthma"]), rng)
    d["diuretic"] = _draw(-6.0 + 8.0 * r["heart_failure"] + 2.5 * r["hypertension"], rng)
    d["antidepressant"] = _draw(-5.5 + 7.5 * r["depression"], rng)
    d["painkiller"] = _draw(-1.8 + 0.3 * (person["age"] > 60) + 0.6 * r["obesity"], rng)
    return d


def _corrupt(Y: Codes, rate: float, errors: Sequence[ErrorKind], rng: np.random.Generator) -> Truth:
    """Give a share of the rows an error; each kind sees all rows, so that it knows how frequent responses are."""
    n = len(Y)
    recorded, kind = Y.copy(), np.full(n, "", object)
    wanted = round(rate * n)
    order = rng.permutation(n)
    for e, error in enumerate(errors):
        share = wanted * (e + 1) // len(errors) - wanted * e // len(errors)
        corrupted = error.corrupt(Y, rng)
        possible = (corrupted[order] != Y[order]).any(axis=1) & (kind[order] == "")
        rows = order[possible][:share]
        recorded[rows], kind[rows] = corrupted[rows], repr(error)
    return Truth(Y, recorded, kind)


def _context(person: dict[str, Column], r: dict[str, NDArray[np.bool_]], rng: np.random.Generator) -> dict[str, Column]:
    """Return the columns a clinic would have: what is measured depends on the true diagnoses."""
    n = len(person["age"])
    days = np.sort(rng.integers(0, 730, n))
    systolic = rng.normal(118 + 0.2 * (person["age"] - 50), 9) + 22 * r["hypertension"]
    context: dict[str, Column] = {
        "visit_id": np.array([f"V{i:06d}" for i in range(n)], object),
        "visit_date": (np.datetime64("2023-01-01") + days).astype(object),
        "department": _department(r, rng),
        "age": person["age"].astype(int),
        "sex": person["sex"],
        "smoker": np.where(person["smoker"], "yes", "no"),
        "bmi": person["bmi"].round(1),
        "systolic": systolic.round().astype(int),
        "diastolic": (0.55 * systolic + rng.normal(14, 5, n)).round().astype(int),
        "hba1c": (rng.normal(5.4, 0.3, n) + r["diabetes"] * rng.gamma(5, 0.45, n)).round(1),
        "egfr": np.clip(rng.normal(98 - 0.5 * (person["age"] - 40), 10) - 38 * r["kidney_disease"], 8, 130).round(),
        "oxygen": np.clip(rng.normal(97.5, 0.9, n) - 3.5 * r["copd"] - 1.5 * r["heart_failure"], 80, 100).round(),
        "pregnant": (person["sex"] == "F") & (person["age"] < 45) & (rng.random(n) < 0.06),
        "reason": _reasons(r, rng),
    }
    for name, share in MISSING_SHARE.items():
        column = context[name].astype(object)
        column[rng.random(n) < share] = None
        context[name] = column
    return context


def _department(r: dict[str, NDArray[np.bool_]], rng: np.random.Generator) -> Column:
    out = rng.choice(["general", "general", "general", "surgery", "orthopaedics"], len(r["copd"])).astype(object)
    for name, department in (
        ("copd", "lung"),
        ("asthma", "lung"),
        ("heart_failure", "heart"),
        ("diabetes", "endocrine"),
    ):
        out[r[name] & (rng.random(len(out)) < 0.5)] = department
    return out


def _reasons(r: dict[str, NDArray[np.bool_]], rng: np.random.Generator) -> Column:
    """Return what people say: often a sign of something they have, else something ordinary."""
    n = len(r["copd"])
    out = rng.choice(COMPLAINTS[""], n).astype(object)
    for name, phrases in COMPLAINTS.items():
        if name:
            here = r[name] & (rng.random(n) < 0.35)
            out[here] = rng.choice(phrases, int(here.sum()))
    return np.array([f"{text} for {k} days" for text, k in zip(out, rng.integers(1, 60, n), strict=True)], object)
