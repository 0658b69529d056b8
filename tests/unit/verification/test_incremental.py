"""An answer while it grows: how it is cut never shows, and nothing leaves that was not checked."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.drafts_in_blocks import BASE, BLOCKS
from verification.check import check
from verification.incremental import ShownBlocks, check_block, complete_blocks
from verification.types import Draft

texts = st.lists(st.sampled_from(BLOCKS) | st.text("ab1.-*`~#|: \n", max_size=12), max_size=6).map("\n\n".join)


def blocks_as_they_arrive(text: str, cuts: Sequence[int]) -> list[str]:
    """The blocks as they turn up while the text arrives in pieces."""
    found: list[str] = []
    for end in [*sorted(cut % (len(text) + 1) for cut in cuts), len(text)]:
        blocks = complete_blocks(text[:end].strip())
        assert [block.strip() for block in blocks[: len(found)]] == [block.strip() for block in found]
        found += blocks[len(found) :]
    return found


@given(texts, st.lists(st.integers(0, 10_000), max_size=12))
def test_a_draft_has_the_same_blocks_however_it_arrives(text: str, cuts: list[int]) -> None:
    whole = text.strip()
    found = blocks_as_they_arrive(whole, cuts)
    ended = complete_blocks(whole, ended=True)
    assert [block.strip() for block in found] == [block.strip() for block in ended[: len(found)]]
    assert "".join(ended).strip() == whole


@settings(max_examples=40)
@given(texts)
def test_no_block_is_shown_that_the_rules_reject(text: str) -> None:
    before = ""
    for block in complete_blocks(text.strip(), ended=True):
        shown, verdict = check_block(BASE, before, block, check)
        if shown is None:
            break
        assert check(replace(BASE, text=before + block)).passed
        if shown.markdown:
            alone = check(replace(BASE, text=block.strip("\n"), dialect="markdown"))
            assert {error.rule for error in alone.errors} <= {"cites_sources", "claim_supported"}
            assert "\n\n".join(alone.chunks) == shown.markdown
        assert verdict == shown.verdict
        assert not {"900", "evil", "<!channel>"} & set(shown.markdown.replace("/", " ").split())
        before = shown.draft


def test_lines_that_belong_together_form_one_block() -> None:
    for text, blocks in [
        ("One.\n\nTwo.", ["One."]),
        ('{"answer": "One.\n\nTwo."}', []),
        ('["One.\n\nTwo.', []),
        ("Answer(text=b'One.\n\nTwo.", []),
        ("{answer: “One.\n\nTwo.", []),
        ("confidence: high\n\nanswer: Two.", []),
        *(
            (f'{start}"One [1].\n\nTwo', [])
            for start in (
                "(answer ",
                "((answer . ",
                "Answer { text: ",
                "{answer, <<",
                "echo ",
                "<?php return ['answer' => ",
                "Dim answer As String = ",
                'Map("answer" -> ',
                "[response]\nanswer=",
                "---\nanswer: ",
            )
        ),
        *((f'{start}"One" [1].\n\nTwo', [f'{start}"One" [1].']) for start in ("Say ", "The answer is ", "No (see ")),
        ('"One" is it.\n\nTwo.', ['"One" is it.']),
        ("One.\n\n", []),
        ("One.\n\n ", []),
        ("One.\n \n\nTwo", ["One."]),
        ("- a\n- b\n\n- c", []),
        ("- a\n\n1", []),
        ("- a\n\n1st", ["- a"]),
        ("- a\n\n  more\n\nTwo", ["- a\n\n  more"]),
        ("One:\n\nTwo", []),
        ("One [1]: \n\n- a\n\nTwo", ["One [1]: \n\n- a"]),
        ("# One\n\nTwo\n\nThree", ["# One\n\nTwo"]),
        ("**One**\n\nTwo\n\nThree", ["**One**\n\nTwo"]),
        ("| a |\n|---|\n\n| b |", []),
        ("| a |\n|---|\n\nb", ["| a |\n|---|"]),
        ("```\na\n\nb\n\nc", []),
        ("```\na\n\nb\n```\n\nc", ["```\na\n\nb\n```"]),
        ("Say ```a\n\nb``` now.\n\nc", ["Say ```a\n\nb``` now."]),
    ]:
        assert [block.strip() for block in complete_blocks(text)] == blocks


def test_a_closing_line_is_shown_although_it_cites_nothing() -> None:
    shown, verdict = check_block(
        replace(BASE, has_judge=True), BLOCKS[0] + "\n\n", "Mind the limit of your key.", check
    )
    assert verdict.passed
    assert shown is not None
    assert shown.markdown == "Mind the limit of your key."


def test_a_block_is_markdown_with_the_links_of_its_citations() -> None:
    shown, _ = check_block(BASE, "", BLOCKS[1] + "\n\n", check)
    assert isinstance(shown, ShownBlocks)
    assert shown.markdown == r"The **build** runs on Tuesday at 14:00 [\[2\]](https://docs.example/builds)."
    assert shown.verdict.text.startswith("The *build* runs")  # as a post has it


def test_the_first_block_that_fails_says_why() -> None:
    shown, verdict = check_block(BASE, BLOCKS[0] + "\n\n", BLOCKS[2], check)
    assert shown is None
    assert [violation.rule for violation in verdict.errors] == ["claim_supported"]


def test_an_invisible_block_passes_and_shows_nothing() -> None:
    shown, verdict = check_block(BASE, BLOCKS[0] + "\n\n", "<!-- note -->", check)
    assert shown is not None
    assert (shown.markdown, verdict.passed) == ("", True)


def test_a_block_that_passes_only_with_the_rest_is_not_shown_alone() -> None:
    """A rule that fails only the block alone leaves the answer as it is."""

    def strict(draft: Draft) -> object:
        verdict = check(draft)
        if draft.dialect == "markdown":
            return check(Draft(text="<!channel>"))
        return verdict

    shown, verdict = check_block(BASE, "", BLOCKS[0], strict)  # type: ignore[arg-type]  # a check like any other
    assert (shown, verdict.passed) == (None, True)
