"""The folder of saved answers as documents, each for its own audience."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

from agent.knowledge.readers.reading import read_bytes
from agent.knowledge.saved_answer import SavedAnswer, parse_saved_answer
from agent.knowledge.types import DocumentSource, IndexRun, Readable, ReadError
from agent.thread.audience import NOBODY


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
                read=partial(_read, answer, today),
            )


def _read(answer: SavedAnswer, today: date) -> tuple[bytes, float]:
    confirmed = datetime.combine(answer.confirmed, datetime.min.time(), UTC).timestamp()
    return answer.to_document(today).encode("utf-8", "replace"), confirmed
