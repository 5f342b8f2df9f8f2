"""Start the server: a free port, an address with a token, and the browser."""

from __future__ import annotations

import getpass
import ipaddress
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import uvicorn

from mcode.errors import McodeError, ParameterError
from mcode.web.accounts import Doorkeeper, n_accounts
from mcode.web.app import create_app
from mcode.web.project import Project
from mcode.web.review import Review
from mcode.web.scoring import Scorer
from mcode.web.security import Guard

LOOPBACK = ("127.0.0.1", "localhost", "::1")
USUAL_PORT = 8642


class PortTakenError(McodeError):
    """A port that another program listens on."""

    def __init__(self, port: int) -> None:
        self.port = port
        super().__init__(port)

    def __str__(self) -> str:
        return f"port {self.port} is taken by another program; name another one with --port."


@dataclass(frozen=True)
class Door:
    """Where the server listens and whom it lets in.

    Attributes
    ----------
    host : str, the address to listen on
    port : int or None; None takes the usual one, or a free one
    names : names by which browsers call the server, beside loopback
    user_header : str or None, the header in which a reverse proxy names the user
    proxies : addresses of reverse proxies
    """

    host: str = "127.0.0.1"
    port: int | None = None
    names: Sequence[str] = field(default_factory=tuple)
    user_header: str | None = None
    proxies: Sequence[str] = ("127.0.0.1", "::1")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def guard_of(door: Door, project: Project, port: int) -> Guard:
    """Return who may come in: whoever has the token on loopback, accounts or the proxy's users beyond it."""
    hosts = frozenset((*LOOPBACK, *(name.lower() for name in door.names)))
    cookie = f"mcode_{port}"
    if door.user_header is not None:
        return Guard(hosts, user_header=door.user_header, proxies=frozenset(door.proxies), cookie=cookie)
    if door.is_loopback and not door.names:
        return Guard(hosts, reviewer=_login_name(), token=secrets.token_urlsafe(24), cookie=cookie)
    if not n_accounts(project.database):
        raise ParameterError(
            "--host",
            door.host,
            "a loopback address unless there are accounts (mcode review PROJECT --add-account NAME) or a reverse proxy "
            "that names the user (--user-header)",
        )
    if not door.names:
        raise ParameterError("--host", door.host, "given together with --name, the name that browsers call it by")
    return Guard(hosts, doorkeeper=Doorkeeper(project.database), cookie=cookie)


def _login_name() -> str:
    try:
        return getpass.getuser() or "reviewer"
    except (OSError, KeyError):  # a user without a name
        return "reviewer"


def listen(door: Door) -> socket.socket:
    """Return a socket that listens on the door's address."""
    family = socket.AF_INET6 if ":" in door.host else socket.AF_INET
    wanted = USUAL_PORT if door.port is None else door.port
    for port in [wanted] if door.port is not None else [wanted, 0]:
        opened = socket.socket(family)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((door.host, port))
        except OSError as error:
            opened.close()
            if not isinstance(error, socket.gaierror) and port == wanted and door.port is None:
                continue
            if error.errno is not None and "in use" in (error.strerror or ""):
                raise PortTakenError(port) from error
            raise ParameterError("--host", door.host, f"an address of this machine ({error.strerror})") from error
        opened.listen(128)
        return opened
    raise PortTakenError(wanted)


def serve(
    project: Project,
    door: Door,
    *,
    scorer: Scorer | None = None,
    open_browser: bool = True,
    say: Callable[[str], None] = print,
) -> None:
    """Serve a project until the program is stopped; say the address first."""
    opened = listen(door)
    port = opened.getsockname()[1]
    guard = guard_of(door, project, port)
    name = door.names[0] if door.names else ("localhost" if door.host == "localhost" else door.host)
    address = f"http://{f'[{name}]' if ':' in name else name}:{port}/"
    if guard.token is not None:
        address += f"?token={guard.token}"
    app = create_app(Review(project, guard, scorer))
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", server_header=False, proxy_headers=False, timeout_graceful_shutdown=5)
    )
    say(address)
    if open_browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    try:
        server.run(sockets=[opened])
    finally:
        opened.close()
        project.database.close()
