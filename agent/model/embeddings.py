"""An embedding server that speaks OpenAI's API."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from stamina import BoundAsyncRetryingCaller

from agent.json_data import mapping, objects
from agent.knowledge.semantic.vectors import EmbedderError, Vectors
from agent.model.chat_reply import CHARACTERS_PER_TOKEN, join_surrogates, named_error
from agent.model.chat_server import ModelServer, Timeouts, time_limit
from agent.model.failures import ServerRefusalError
from agent.model.protocol import ModelError, ServerAddress

REPLY_TIMEOUT_S: Final = 120.0  # seconds for a batch with its retries
DIMENSIONS: Final = 512  # for models whose vectors can be shortened: a third of the memory, nearly the same ranking
_SHORTENED: Final = re.compile(r"text-embedding-3")
_EMBEDS: Final = re.compile(r"(?i)embed|\be5\b|e5-|bge|gte|minilm|mpnet|paraphrase")
_REPRESENT: Final = "Represent this sentence for searching relevant passages: "
_INSTRUCT: Final = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
# Prefixes for a question and for a passage, from the makers' model pages. The first match counts.
_PREFIXES: Final = (
    (re.compile(r"(?i)e5-.*instruct|qwen3-embed|gte-qwen2"), _INSTRUCT, ""),
    (re.compile(r"(?i)\be5-"), "query: ", "passage: "),
    (re.compile(r"(?i)nomic-embed"), "search_query: ", "search_document: "),
    (re.compile(r"(?i)embeddinggemma"), "task: search result | query: ", "title: none | text: "),
    (re.compile(r"(?i)arctic-embed(?:2|.*-v2)"), "query: ", ""),
    (re.compile(r"(?i)arctic-embed|mxbai-embed|bge-(?:small|base|large)(?!-zh)"), _REPRESENT, ""),
)
_MIN_CHARS: Final = 200  # a text that is refused even at this length is refused for another reason
_TOO_MUCH: Final = frozenset({400, 422})  # statuses for a batch that may be too large


class ServerEmbedder(ModelServer):
    """``model`` is a name, or empty for the first embedding model in the server's list."""

    def __init__(self, address: ServerAddress, model: str) -> None:
        super().__init__(address=address, timeouts=Timeouts(idle=REPLY_TIMEOUT_S, wait=60.0))
        self.name = model
        self.tokens: Counter[str] = Counter()

    @property
    def space(self) -> str:
        """The model with the dimensions and the passage's prefix that Orion asks for."""
        return " ".join([self.name, *map(str, self._options().values()), prefixes(self.name)[1]]).rstrip()

    def _options(self) -> dict[str, int]:
        return {"dimensions": DIMENSIONS} if _SHORTENED.search(self.name) else {}

    async def find_model(self) -> str:
        """Return the model's name. Raises ``EmbedderError`` if the server's list has none."""
        if not self.name:
            try:
                async with time_limit(REPLY_TIMEOUT_S):
                    listed = await (await self.client()).model_names()
            except ModelError as error:
                if error.kind != "ConfigurationError":  # else the server has no list
                    raise EmbedderError(error.detail) from error
                listed = []
            self.name = next((name for name in listed if _EMBEDS.search(name)), "")
        if not self.name:
            message = "the model server lists no embedding model: name one in ORION_EMBED_MODEL, or set it to off"
            raise EmbedderError(message, is_unset=True)
        return self.name

    async def embed_question(self, question: str) -> Vectors:
        """Return the vector of a question."""
        return np.asarray((await self._unit_vectors([prefixes(self.name)[0] + question], retries=1))[0])

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text; truncate texts too long for the model."""
        return await self._unit_vectors([prefixes(self.name)[1] + text for text in texts])

    async def _unit_vectors(self, texts: Sequence[str], retries: int = 5) -> Vectors:
        try:
            async with time_limit(REPLY_TIMEOUT_S):
                rows = await self._embed([join_surrogates(text) for text in texts], self.retrying(retries))
        except ModelError as error:
            raise EmbedderError(error.detail) from error
        try:
            vectors = np.array(rows, np.float32)
        except (ValueError, TypeError):  # no numbers, or rows of different lengths
            vectors = np.empty(0, np.float32)
        if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():  # noqa: PLR2004 - rows and columns
            message = f"{self.name} sent no usable vectors"
            raise EmbedderError(message)
        return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))

    async def _embed(self, texts: list[str], retry: BoundAsyncRetryingCaller) -> list[object]:
        client = await self.client()
        body = {"model": self.name, "input": texts, "encoding_format": "float", **self._options()}
        try:
            reply = await retry(client.post, body, "/embeddings")
        except ServerRefusalError as refusal:
            if refusal.kind != "TokenLimitError" and refusal.status not in _TOO_MUCH:
                raise
            if len(texts) > 1:  # too many texts in one request, or one of them is too long
                half = len(texts) // 2
                return await self._embed(texts[:half], retry) + await self._embed(texts[half:], retry)
            if len(texts[0]) <= _MIN_CHARS:
                raise
            return await self._embed([texts[0][: len(texts[0]) // 2]], retry)
        if error := named_error(reply):
            raise error
        rows = sorted(objects(reply, "data"), key=lambda row: n if isinstance(n := row.get("index"), int) else 0)
        if len(rows) != len(texts):
            raise ModelError(kind="LLMError", detail=f"{len(rows)} vectors for {len(texts)} texts")
        tokens = mapping(reply, "usage").get("prompt_tokens")
        estimate = sum(map(len, texts)) // CHARACTERS_PER_TOKEN
        self.tokens[self.name] += tokens if isinstance(tokens, int) and tokens else estimate
        return [row.get("embedding") for row in rows]


def prefixes(model: str) -> tuple[str, str]:
    """Return the prefixes that a model of this name expects before a question and before a passage."""
    return next(((question, passage) for name, question, passage in _PREFIXES if name.search(model)), ("", ""))
