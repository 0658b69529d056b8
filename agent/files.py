"""Files of a question or its thread's first message, as sources. Of a long file only the closest parts are used."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Final

from agent.outcome import Silent, TurnOutcome
from agent.texts.catalogue import say
from agent.thread.conversation import FilePart, Question, ThreadMessage
from verification.text.language import content_stems, detect_language
from verification.types import Source

MAX_WHOLE_CHARS: Final = 8_000  # a file up to this length is one source
MAX_PARTS: Final = 6  # of a longer file; always less than the whole file
ORIGIN: Final = "file"

_MAX_NAME_CHARS: Final = 120


def file_sources(question: Question) -> tuple[Source, ...]:
    """Return the question's files as unnumbered sources. It may be slow: keep it off the event loop."""
    found: list[Source] = []
    for file in question.files:
        place = question.thread.channel
        whole = Source(id=0, title=file.name, url=file.url, text=file.text, origin=ORIGIN, audience=place)
        if len(file.text) <= MAX_WHOLE_CHARS:
            found += [whole] if file.text.strip() else []
            continue
        for part in _nearest(file.parts, question.text):
            title = f"{file.name} › {part.path or f'line {part.line}'}"
            found.append(replace(whole, title=title, text=part.text))
    return tuple(found)


def add_unread_notes(outcome: TurnOutcome, question: Question, history: tuple[ThreadMessage, ...] = ()) -> TurnOutcome:
    """Add a line for each file that was not read completely; for files of a thread's first message only once."""
    is_repeated = any(message.role == "assistant" for message in history)
    language = question.reply_language
    notes: list[str] = []
    for file in question.files:
        if is_repeated and file.opening and file.trouble != "away":  # it may have been read before
            continue
        name = " ".join(escape(file.name, quote=False).replace("`", "'").split())[:_MAX_NAME_CHARS] or "?"
        if file.trouble:
            notes.append(say(f"file_{file.trouble}", language, name=name))
        elif file.is_cut:
            notes.append(say("file_cut", language, name=name))
        elif len(file.text) > MAX_WHOLE_CHARS:
            notes.append(say("file_long", language, name=name))
    if not notes or isinstance(outcome, Silent):
        return outcome
    label = "\n".join(filter(None, (outcome.answer.label, *notes)))
    return replace(outcome, answer=replace(outcome.answer, label=label))


def _nearest(parts: Sequence[FilePart], asked: str) -> list[FilePart]:
    """Return the parts that share the rarest words with the question, in the order of the file."""
    language = detect_language(asked)
    wanted = content_stems(asked, language)
    shared = [wanted & content_stems(f"{part.path} {part.text}", language) for part in parts]
    often = Counter(stem for own in shared for stem in own)
    weights = [sum(math.log(1 + len(parts) / often[stem]) for stem in own) for own in shared]
    best = sorted(range(len(parts)), key=lambda n: (-weights[n], n))[:MAX_PARTS]
    return [parts[n] for n in sorted(best)]
