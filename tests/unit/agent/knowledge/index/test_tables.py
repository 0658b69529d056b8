"""Links of passages, as the tables give them."""

import pytest

from agent.knowledge.index.tables import passage_of


@pytest.mark.parametrize(
    ("prefix", "url", "place", "page", "link"),
    [
        ("https://d", "", "anchor", 0, "https://d/a%20b.md#lunch"),
        ("https://d/", "", "anchor", 3, "https://d/a%20b.md#page=3"),
        ("/f?p=", "https://git/a.py", "line", 0, "https://git/a.py#L5"),
        ("/f?p=", "", "", 0, "/f?p=a%20b.md"),
        ("", "https://chat/p1", "", 0, "https://chat/p1"),
        ("", "", "anchor", 0, ""),
    ],
)
def test_the_link_leads_to_the_place_that_its_host_understands(
    prefix: str, url: str, place: str, page: int, link: str
) -> None:
    link_parts = (7 << 20, "lunch", url, place, prefix)
    row = (*link_parts, "a b.md", "Alpha", "Lunch", "At noon.", 5, page, "2026-01-02", "public", 1)
    assert passage_of(row).url == link
