"""Files that came with a question or stand at the top of its thread.

Their text as sources, and which were not read. A short file is one source; of a long one the parts nearest to the
question are. ``file_sources`` may be slow: keep it off the event loop.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from agent.knowledge.readers.chunking import Chunk, chunk_document
from agent.knowledge.readers.reading import Form, Part, ReadDocument
from agent.outcome import Silent, TurnOutcome
from agent.texts.catalogue import say
from agent.thread.conversation import AttachedFile, Message, Question
from verification.text.language import detect
from verification.text.words import content_stems
from verification.types import Source

WHOLE_CHARS: Final = 8_000  # a file up to this length is one source, word for word
MOST_PARTS: Final = 6  # of a longer file: always less than the whole, so that saying so is true
MOST_CHARS: Final = 400_000  # what comes after this much of a file is not looked at
ORIGIN: Final = "file"

_MARKDOWN: Final = re.compile(r"\.(?:md|markdown|html?)$", re.IGNORECASE)
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"})
_LONGEST_NAME: Final = 120


def file_sources(question: Question) -> tuple[Source, ...]:
    """The sources that the question's files are, not yet numbered."""
    return tuple(source for file in question.files if file.text.strip() for source in _sources(file, question))


def with_unread(outcome: TurnOutcome, question: Question, history: tuple[Message, ...] = ()) -> TurnOutcome:
    """The outcome with a line above its answer for each file that was not read, or not as a whole.

    Of files at the top of the thread the first answer under them says it; the next do not say it again.
    """
    lines = _lines(question, told=any(message.role == "assistant" for message in history))
    if not lines or isinstance(outcome, Silent):
        return outcome
    label = "\n".join(filter(None, (outcome.answer.label, *lines)))
    return replace(outcome, answer=replace(outcome.answer, label=label))


def _lines(question: Question, *, told: bool) -> list[str]:
    language = detect(question.text)
    found: list[str] = []
    for file in question.files:
        if told and file.opening and file.trouble != "away":  # what is away may have been read before
            continue
        name = " ".join(file.name.translate(_ESCAPES).split())[:_LONGEST_NAME] or "?"
        if file.trouble:
            found.append(say(f"file_{file.trouble}", language, name=name))
        elif len(file.text) > WHOLE_CHARS:
            found.append(say("file_long", language, name=name))
    return found


def _sources(file: AttachedFile, question: Question) -> list[Source]:
    whole = Source(id=0, title=file.name, url=file.url, text=file.text, origin=ORIGIN, audience=question.thread.channel)
    if len(file.text) <= WHOLE_CHARS:
        return [whole]
    form: Form = "markdown" if _MARKDOWN.search(file.name) else "text"
    parts = (Part(text=file.text[:MOST_CHARS]),)
    chunks = chunk_document(ReadDocument(title=file.name, form=form, parts=parts, updated_at=""))
    kept = _nearest(chunks, question.text)
    return [replace(whole, title=f"{file.name} › {each.path or f'line {each.line}'}", text=each.text) for each in kept]


def _nearest(chunks: Sequence[Chunk], asked: str) -> list[Chunk]:
    """The chunks that share the rarest words with the question; of equals the earlier ones. In the file's order."""
    language = detect(asked)
    wanted = content_stems(asked, language)
    held = [wanted & content_stems(f"{chunk.path} {chunk.text}", language) for chunk in chunks]
    often = Counter(stem for own in held for stem in own)
    weights = [sum(math.log(1 + len(chunks) / often[stem]) for stem in own) for own in held]
    best = sorted(range(len(chunks)), key=lambda n: (-weights[n], n))[:MOST_PARTS]
    return [chunks[n] for n in sorted(best)]
