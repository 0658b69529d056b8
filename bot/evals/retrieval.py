"""Measures how well the real index ranks a labelled collection: nDCG@10, MRR@10 and recall@5 over whole documents."""

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.semantic.ranking import SemanticRanker
from bot.documents.open import make_vectors, open_meaning
from bot.evals.files import read_json
from bot.evals.rows import Given, Text, percentile, validate
from bot.settings import Settings

DEPTH = 10
PASSAGES = 2 * DEPTH  # a search returns passages; this many nearly always cover ten documents
# Like the benchmarks that these figures are compared with.
RECALL_DEPTH = 5

Gains = dict[str, Annotated[float, Field(ge=0)]]


class DocumentRow(Given):
    """A document of the collection."""

    title: Text = ""
    text: str


class Collection(Given):
    """Documents by id, queries by id, and per query the gain of each relevant document."""

    docs: dict[str, DocumentRow]
    queries: dict[str, str]
    qrels: dict[str, Gains]


async def evaluate_retrieval(path: Path, settings: Settings) -> dict[str, Any]:
    """Return the report on one file, measured over a separate index. Raises ``WrongUse``."""
    collection = validate(TypeAdapter(Collection), read_json(path), str(path))
    asked = {name: text for name, text in collection.queries.items() if any(collection.qrels.get(name, {}).values())}
    with tempfile.TemporaryDirectory(prefix="orion-eval-") as folder, SqliteIndex.open(Path(folder, "index")) as index:
        async with open_meaning(settings, index) as meaning:
            rankings, times = await _search_all(collection, asked, Path(folder), index, meaning)

    def mean(score: Callable[[Sequence[str], Gains], float]) -> float:
        scores = [score(rankings[number], collection.qrels[number]) for number in asked]
        return round(fmean(scores), 4) if scores else 0.0

    return {
        "file": path.name,
        "semantic": meaning is not None,
        "docs": len(collection.docs),
        "queries": len(asked),
        "ndcg_at_10": mean(ndcg),
        "mrr_at_10": mean(reciprocal_rank),
        "recall_at_5": mean(recall),
        "p50_ms": round(percentile(times, 0.5), 2),
        "p95_ms": round(percentile(times, 0.95), 2),
    }


def ndcg(ranking: Sequence[str], gains: Gains) -> float:
    """Return the discounted gain of the first ten documents, as a share of the best possible one."""
    found = [gains.get(document, 0.0) for document in ranking[:DEPTH]]
    got, ideal = (
        sum(gain / math.log2(rank + 1) for rank, gain in enumerate(each, start=1))
        for each in (found, sorted(gains.values(), reverse=True)[:DEPTH])
    )
    return got / ideal if ideal else 0.0


def reciprocal_rank(ranking: Sequence[str], gains: Gains) -> float:
    """Return 1 / rank of the first relevant document among the first ten, else 0."""
    found = (1 / rank for rank, document in enumerate(ranking[:DEPTH], start=1) if gains.get(document, 0.0) > 0)
    return next(found, 0.0)


def recall(ranking: Sequence[str], gains: Gains) -> float:
    """Return the share of the relevant documents among the first five."""
    relevant = {document for document, gain in gains.items() if gain > 0}
    return len(relevant.intersection(ranking[:RECALL_DEPTH])) / len(relevant) if relevant else 0.0


async def _search_all(
    collection: Collection,
    asked: Mapping[str, str],
    folder: Path,
    index: KnowledgeIndex,
    meaning: SemanticRanker | None,
) -> tuple[dict[str, tuple[str, ...]], list[float]]:
    """Return each query's ranked document ids, and each search's milliseconds. The usual readers read the documents."""
    (folder / "docs").mkdir()
    names: dict[str, str] = {}
    for number, (identity, page) in enumerate(collection.docs.items()):
        name = f"{number:07}.md"
        names[name] = identity
        title = f"# {' '.join(page.title.split())}\n\n" if page.title.strip() else ""
        (folder / "docs" / name).write_text(f"{title}{page.text}\n", encoding="utf-8")
    index.index([folder / "docs"])
    await make_vectors(meaning)
    rankings, times = {}, []
    for query_id, query in asked.items():
        began = time.perf_counter()
        passages = index.search(query, limit=PASSAGES, vector=await index.embed_question(query))
        times.append((time.perf_counter() - began) * 1000)
        rankings[query_id] = tuple(dict.fromkeys(names[passage.document] for passage in passages))
    return rankings, times
