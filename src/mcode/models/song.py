"""Two mixtures and the mapping between them: the density f(y | x) of Song, Wu, Jermaine & Ranka (2007).

The context x is a mixture of components U_i, the responses y one of components V_j, and p(V_j | U_i) says which
responses go with which context:

    f(y | x) = sum_i p(x in U_i) * sum_j p(V_j | U_i) * f(y | V_j),   p(x in U_i) = f(x | U_i) p(U_i) / f(x).

Expectation-maximisation with the posterior b_kij of both components of row k; each step raises the likelihood of the
rows (of x and y together where the components of x are fitted as well, of y given x where they are not).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from mcode._arrays import Floats
from mcode._progress import advance
from mcode.models.components import Bernoullis, Components, Covariance, Products, gaussians

Variant = Literal["full", "split", "direct"]
ResponseKind = Literal["bernoulli", "gaussian"]
CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Plan:
    """How the density is fitted; `detector.song.SongCAD` explains the parameters."""

    variant: Variant
    n_context: int
    n_response: int
    covariance: Covariance
    responses: ResponseKind
    restarts: int
    max_iter: int
    tolerance: float


@dataclass(frozen=True)
class Mixture:
    """Components, how often each occurs, and the log-likelihood after each iteration of the fit."""

    share: Floats
    components: Components
    history: list[float] = field(default_factory=list)

    def log_parts(self, M: Floats) -> Floats:
        """Return log(share_i * density_i) of each row, shape (n, k)."""
        return self.components.log_density(M) + _log(self.share)


@dataclass(frozen=True)
class MappedMixtures:
    """f(y | x) by two mixtures and the mapping p(V_j | U_i)."""

    context: Mixture
    response: Components
    mapping: Floats  # (n_context, n_response), rows sum to 1
    history: list[float] = field(default_factory=list)

    def log_density(self, A: Floats, B: Floats) -> Floats:
        """Return log f(y | x) of each row."""
        parts = self.context.log_parts(A)
        return np.asarray(self._posterior(A, B)[0] - np.logaddexp.reduce(parts, axis=1))

    def _posterior(self, A: Floats, B: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return log f(x, y) of each row, and the sums of b_kij over j, over i, and over k."""
        n, (n_u, n_v) = len(A), self.mapping.shape
        of_u, of_v, of_rows = np.empty((n, n_u)), np.empty((n, n_v)), np.zeros((n_u, n_v))
        log_joint = np.empty(n)
        a, b, log_mapping = self.context.log_parts(A), self.response.log_density(B), _log(self.mapping)
        at_once = max(1, CELLS_AT_ONCE // (n_u * n_v))
        for start in range(0, n, at_once):
            rows = slice(start, start + at_once)
            cells = a[rows, :, None] + log_mapping + b[rows, None, :]
            top = cells.max(axis=(1, 2), keepdims=True)
            np.exp(cells - top, out=cells)
            total = cells.sum(axis=(1, 2), keepdims=True)
            cells /= total
            log_joint[rows] = (np.log(total) + top)[:, 0, 0]
            of_u[rows], of_v[rows] = cells.sum(axis=2), cells.sum(axis=1)
            of_rows += cells.sum(axis=0)
        return log_joint, of_u, of_v, of_rows

    def improved(self, A: Floats, B: Floats, *, everything: bool) -> tuple[MappedMixtures, float]:
        """Return the next step of expectation-maximisation, and the log-likelihood before it.

        With `everything` all parameters move and the likelihood is that of x and y together; otherwise only the mapping
        moves, and the likelihood is that of y given x.
        """
        log_joint, of_u, of_v, of_rows = self._posterior(A, B)
        mapping = of_rows / np.maximum(of_rows.sum(axis=1, keepdims=True), 1e-300)
        if not everything:
            log_context = np.logaddexp.reduce(self.context.log_parts(A), axis=1)
            return replace(self, mapping=mapping), float((log_joint - log_context).sum())
        context = Mixture(of_u.mean(axis=0), self.context.components.fitted(A, of_u))
        return replace(self, context=context, response=self.response.fitted(B, of_v), mapping=mapping), float(
            log_joint.sum()
        )


def fit_song(A: Floats, B: Floats, plan: Plan, rng: np.random.Generator) -> MappedMixtures:
    """Fit f(y | x) to context A of shape (n, p) and responses B of shape (n, d), the best of several restarts."""
    best: MappedMixtures | None = None
    for attempt in range(plan.restarts):
        advance("fit the mixtures", attempt, plan.restarts)
        found = _fit_once(A, B, plan, rng)
        if best is None or found.history[-1] > best.history[-1]:
            best = found
    advance("fit the mixtures", plan.restarts, plan.restarts)
    assert best is not None
    return best


def _fit_once(A: Floats, B: Floats, plan: Plan, rng: np.random.Generator) -> MappedMixtures:
    context = gaussians(plan.n_context, A.shape[1], plan.covariance)
    response = _response_components(plan, plan.n_response, B.shape[1])
    if plan.variant == "direct":
        return _climb(_direct(A, B, plan, rng), A, B, plan, everything=False)
    u = fit_mixture(A, context, plan.n_context, plan, rng)
    v = fit_mixture(B, response, plan.n_response, plan, rng)
    start = MappedMixtures(u, v.components, np.repeat(v.share[None], plan.n_context, axis=0))
    return _climb(_with_mapping(start, v, A, B), A, B, plan, everything=plan.variant == "full")


def _response_components(plan: Plan, k: int, n_columns: int) -> Components:
    if plan.responses == "bernoulli":
        return Bernoullis(np.full((k, n_columns), 0.5))
    return gaussians(k, n_columns, plan.covariance)


def _with_mapping(start: MappedMixtures, v: Mixture, A: Floats, B: Floats) -> MappedMixtures:
    """Start the mapping where both mixtures, fitted apart, put their rows; smoothed, for a zero would stay zero."""
    together = _posterior_of(start.context, A).T @ _posterior_of(v, B) + 1e-3
    return replace(start, mapping=together / together.sum(axis=1, keepdims=True))


def _direct(A: Floats, B: Floats, plan: Plan, rng: np.random.Generator) -> MappedMixtures:
    """Fit one mixture to x and y together; its marginals are U and V, which occur together at the start."""
    k, p = plan.n_context, A.shape[1]
    both = np.hstack([A, B])
    if plan.responses == "bernoulli":
        parts = Products(gaussians(k, p, plan.covariance), _response_components(plan, k, B.shape[1]), p)
        found = fit_mixture(both, parts, k, plan, rng)
        assert isinstance(found.components, Products)
        u, v = found.components.first, found.components.second
    else:
        found = fit_mixture(both, gaussians(k, both.shape[1], plan.covariance), k, plan, rng)
        assert not isinstance(found.components, Products)
        whole = found.components
        u, v = whole.part(slice(p)), whole.part(slice(p, None))  # type: ignore[attr-defined]
    mapping = np.full((k, k), 0.1 / k) + 0.9 * np.eye(k)
    return MappedMixtures(Mixture(found.share, u), v, mapping)


def _climb(state: MappedMixtures, A: Floats, B: Floats, plan: Plan, *, everything: bool) -> MappedMixtures:
    history: list[float] = []
    for _ in range(plan.max_iter):
        better, log_likelihood = state.improved(A, B, everything=everything)
        history.append(log_likelihood)
        if _settled(history, plan.tolerance, len(A)):
            break
        state = better
    return replace(state, history=history)


def fit_mixture(M: Floats, components: Components, k: int, plan: Plan, rng: np.random.Generator) -> Mixture:
    """Fit an ordinary mixture of k components by expectation-maximisation, from the rows nearest to k random ones."""
    seeds = M[rng.choice(len(M), size=k, replace=len(M) < k)]
    distance = (seeds**2).sum(axis=1) - 2.0 * M @ seeds.T
    weight = np.full((len(M), k), 0.1 / k)
    weight[np.arange(len(M)), distance.argmin(axis=1)] += 0.9
    state, history = Mixture(weight.mean(axis=0), components.fitted(M, weight)), []
    for _ in range(plan.max_iter):
        parts = state.log_parts(M)
        log_density = np.logaddexp.reduce(parts, axis=1)
        history.append(float(log_density.sum()))
        if _settled(history, plan.tolerance, len(M)):
            break
        weight = np.exp(parts - log_density[:, None])
        state = Mixture(weight.mean(axis=0), state.components.fitted(M, weight))
    return replace(state, history=history)


def _settled(history: list[float], tolerance: float, n: int) -> bool:
    return len(history) > 1 and history[-1] - history[-2] < tolerance * n


def _posterior_of(mixture: Mixture, M: Floats) -> Floats:
    parts = mixture.log_parts(M)
    return np.asarray(np.exp(parts - np.logaddexp.reduce(parts, axis=1, keepdims=True)))


def _log(share: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(share, 1e-300)))
