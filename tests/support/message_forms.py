"""Messages in the shapes that Slack's documentation shows, each with the words that a reader of it sees."""

from typing import Any

ORION = "UORION"
Json = dict[str, Any]


def rich(*elements: Json) -> Json:
    return {"type": "rich_text", "block_id": "b", "elements": list(elements)}


def section(*elements: Json) -> Json:
    return {"type": "rich_text_section", "elements": list(elements)}


def text(words: str, **style: bool) -> Json:
    return {"type": "text", "text": words, **({"style": style} if style else {})}


def mrkdwn(words: str) -> Json:
    return {"type": "mrkdwn", "text": words, "verbatim": False}


def plain(words: str) -> Json:
    return {"type": "plain_text", "text": words, "emoji": True}


def cell(words: str) -> Json:
    return {"type": "raw_text", "text": words}


MENTION = {"type": "user", "user_id": ORION}
GROUP = {"type": "usergroup", "usergroup_id": "S1"}
DATE = {"type": "date", "timestamp": 1720710212, "format": "{date}"}
LIST = {
    "type": "rich_text_list",
    "style": "ordered",
    "indent": 0,
    "elements": [
        section(text("build")),
        section(text("ship "), {"type": "link", "url": "https://x.example/a?b=1&c=2"}),
    ],
}
NESTED = {"type": "rich_text_list", "style": "bullet", "indent": 1, "elements": [section(text("on Tuesday"))]}
TABLE = {
    "type": "table",
    "rows": [
        [cell("Plan"), cell("Price")],
        [cell("Team"), {"type": "rich_text", "elements": [section(text("12 €", bold=True))]}],
        [cell("Size"), {"type": "raw_number", "value": 40}],
    ],
}
TABLE_TEXT = "| Plan | Price |\n| --- | --- |\n| Team | 12 € |\n| Size | 40 |"
ALERT = [
    {"type": "header", "text": plain("Build 12 failed")},
    {"type": "section", "text": mrkdwn("On <https://ci.example/12|CI>"), "fields": [mrkdwn("*Branch*\nmain")]},
    {"type": "divider"},
    {"type": "actions", "elements": [{"type": "button", "text": plain("Retry"), "action_id": "a"}]},
    {"type": "image", "image_url": "https://i.example/x.png", "alt_text": "a red graph", "title": plain("Failures")},
    {"type": "context", "elements": [{"type": "image", "alt_text": "clock"}, mrkdwn("in 3 minutes")]},
]
ALERT_TEXT = "Build 12 failed\nOn CI (https://ci.example/12)\n*Branch*\nmain\nFailures\na red graph\nclock in 3 minutes"
ATTACHED = {
    "title": "[#7] Disk full",
    "title_link": "https://a.example/7",
    "text": "db-7 is at 98 %",
    "fields": [{"title": "Severity", "value": "high"}],
    "footer": "Alertmanager",
    "fallback": "Disk full",
}
FORWARDED = {
    "is_share": True,
    "is_msg_unfurl": True,
    "author_name": "Ben",
    "text": "deploy *fails* &amp; stays red",
    "message_blocks": [{"message": {"blocks": [rich(section(text("deploy fails & stays red")))]}}],
    "files": [{"id": "F1", "name": "log.txt"}],
}

