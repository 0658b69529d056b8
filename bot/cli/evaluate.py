"""`orion eval …`: options and printing. The measurements are in ``bot.evals``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli import output
from bot.errors import WrongUse

if TYPE_CHECKING:  # for annotations: importing them takes too long
    from redis.asyncio import Redis

app = typer.Typer(no_args_is_help=True, help="Measure Orion on labelled files.")

Report = Mapping[str, Any]
FilesArgument = Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, metavar="FILE.jsonl…")]


@app.command()
def grounding(
    files: FilesArgument,
    predictions: Annotated[
        Path | None, typer.Option(metavar="OUT.jsonl", help="Write one {id, score, supported, rules} per line.")
    ] = None,
    as_json: output.JsonOption = False,
) -> None:
    """Claims against sources: one {id, source, claim, supported, question?, group?} per line."""
    from bot.evals.grounding import evaluate

    if predictions:
        _check_writable(predictions, files, "--predictions")
    _show(evaluate(files, predictions), as_json=as_json)


@app.command()
def verifier(
    files: FilesArgument,
    judge: output.JudgeOption = False,
    keep: Annotated[bool, typer.Option("--keep", help="Show the totals in `orion stats`.")] = False,
    as_json: output.JsonOption = False,
) -> None:
    """Wrong passes and wrong fails of the verifier: one {id, text, question?, sources?, passes, kind?} per line."""
    from bot.evals.verify import evaluate_verifier

    reports = output.with_judge(lambda asked: evaluate_verifier(files, asked), wanted=judge)
    _show(reports, as_json=as_json)
    if keep:
        output.with_redis(lambda redis, prefix: _keep(redis, prefix, reports))
        output.note("Kept: orion stats shows these totals next to the pass rate.")


async def _keep(redis: Redis, prefix: str, reports: Sequence[Report]) -> None:
    from observability.stats import Stats, VerifierFigures

    counted = ("should_pass", "should_fail", "false_accepts", "false_rejects")
    figures = VerifierFigures(
        **{name: sum(report[name] for report in reports) for name in counted},
        measured=datetime.now(UTC).date().isoformat(),
        files=", ".join(str(report["file"]) for report in reports),
    )
    await Stats(redis, prefix=prefix).save_verifier(figures)


@app.command()
def retrieval(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, metavar="FILE.json")],
    as_json: output.JsonOption = False,
) -> None:
    """Ranking: {docs: {id: {title, text}}, queries: {id: text}, qrels: {query: {doc: gain}}}.

    With a server for embeddings (ORION_EMBED_MODEL) also by meaning; its vectors take some minutes for thousands of
    documents.
    """
    from bot.evals.retrieval import evaluate_retrieval

    _show(output.run(evaluate_retrieval(file, output.configure(log="ERROR"))), as_json=as_json)


@app.command()
def answers(
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl|langfuse:DATASET")],
    docs: Annotated[Path, typer.Option(help="Folder of the documents that the questions are about.")],
    report: Annotated[Path | None, typer.Option(metavar="OUT.html", help="Write a page with every answer.")] = None,
    as_json: output.JsonOption = False,
) -> None:
    """Questions through the whole agent: {id, question, expect: texts or null, reference?, thread?, kind?} per line.

    A reference is a correct answer: the model judges whether the reply says the same. langfuse:orion-corrections asks
    the questions whose answers people disliked and corrected. With Langfuse's keys the run is an experiment there too;
    ORION_TRACE_CONTENT=off leaves out the texts.
    """
    from bot.evals.answers import ask_all
    from bot.evals.report import report_page

    settings = output.configure(log="ERROR")
    if report:
        _check_writable(report, [file], "--report")
    asked = output.run(ask_all(settings, file, docs))
    _show(asked.figures(), as_json=as_json)
    if asked.pushed:
        output.note(asked.pushed)
    if report:
        report.write_text(report_page(asked), encoding="utf-8", newline="\n")  # identical bytes on every system
        output.note(f"{report}: every question with its answer. Keep it where the documents' text may be.")


def _check_writable(out: Path, read: Sequence[Path], option: str) -> None:
    """Check that ``out`` can be written, before minutes of work. Raises ``WrongUse``."""
    from bot.evals.files import same_file

    if any(same_file(file, out) for file in read):
        raise WrongUse(why=f"{out} is read and cannot be written at the same time. Name another file for {option}.")
    if out.is_dir() or not out.parent.is_dir():
        raise WrongUse(why=f"{out} cannot be written: name a file in an existing folder for {option}.")


@app.command("from-traces")
def from_traces(
    out: Annotated[Path, typer.Argument(metavar="OUT.jsonl", help="A new file.")],
    outcome: Annotated[list[str] | None, typer.Option(help="Only turns with this outcome; may be repeated.")] = None,
    bad: Annotated[bool, typer.Option("--bad", help="Only answers that people rated as not helpful.")] = False,
    local: output.LocalOption = None,
) -> None:
    """Questions people asked in the last 30 days, to be labelled with 'expect' for `orion eval answers`.

    A follow-up comes with the questions before it (at most five, unless all are chosen), as rows of one 'thread'.
    """
    from bot.evals.from_traces import OUTCOMES, read_rows, write_rows

    if unknown := next((name for name in outcome or () if name not in OUTCOMES), None):
        raise WrongUse(why=f"--outcome must be one of {', '.join(OUTCOMES)}, not '{unknown}'.")
    found = output.with_redis(
        lambda redis, prefix: read_rows(redis, prefix=prefix, outcomes=outcome or (), bad_only=bad), local
    )
    write_rows(found, out)
    output.note(
        f"{out}: {output.count(len(found), 'row')}. Add to each 'expect': a list of texts that the answer must have, "
        "or null if Orion should refuse. Rows of one 'thread' are one conversation, in its order. The file holds "
        "people's questions and answers: keep it where those may be."
    )


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(exists=True, dir_okay=False, metavar="BEFORE.json")],
    after: Annotated[Path, typer.Argument(exists=True, dir_okay=False, metavar="AFTER.json")],
    as_json: output.JsonOption = False,
) -> None:
    """Compare two reports written with --json. Exit code 0: nothing got worse; 1: something did."""
    from bot.evals.compare import compare_files, comparison_table

    found = compare_files(before, after)
    if as_json:
        output.print_json(found)
    else:
        for each in found:
            output.print_table(comparison_table(each))
    raise typer.Exit(1 if any(each["is_worse"] for each in found) else 0)


def _show(report: Sequence[Report] | Report, *, as_json: bool) -> None:
    if as_json:
        output.print_json(report)
        return
    from rich.table import Table

    for each in [report] if isinstance(report, Mapping) else report:
        table = Table(str(each["file"]), "", title_justify="left")
        for name, value in each.items():
            if name not in {"file", "kinds"}:
                table.add_row(name.replace("_", " "), _cell(value))
        for kind, figures in each.get("kinds", {}).items():
            counts = (f"{value} {name.replace('_', ' ')}" for name, value in figures.items())
            table.add_row(f"· {kind}", ", ".join(counts))
        output.print_table(table)


def _cell(value: object) -> str:
    from bot.evals.compare import describe_result

    if isinstance(value, list):  # rows that went wrong
        named = [f"{row['id']} ({describe_result(row)})" if isinstance(row, Mapping) else str(row) for row in value]
        return ", ".join(named) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {count}" for name, count in value.items()) or "none"
    return str(value)
