"""What a request has to pass: host, origin, token, size; and who comes in beyond loopback."""

import pytest
from starlette.testclient import TestClient

from mcode.errors import ParameterError
from mcode.web.accounts import Doorkeeper, add_account
from mcode.web.app import create_app
from mcode.web.review import Review
from mcode.web.security import Guard
from mcode.web.server import Door, guard_of
from web.conftest import HOST, TOKEN, client_of

BASE = f"http://{HOST}:8642"


@pytest.fixture
def browser(project):
    """Return a client that behaves as a browser that opened the address."""
    client = client_of(project)
    client.get(f"/?token={TOKEN}")
    client.headers["Origin"] = BASE
    return client


def test_the_token_becomes_a_cookie_that_scripts_cannot_read(project):
    answer = client_of(project).get(f"/list?token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/list")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


@pytest.mark.parametrize("path", ["/", "/list", "/api/project", "/api/rows", "/api/openapi.json", "/api/export/table"])
def test_nothing_is_shown_without_the_token(project, path):
    client = client_of(project)
    assert client.get(path).status_code == 401
    assert client.get(f"{path}?token=wrong").status_code == 401
    assert client.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_the_cookie_lets_the_browser_in(browser):
    assert browser.get("/").status_code == 200
    assert browser.post("/api/next", json={}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://{HOST}:9999"},
        {"Origin": f"http://{HOST}:8642.evil.example"},
    ],
)
def test_another_site_cannot_change_anything(browser, headers):
    assert browser.post("/api/next", json={}, headers=headers).status_code == 403


def test_a_cookie_alone_changes_nothing(browser):
    del browser.headers["Origin"]
    assert browser.post("/api/next", json={}).status_code == 403
    assert browser.post("/api/next", json={}, headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
    assert browser.post("/api/next", json={}, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", f"{HOST}.evil.example:8642", "", "[::1", "169.254.169.254"])
def test_another_host_name_is_refused(browser, host):
    assert browser.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("path", ["/", "/api/project", "/static/common.js", "/nowhere", "/api/rows/999999"])
def test_every_answer_carries_our_policy_and_no_cors(browser, path):
    headers = browser.get(path, headers={"Origin": "http://evil.example"}).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert not [name for name in headers if name.startswith("access-control")]


def test_bodies_are_limited(browser):
    large = b'{"text": "' + b"x" * (1 << 20) + b'"}'
    assert browser.post("/api/next", content=large).status_code == 413
    parts = (b"x" * 65536 for _ in range(20))  # without a length in the header
    assert browser.post("/api/next", content=parts).status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/review.css%00",
    ],
)
def test_no_path_leaves_our_own_files(browser, path):
    answer = browser.get(path)
    assert answer.status_code == 404
    assert "import" not in answer.text


def test_a_reviewer_says_a_name(browser):
    assert browser.get("/api/project").json()["who"] == "anna"
    assert browser.post("/api/reviewer", json={"name": "Zoë Ω"}).status_code == 200
    assert browser.get("/api/project").json()["who"] == "Zoë Ω"
    assert browser.post("/api/reviewer", json={"name": "a\nb"}).status_code == 422


def test_beyond_loopback_somebody_must_say_who_comes(project):
    with pytest.raises(ParameterError, match="--add-account"):
        guard_of(Door("0.0.0.0"), project, 8642)
    add_account(project.database, "anna", "a long password")
    with pytest.raises(ParameterError, match="--name"):
        guard_of(Door("0.0.0.0"), project, 8642)
    assert guard_of(Door("0.0.0.0", names=("review.example.org",)), project, 8642).doorkeeper is not None
    assert guard_of(Door(), project, 8642).token


def test_a_password_must_be_long(project):
    with pytest.raises(ParameterError, match="at least 10 characters"):
        add_account(project.database, "anna", "short")


@pytest.fixture
def team(project):
    add_account(project.database, "anna", "a long password")
    guard = Guard(frozenset({"review.example.org"}), doorkeeper=Doorkeeper(project.database))
    client = TestClient(create_app(Review(project, guard)), base_url="https://review.example.org")
    client.headers.update({"Origin": "https://review.example.org", "Accept": "text/html"})
    return client


def test_accounts_log_in_and_out(team):
    assert "password" in team.get("/").text
    wrong = team.post("/login", data={"name": "anna", "password": "a wrong password"})
    assert wrong.status_code == 401
    team.post("/login", data={"name": "anna", "password": "a long password"})
    assert team.get("/api/project").json()["who"] == "anna"
    assert team.post("/api/reviewer", json={"name": "ben"}).status_code == 422
    team.post("/logout")
    assert team.get("/api/project").status_code == 401


def test_who_guesses_passwords_has_to_wait(team):
    for _ in range(10):
        team.post("/login", data={"name": "anna", "password": "a wrong password"})
    assert team.post("/login", data={"name": "anna", "password": "a long password"}).status_code == 401


def test_a_proxy_is_believed_from_its_own_address_only(project):
    for address, status in (("10.0.0.1", 200), ("10.0.0.2", 401)):
        guard = Guard(frozenset({HOST}), user_header="X-Forwarded-User", proxies=frozenset({"10.0.0.1"}))
        app = create_app(Review(project, guard))
        client = TestClient(app, base_url=BASE, client=(address, 1))
        assert client.get("/api/project", headers={"X-Forwarded-User": "ben"}).status_code == status
        assert client.get("/api/project").status_code == 401
