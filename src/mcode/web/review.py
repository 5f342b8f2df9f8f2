"""The review that a server serves: the project, who may come in, what runs beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, cast

from fastapi import Depends, Request

from mcode.web.project import Project
from mcode.web.reranking import RerankJob, rerank
from mcode.web.scoring import Scorer
from mcode.web.security import Guard


@dataclass
class Review:
    """What every request needs.

    Attributes
    ----------
    project : Project
    guard : Guard
    scorer : Scorer or None, where a model was given
    job : RerankJob
    """

    project: Project
    guard: Guard
    scorer: Scorer | None = None
    job: RerankJob = field(init=False)

    def __post_init__(self) -> None:
        self.job = RerankJob(partial(rerank, self.project))


def _review(request: Request) -> Review:
    return cast(Review, request.app.state.review)


def _who(request: Request) -> str:
    return str(request.scope.get("who") or "")


Served = Annotated[Review, Depends(_review)]
Who = Annotated[str, Depends(_who)]