FORMS: list[tuple[Json, str]] = [
    ({"text": "how do we release?"}, "how do we release?"),
    ({"text": "how?", "blocks": [rich(section(text("how?", bold=True)))]}, "how?"),
    ({"text": "lunch & learn???", "blocks": [rich(section(text("lunch & learn???")))]}, "lunch & learn???"),
    ({"text": "???", "blocks": [rich(section(text("???")))]}, "???"),
    ({"text": f"<@{ORION}> \u200b\ufeff"}, ""),
    ({"text": "call <tel:+4930123|+4930123>"}, "call +4930123"),
    ({"text": "", "blocks": [rich(section(MENTION, text(" how do we release?")))]}, "how do we release?"),
    ({"blocks": [rich(section(text("Steps:")), LIST, NESTED)]},
     "Steps:\n1. build\n2. ship https://x.example/a?b=1&c=2\n    • on Tuesday"),
    ({"blocks": [rich({"type": "rich_text_preformatted", "elements": [text("a < b\nc")]})]}, "```\na < b\nc\n```"),
    ({"blocks": [rich({"type": "rich_text_quote", "elements": [text("one\ntwo")]})]}, "> one\n> two"),
    ({"blocks": [rich(section(text("rm -rf", code=True), text(" & "), {"type": "emoji", "name": "wave"}))]},
     "`rm -rf` & :wave:"),
    ({"blocks": [rich(section({**DATE, "fallback": "Jul 11"}))]},
     "Jul 11"),
    ({"blocks": [rich(section(DATE))]},
     "2024-07-11 15:03 UTC"),
    ({"blocks": [rich(section(GROUP, {"type": "broadcast", "range": "here"}))]}, "<!subteam^S1>@here"),
    ({"blocks": [rich(section({"type": "link", "url": "https://x.example", "text": "the page"}))]},
     "the page (https://x.example)"),
    ({"text": f"<@{ORION}>", "attachments": [{"blocks": [TABLE], "fallback": "[no preview]"}]}, TABLE_TEXT),
    ({"text": "Prices", "blocks": [rich(section(text("Prices"))), TABLE]}, f"Prices\n{TABLE_TEXT}"),
    ({"text": "New alert", "blocks": ALERT}, f"New alert\n{ALERT_TEXT}"),
    ({"text": "Build 12 failed", "blocks": ALERT}, ALERT_TEXT),
    ({"text": "Build 12 fai…", "blocks": ALERT}, ALERT_TEXT),
    ({"text": "This content can't be displayed.", "blocks": [{"type": "markdown", "text": "## Hi\n[a](https://b.c)"}]},
     "## Hi\n[a](https://b.c)"),
    ({"text": "This message contains interactive elements."}, ""),
    ({"blocks": [{"type": "markdown", "text": "Use List<String> & `x`"}]}, "Use List<String> & `x`"),
    ({"blocks": [{"type": "video", "title": plain("Demo"), "title_url": "https://v.example", "alt_text": "x"}]},
     "Demo\nx\nhttps://v.example"),
    ({"blocks": [{"type": "card", "title": plain("Ticket 7"), "body": mrkdwn("is open"), "new_kind": 3}]},
     "Ticket 7\nis open"),
    ({"text": "", "attachments": [ATTACHED]},
     "[#7] Disk full (https://a.example/7)\ndb-7 is at 98 %\nSeverity: high\nAlertmanager"),
    ({"text": "Disk full", "attachments": [{"fallback": "Disk full", "color": "red"}]}, "Disk full"),
    ({"text": "see this", "attachments": [FORWARDED]}, "see this\n\nBen: deploy *fails* & stays red"),
    ({"text": "", "attachments": [{"is_share": True, "author_name": "Ben", "message_blocks": [
        {"message": {"blocks": ALERT[:1]}}]}]}, "Ben: Build 12 failed"),
    ({"text": "<https://x.example>", "attachments": [{"from_url": "https://x.example", "text": "A page"}]},
     "https://x.example"),
    ({"text": "ABC-1", "attachments": [{"from_url": "https://j.example", "is_app_unfurl": True, "text": "Open"}]},
     "ABC-1\nOpen"),
    ({"blocks": [{"type": "actions", "elements": [
        {"type": "button", "text": plain("Runbook"), "url": "https://r.example"}, {"type": "static_select"}]}]},
     "Runbook (https://r.example)"),
    ({"blocks": [{"type": "input", "label": plain("Where do we eat?"), "element": {
        "type": "radio_buttons", "options": [{"text": plain("Canteen")}, {"text": plain("Thai")}]}}]},
     "Where do we eat?\nCanteen\nThai"),
    ({"blocks": [{"type": "call", "call_id": "R1", "call": {"v1": {
        "name": "Standup", "join_url": "https://z.example/1"}}}]}, "Standup\nhttps://z.example/1"),
    ({"blocks": [{"type": "header", "text": plain("write <@UBEN> & <b>")}]}, "write <@UBEN> & <b>"),
    ({"blocks": [{"type": "data_table", "caption": "Sales", "rows": [[cell("A|B")], [cell("1")]]}]},
     "Sales\n| A\\|B |\n| --- |\n| 1 |"),
    ({"attachments": [{"text": "outer", "attachments": [{"text": "inner"}], "actions": [
        {"type": "button", "text": "Open", "url": "https://o.example"}]}]}, "outer\ninner\nOpen (https://o.example)"),
    ({"attachments": [{"message_blocks": [{"message": {
        "text": "only words", "attachments": [{"text": "and more"}]}}]}]}, "only words\nand more"),
    ({"blocks": [{"type": "carousel", "elements": [
        {"type": "card", "title": mrkdwn("Tank"), "hero_image": {"type": "image", "alt_text": "a blue tank"}}]}]},
     "Tank\na blue tank"),
    ({"blocks": [{"type": "input", "label": plain("Reason"), "element": {
        "type": "rich_text_input", "initial_value": rich(section(text("it leaks")))}}]}, "Reason\nit leaks"),
    ({"blocks": [{"type": "data_visualization", "title": "Visits", "chart": {"type": "pie", "segments": [
        {"label": "Mon", "value": 4}, {"label": "Tue", "value": 9.5}]}}]}, "Visits\nMon: 4\nTue: 9.5"),
    ({"blocks": [{"type": "data_visualization", "title": "Sales", "chart": {"type": "bar", "series": [
        {"name": "North", "data": [{"label": "Q1", "value": 12}]}], "axis_config": {"y_label": "k€"}}}]},
     "Sales\nk€\nNorth\nQ1: 12"),
    ({"blocks": "x", "attachments": [None, 3], "text": 4}, ""),
]  # fmt: skip
