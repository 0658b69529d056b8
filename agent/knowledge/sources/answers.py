"""Answers that people saved: one Markdown file each, whose front matter says who confirmed it and who may see it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

from agent.knowledge.readers.document import front_matter
from agent.knowledge.readers.reading import read_bytes
from agent.knowledge.types import DocumentSource, IndexRun, Readable, ReadError
from agent.thread.conversation import NOBODY, PUBLIC, parse_audience

MAX_QUESTION_CHARS: Final = 300
MAX_ANSWER_CHARS: Final = 3_000
_FRONT_MATTER: Final = re.compile(r"\A---\n(?P<fields>.*?\n)---\n(?P<body>.*)\Z", re.DOTALL)
_HEADING: Final = re.compile(r"\A\s*# .*\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedAnswer:
    """A question with the answer that a person confirmed.

    ``owner`` is the Slack id of the person responsible for it, ``name`` their name. ``review`` is the day on which it
    should be reviewed. ``link`` leads to the thread it comes from; ``turn_id`` names Orion's own answer there, if there
    was one.
    """

    question: str
    answer: str
    audience: str
    owner: str
    name: str
    confirmed: date
    review: date | None = None
    link: str = ""
    turn_id: str = ""

    @property
    def key(self) -> str:
        """File name without the suffix: words of the question, and a digest of it and of the audience."""
        words = "-".join(re.findall(r"\w+", self.question.casefold())[:8])[:60] or "answer"
        digest = sha256(f"{self.audience} {self.question}".encode()).hexdigest()
        return f"{words}-{digest[:8]}"

    def is_overdue(self, today: date) -> bool:
        """Return whether its review is due."""
        return self.review is not None and self.review <= today

    def confirmation(self, today: date) -> str:
        """Return who confirmed it and when, as the source line of an answer shows it."""
        overdue = ", review overdue" if self.is_overdue(today) else ""
        return f"confirmed by {self.name}, {self.confirmed:%-d %b %Y}{overdue}"

    def to_markdown(self) -> str:
        """Return the file's text."""
        fields = {
            "audience": self.audience,
            "owner": self.owner,
            "confirmed_by": self.name,
            "confirmed": self.confirmed.isoformat(),
            "review": self.review.isoformat() if self.review else "",
            "link": self.link,
            "turn": self.turn_id,
        }
        head = "".join(f"{name}: {' '.join(value.split())}\n" for name, value in fields.items() if value)
        return f"---\n{head}---\n\n# {' '.join(self.question.split())}\n\n{self.answer.strip()}\n"

    def read(self, today: date) -> tuple[bytes, float]:
        """Return the Markdown to index, whose title says who confirmed it, and the time of confirmation."""
        title = f"{' '.join(self.question.split())} ({self.confirmation(today)})"
        text = f"{front_matter(title, self.confirmed.isoformat())}{self.answer.strip()}\n"
        confirmed = datetime.combine(self.confirmed, datetime.min.time(), UTC)
        return text.encode("utf-8", "replace"), confirmed.timestamp()


def parse_saved_answer(text: str) -> SavedAnswer:
    """Return the saved answer in a file; an unknown audience hides it. Raises ``ValueError`` with the reason."""
    found = _FRONT_MATTER.match(text.replace("\r\n", "\n"))
    heading = _HEADING.match(found["body"]) if found else None
    if found is None or heading is None:
        message = "is not a saved answer: it needs front matter and the question as its heading"
        raise ValueError(message)
    lines = (line.partition(":") for line in found["fields"].splitlines())
    fields = {name.strip(): value.strip() for name, _, value in lines}
    said = fields.get("audience", "")
    audience = PUBLIC if said == PUBLIC else parse_audience([entry.strip() for entry in said.split(",")])
    try:
        confirmed = date.fromisoformat(fields.get("confirmed", ""))
        review = date.fromisoformat(fields["review"]) if fields.get("review") else None
    except ValueError:
        message = "has no day such as 2026-11-26 under confirmed or review"
        raise ValueError(message) from None
    return SavedAnswer(
        question=heading.group().strip().removeprefix("# "),
        answer=found["body"][heading.end() :].strip(),
        audience=audience or NOBODY,
        owner=fields.get("owner", ""),
        name=fields.get("confirmed_by") or fields.get("owner", ""),
        confirmed=confirmed,
        review=review,
        link=fields.get("link", ""),
        turn_id=fields.get("turn", ""),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFolder(DocumentSource):
    """A folder of saved answers, which may be a Git working tree."""

    folder: Path

    @property
    def key(self) -> str:
        """Prefix of the keys of all its documents."""
        return f"answers:{self.folder.resolve()}"

    def answers(self) -> Iterator[tuple[Path, SavedAnswer | str]]:
        """Yield each file with its answer, or with the reason why it cannot be read."""
        for file in sorted(self.folder.glob("*.md")):
            try:
                yield file, parse_saved_answer(read_bytes(file)[0].decode("utf-8"))
            except UnicodeDecodeError:
                yield file, "is not text in UTF-8"
            except (ValueError, ReadError) as error:
                yield file, error.reason if isinstance(error, ReadError) else str(error)

    def documents(self, run: IndexRun) -> Iterator[Readable]:
        """Yield every saved answer."""
        if not self.folder.is_dir():
            run.missing.append(self.key)
            run.failed.append((str(self.folder), "does not exist"))
            return
        today = datetime.now(UTC).date()
        for file, answer in self.answers():
            if isinstance(answer, str):
                run.failed.append((file.name, answer))
                continue
            if answer.audience == NOBODY:
                run.failed.append((file.name, "names no audience that Orion knows, so no one sees it"))
            yield Readable(
                id=run.unique_id(f"answers/{file.stem}", "saved"),
                key=f"{self.key}/{file.name}",
                name=file.name,
                source=self.key,
                audience=answer.audience,
                url=answer.link,
                read=partial(answer.read, today),
            )
