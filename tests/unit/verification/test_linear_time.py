"""No text makes a check slow: ten times the noise takes at most some twenty times as long, and never a hundred."""

import time
from collections.abc import Callable

import pytest

from agent.knowledge.readers.markup import headings_in
from agent.model.chat_reply import tags_of
from bot.delivery.rich_text import rich_text
from verification.check import check
from verification.claims.claims import claims
from verification.claims.small_talk import states_nothing
from verification.incremental import complete_blocks
from verification.markup.chunks import split_chunks
from verification.markup.mrkdwn import repair
from verification.markup.serialised import unwrap
from verification.rules.writing import violations
from verification.text.disguise import readings
from verification.types import Draft, Source
from verification.values.identifiers import identifiers
from verification.values.numbers import quantities

PAGE = Source(id=1, title="Refunds", url="https://docs.acme.test/r", text="Refunds take 14 days. Nine of 2 are 3.")


def check_answer(noise: str) -> None:
    check(Draft(text=noise, question="How long do refunds take?", sources=(PAGE,), private_texts=("secret " * 20,)))


def check_against_itself(noise: str) -> None:
    source = Source(id=1, title="T", text=f"Zeb {noise}end.")
    check(Draft(text=f"Zab {noise}end [1].", question="How long?", sources=(source,)))


def split(noise: str) -> None:
    split_chunks(noise, (PAGE,), "mrkdwn")
    split_chunks(noise, (PAGE,), "markdown")


def draw(noise: str) -> None:
    repair(f"| a | b |\n|---|---|\n| {noise} | 1 |\n" + "| y | 2 |\n" * (len(noise) // 10))


NOISE: dict[Callable[[str], object], tuple[int, list[str]]] = {
    check_answer: (
        3_000,
        [*"*<`[](_\\あ一", "[1]", "> ", "| ", "a ", "1. ", "\n", "- x\n", "a.", "@here ", "xoxb-", "https://", "eyJ",
         "[[", "](", "1 ", "1:", "--", "A ", "\ud800", '"a b c ', "X_", "/a", "\u00a0", "Say [1].\n```\na = 1\n```\n",
         "<a>x</a>", "[a]x[/a]", "spring to summer "],
    ),
    check_against_itself: (
        1_500,
        ["keys are not valid; ", "not keys valid ", "Anna met Berlin, ", "Keys A B ", "5 of 7 = 3; ", "1 ", "`", "/a"],
    ),
    split: (4_000, ["<", "`", "[", "[1]", "\\[", "~~~\n", "&lt;", "a. ", "**a ", "\n", "|"]),
    lambda noise: violations(repair(noise)[0]): (
        5_000, ["*", "<", "`", "[", ">", "](", "[a](", "<b>", "a**b", "_a__b", "&", "\\", "| ", "> "],
    ),
    lambda noise: unwrap(f'print "{noise}" zz'): (10_000, ["\\", '\\"', "a. "]),
    rich_text: (3_000, ["`a`*b* ", "\\*", "*_~", "*a* "]),
    lambda noise: [*headings_in(noise, "org")]: (10_000, ["#+begin_src\n"]),
    draw: (2_000, ["x"]),
    claims: (10_000, ["*", "<", "`", "[", "[1]", "- ", "| ", "```", "1", "[1,", "a.\n", "\ud800 "]),
    lambda noise: tags_of(noise).draft: (100_000, ["x <think> y ", "</think>"]),
    states_nothing: (10_000, ["yes ", "No: ", "thanks so ", "hello, but ", "知道", "die quellen ", "if you ", "a ["]),
    complete_blocks: (10_000, ["def f():\n    return 1\n\n", "- a point [1].\n\n", "| a | b |\n\n", "a\n \n"]),
    readings: (40_000, ["a ", "\u202ea", "&#97;", "QUJD", "a1b", "<!--", "\u200b", "аa", "\U000e0041", "=/+"]),
    lambda noise: identifiers(f"`{noise}`"): (2_000, ["1", "1×", "=1", "1 ÷ 1 = "]),
    lambda noise: quantities(noise, "en"): (2_000, ["two ", "two-", "000 "]),
    lambda noise: quantities(noise, None): (2_000, ["zwei ", "百分之一"]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("step", "size", "unit"), [(step, n, unit) for step, (n, units) in NOISE.items() for unit in units]
)
def test_noise_takes_linear_time(step: Callable[[str], object], size: int, unit: str) -> None:
    def seconds(length: int, salt: str) -> float:
        text = (unit * length)[:length] + salt  # a text seen before may be remembered
        began = time.process_time()
        step(text)
        return time.process_time() - began

    seconds(100, "")
    small = max(seconds(size, "a"), 0.02)
    # A busy machine slows one or the other.
    assert seconds(10 * size, "b") <= 25 * small or seconds(10 * size, "c") <= 25 * small
