"""schemathesis asks the API everything its description allows, and more: nothing is ever a defect of the server."""

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from mcode.cli.model_file import load_model
from mcode.web.scoring import Scorer
from web.conftest import TOKEN, client_of

HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def test_nothing_that_is_sent_breaks_the_server(project, model):
    saved = load_model(model)
    client = client_of(project, scorer=Scorer(saved.detector, saved.schema))
    app = client.app
    app.state.review.job._work = lambda: 0  # re-ranking has its own tests; here it would run a thousand times
    description = client.get("/api/openapi.json", headers=HEADERS).json()
    schema = schemathesis.openapi.from_dict(description)
    schema.app = app
    asked = set()
    for result in schema.get_all_operations():
        operation = result.ok()

        @given(
            case=operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE)
            | operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)
        )
        @settings(
            max_examples=12,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def ask(case):
            answer = case.call(base_url="http://127.0.0.1:8642", headers=HEADERS)
            assert answer.status_code < 500, (case.method, case.path, answer.text)
            asked.add((case.method.upper(), case.operation.path))

        ask()
    described = {(method.upper(), path) for path, methods in description["paths"].items() for method in methods}
    assert asked == described
