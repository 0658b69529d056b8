"""Ranks by words and meaning together: the score by words plus a weighted similarity of vectors.

Vectors come from an embedding server. Passages without a vector, and all passages while that server is down, are found
by their words. Similarity only makes a passage a candidate.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from statistics import fmean
from typing import Final

import structlog

from agent.knowledge.index.index import KnowledgeIndex, Ranked
from agent.knowledge.index.tables import Condition, parts
from agent.knowledge.semantic.vectors import Embedder, EmbedderError, Vectors, VectorStore

log = structlog.get_logger()

MEANING_SHARE: Final = 0.5  # the rest is the weight of words
NEIGHBOUR_SHARE: Final = 0.2  # share of its better neighbour's score that a passage gets: both are part of one text
_ROUNDING: Final = 0.003  # of a cosine
QUESTION_TIMEOUT_S: Final = 3.0  # a slow embedding server delays a question no longer than this
RETRY_AFTER_S: Final = 30.0  # before a failed server is tried again
_BATCH: Final = 32  # passages per request; a killed run loses one request, and a small server takes seconds for it
_CACHED_QUESTIONS: Final = 256


class SemanticRanker:
    """A ``Meaning`` over the vectors of one index. ``failure`` says why search uses words only, if it does."""

    def __init__(self, embedder: Embedder, index: KnowledgeIndex) -> None:
        self.embedder = embedder
        self._index = index
        self.store = VectorStore(index)
        self._questions: OrderedDict[str, Vectors] = OrderedDict()
        self._retry_at = 0.0
        self.failure = ""

    async def embed_question(self, query: str) -> Vectors | None:
        """Return the question's vector, or None to search by words: there are no vectors, or the server is down."""
        if not query.strip() or time.monotonic() < self._retry_at:
            return None
        if not (space := await asyncio.to_thread(self.store.space)):
            return None
        if query in self._questions and space == self.embedder.space:
            self._questions.move_to_end(query)
            return self._questions[query]
        try:
            async with asyncio.timeout(QUESTION_TIMEOUT_S):
                await self.embedder.find_model()
                if space != self.embedder.space:  # vectors of an earlier model
                    return None
                vector = await self.embedder.embed_question(query)
        except (EmbedderError, TimeoutError) as error:
            self._report_failure(error if isinstance(error, EmbedderError) else EmbedderError("no reply in time"))
            return None
        self._report_success()
        self._questions[query] = vector
        if len(self._questions) > _CACHED_QUESTIONS:
            self._questions.popitem(last=False)
        return vector

    def rank(self, vector: Vectors, by_words: Sequence[Ranked], most: int, seen: Condition) -> Sequence[Ranked]:
        """Return at most ``most`` of the ``seen`` passages, best first, ranked by words and by meaning."""
        near, usual = self.store.nearness(vector, [number for number, _ in by_words], most, seen)
        return fuse_scores(by_words, near, usual)[:most]

    async def make(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Compute the missing vectors and return how many passages got one: 0 while another process does this.

        The next run continues a stopped one. Raises ``EmbedderError`` and ``KnowledgeAwayError``.
        """
        try:
            model = await self.embedder.find_model()
            space = self.embedder.space
            is_complete = await asyncio.to_thread(self.store.is_complete, space)
            made = 0 if is_complete else await self._make_missing(model, space, progress)
        except EmbedderError as error:
            self._report_failure(error)
            raise
        self._report_success()
        return made

    async def _make_missing(self, model: str, space: str, progress: Callable[[int, int], None] | None) -> int:
        began, made = time.monotonic(), 0
        with ExitStack() as lock:
            if not await asyncio.to_thread(lock.enter_context, self._index.alone("vectors")):
                log.info("vectors_made_elsewhere")
                return 0
            missing = await asyncio.to_thread(self.store.begin, space)
            _, every = await asyncio.to_thread(self.store.counts)
            for numbers in parts(missing, _BATCH):
                places, texts = await asyncio.to_thread(self.store.texts, space, numbers)
                vectors = await self.embedder.embed_passages([*texts.values()]) if texts else ()
                await asyncio.to_thread(self.store.put, space, places, dict(zip(texts, vectors, strict=True)))
                made += len(places)
                if progress:
                    progress(every - len(missing) + made, every)
            await asyncio.to_thread(self.store.tidy, space)
        if made:
            log.info("vectors_made", passages=made, model=model, seconds=round(time.monotonic() - began, 1))
        return made

    def _report_failure(self, error: EmbedderError) -> None:
        self._retry_at = time.monotonic() + RETRY_AFTER_S
        if not self.failure:  # reported once, until the server is back
            report = log.info if error.is_unset else log.warning
            report("search_by_words_only", reason=str(error))
        self.failure = str(error)

    def _report_success(self) -> None:
        if self.failure:
            log.info("search_by_meaning_back")
        self.failure, self._retry_at = "", 0.0


def fuse_scores(by_words: Sequence[Ranked], cosines: Mapping[int, float], usual: float) -> list[Ranked]:
    """Return all passages of both lists with combined scores, best first, ties by number.

    Both scores are shares of the highest possible one: of a passage full of the question's words, and of the question
    itself, counted from the ``usual`` cosine (.05 with some models, .75 with others). So words count for little if the
    passages have few of them. Of two passages, the one beside a good one ranks higher.
    """
    words = dict(by_words)
    near = {number: (cosine - usual) / max(1 - usual, _ROUNDING) for number, cosine in cosines.items()}
    known = [near[number] for number in words if number in near]
    average = fmean(known) if known else 0.0  # so that a passage without a vector keeps its place
    own = {
        number: (1 - MEANING_SHARE) * words.get(number, 0.0) + MEANING_SHARE * near.get(number, average)
        for number in {*words, *near}
    }
    scores = {
        number: score + NEIGHBOUR_SHARE * max(own.get(number - 1, 0.0), own.get(number + 1, 0.0))
        for number, score in own.items()
    }
    return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))
