"""Who may ask: the token as a cookie, as a bearer token, and once in the address."""

from __future__ import annotations

from http.cookies import SimpleCookie

import pytest

from moorage.http.transport import Request
from moorage.ui.session import Session

TOKEN = "right-token"
SESSION = Session(6480, TOKEN)


def entry(query: str, path: str = "/") -> dict[str, str] | None:
    response = SESSION.entry(Request("GET", path, query))
    return None if response is None else response.headers


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"cookie": f"moorage-6480={TOKEN}"}, True),
        ({"cookie": f"other=1; moorage-6480={TOKEN}"}, True),
        ({"authorization": f"Bearer {TOKEN}"}, True),
        ({"authorization": f"bearer  {TOKEN} "}, True),
        ({}, False),
        ({"cookie": f"moorage-6481={TOKEN}"}, False),
        ({"cookie": "moorage-6480=wrong"}, False),
        ({"cookie": "moorage-6480="}, False),
        ({"cookie": 'moorage-6480="\\303\\251'}, False),
        ({"cookie": "\x00=;;=[]"}, False),
        ({"authorization": "Bearer wrong", "cookie": f"moorage-6480={TOKEN}"}, False),
        ({"authorization": "Bearer é\xff"}, False),
        ({"authorization": f"Basic {TOKEN}"}, False),
    ],
)
def test_the_token_lets_in(headers: dict[str, str], allowed: bool) -> None:
    assert SESSION.allows(headers) is allowed


def test_the_first_visit_gets_a_cookie_that_scripts_and_other_sites_do_not_see() -> None:
    headers = entry(f"token={TOKEN}&a=b")

    assert headers is not None
    assert headers["Location"] == "/?a=b"
    [cookie] = SimpleCookie(headers["Set-Cookie"]).values()
    assert (cookie.key, cookie.value) == ("moorage-6480", TOKEN)
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
    assert cookie["expires"] == cookie["max-age"] == ""


@pytest.mark.parametrize("query", ["", "token=", "token=wrong", "token=%C3%A9", "token=%FF%00"])
def test_a_wrong_token_gets_none(query: str) -> None:
    assert entry(query) is None


def test_the_first_visit_never_leads_to_another_site() -> None:
    headers = entry(f"token={TOKEN}", path="//elsewhere.example/")

    assert headers is not None
    assert headers["Location"] == "/elsewhere.example/"


def test_tokens_are_random() -> None:
    assert len({Session(1).token for _ in range(20)}) == 20
    assert len(Session(1).token) >= 32
