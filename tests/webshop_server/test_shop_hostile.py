"""No request makes the shop fail: whatever its path, query, form or headers are, the status is below 500."""

from __future__ import annotations

from itertools import product

import pytest

PATHS = (
    "/fixed_0",
    "/%00",
    "/fixed_99999999999999999999",
    "/..%2f..%2fetc/passwd",
    "/" + "a" * 5000,
    "/search_results/%ff%fe/shirt/1",
    "/search_results/fixed_0/['shirt'/1",
    "/search_results/fixed_0/{{7*7}}/999999999999999999999999",
    "/item_page/fixed_0/B0/__import__('os')/1/{}",
    "/item_page/fixed_0/B0/shirt/-1/{'a': " + "{" * 300 + "}",
    "/item_sub_page/fixed_0/B0/shirt/1/Description/{'size': float('inf')}",
    "/done/fixed_0/B0/{'x': ['y']}",
    "/api/sessions/fixed_0/state?x=%F0%9F%92%A9",
    "/robots.txt/../admin",
)
BODIES = (
    {},
    {"data": {"search_query": "\x00\ud83d".encode("utf-8", "surrogatepass")}},
    {"data": {"search_query": ["a", "b"], "action": "x" * 2000}},
    {"data": b"{" * 2000, "content_type": "application/json"},
    {"data": b"\xff\xfe", "content_type": "application/x-www-form-urlencoded; charset=utf-77"},
    {"data": b"--x\r\n\r\n", "content_type": "multipart/form-data; boundary=x"},
)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_no_request_makes_the_shop_fail(client, method: str) -> None:
    for path, body in product(PATHS, BODIES):
        headers = {"Cookie": "session=\x7f; =;;", "X-Forwarded-For": "'; DROP TABLE products"}
        assert client.open(path, method=method, headers=headers, **body).status_code < 500, (path, body)
    assert client.get("/fixed_0").status_code == 200
