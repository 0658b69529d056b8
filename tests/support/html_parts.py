"""The parts of a piece of HTML as a browser reads them."""

from html.parser import HTMLParser


class HtmlParts(HTMLParser):
    """The tags, attributes, ids, links and text of some HTML."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.shown = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids |= {value or "" for name, value in attrs if name == "id"}
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.shown += data
