"""Reading documents: every form, every date, every kind of damage."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.readers.document import DocumentPart, ReadDocument
from agent.knowledge.readers.reading import MAX_BYTES, parse_document, read_bytes
from agent.knowledge.readers.text import resolve_links
from agent.knowledge.types import ReadError
from tests.support.documents import read_document

DAY = 86_400.0


def read(name: str, data: bytes | str) -> ReadDocument:
    return parse_document(name, data.encode() if isinstance(data, str) else data, changed=20_000 * DAY)


def reason(name: str, data: bytes | str) -> str:
    with pytest.raises(ReadError) as caught:
        read(name, data)
    return caught.value.reason


def test_front_matter_wins_and_line_numbers_stay_true() -> None:
    document = read("a.md", "---\ntitle: 'Given'\nlast-updated: 2025-01-02\n---\n# Other\n")
    assert (document.title, document.updated_at) == ("Given", "2025-01-02")
    assert document.text.split("\n")[4] == "# Other"


def test_text_has_its_name_as_title_and_the_files_date() -> None:
    document = read("release_notes-old.txt", "# not a heading\r\nline\r\n")
    assert (document.title, document.updated_at) == ("Release notes old", "2024-10-04")
    assert document.text == "# not a heading\nline\n"
    assert read("Release 2.1 notes.txt.erb", "x").title == "Release 2.1 notes"


def test_html_keeps_the_content_and_drops_what_surrounds_it() -> None:
    page = (
        "<html><head><title>The &nbsp; page</title><style>p{color:red}</style><script>steal()</script></head><body>"
        "<nav><a href='/'>Home sweet</a></nav><h1 id='top'>Head</h1><p>Hello <b>you</b></p><table><tr><th>A</th></tr>"
        "<tr><td>7</td></tr></table><pre>a  b\n c</pre><img src=x onerror=alert(1)>"
        "<footer>Imprint</footer></body></html>"
    )
    document = read("x.html", page)
    assert document.title == "Head"
    assert "| 7" in document.text
    assert "a  b\n c" in document.text
    for gone in ("steal", "color:red", "Home sweet", "Imprint", "alert"):
        assert gone not in document.text


def test_html_is_read_as_a_browser_shows_it() -> None:
    page = (
        "<p>5<sup>1</sup> of 10<sup>6</sup>, H<sub>2</sub>O, "
        "seats<sup>3</sup>, 7<sup><a href='#n'>4</a></sup>, the 1<sup>st</sup>, n<sup>k+1</sup>.</p>"
        "<aside>Only seats.</aside>"
        "<form><p>Ask Ann.</p><button>Send</button></form><p><del>30</del> 40 days<span hidden>secret</span></p>"
        "<table><tr><td rowspan=2>South<td>3<td rowspan=x>6<td rowspan=2.5 colspan=9e9>7</tr><tr><td>4</table>"
        "<table><tr><!-- a --><td>Plan<td rowspan=2>Team</tr><tr><!-- b --><!-- c --><td>Limit</table>"
        "<p style='text-decoration: line-through'>30</p>"
        "<div role=\"tabpanel\" class='tab' hidden=''>On a Mac: 7 keys.</div><p hidden=until-found>Open: 8.</p>"
    )
    text = read("a.html", page).text
    assert "5¹ of 10⁶, H₂O, seats ³, 7 ⁴, the 1st, n^(k+1)." in text
    assert "Only seats." in text
    assert "Ask Ann." in text
    assert "Open: 8." in text
    assert "40 days" in text
    assert "On a Mac: 7 keys." in text
    assert "| South | 4 |" in re.sub(" +", " ", text)
    assert "| Limit | Team |" in re.sub(" +", " ", text)
    assert not any(gone in text for gone in ("30", "secret", "Send"))


def test_old_page_that_closes_none_of_its_tags_is_read_to_its_end() -> None:
    text = read("a.html", "".join(f"<b><font>line {number}<br>" for number in range(900))).text
    assert [int(number) for number in re.findall(r"line (\d+)", text)] == [*range(900)]


def test_words_around_what_people_do_not_see_stay_apart() -> None:
    page = "".join(
        f"<p>40 {gone}<b>50</b></p>" for gone in ("<del>x</del>", "<svg></svg>", "<button>x</button>", "<!-- x -->")
    )
    assert read("a.html", page).text.split("\n\n") == ["40 **50**"] * 3 + ["40 **50**\n"]


@pytest.mark.parametrize(
    ("table", "shown"),
    [
        ("<tr><td>Menu<td><h2>Leave</h2><p>20 days.</p><p>For all.</p>", "Menu\n\n## Leave\n\n20 days.\n\nFor all.\n"),
        ("<tr><td><td><p>One.</p><p>Two.</p><tr><td>Three.", "One.\n\nTwo.\n\nThree.\n"),
        (f"<tr><td>{'Long. ' * 500}<td>x<tr><td>a<td>b", f"{'Long. ' * 499}Long.\n\nx\n\na\n\nb\n"),
        ("<tr><td><td><table><tr><td>a<td>b<tr><td>c<td>d</table>", "| a | b |\n| --- | --- |\n| c | d |\n"),
        ("<tr><th>Plan<tr><td><h2>Team</h2>", "| Plan |\n| --- |\n| Team |\n"),
        ("<tr><td>Plan<td>Price<tr><td>Team<td>5", "| Plan | Price |\n| --- | --- |\n| Team | 5 |\n"),
    ],
    ids=range(6),
)
def test_table_that_only_places_the_parts_of_a_page_is_none(table: str, shown: str) -> None:
    assert re.sub(" +", " ", read("a.html", f"<table><tbody>{table}</table>").text) == shown


def test_check_boxes_and_chips_are_read_and_a_button_in_a_link_is_its_label() -> None:
    page = '<p><input type=checkbox checked> Paid <input type="checkbox"> Sent</p><a href=/x><button>Start</button></a>'
    page += '<ul><li><div class="checkbox checkbox-on"></div> <span>Mount</span></li><li>'
    page += '<div class="checkbox checkbox-off"></div>Ship</li></ul><table><tr><td>'
    page += '<span class="selected-value select-value-color">A</span><span class="selected-value">B</span></table>'
    shown = "☑ Paid ☐ Sent\n\n[Start](/x)\n\n- ☑ Mount\n- ☐ Ship\n\nA, B\n"
    assert read("a.html", page).text == shown


def test_picture_of_a_page_counts_as_its_description() -> None:
    page = (
        "<table><tr><td>SSO<img alt='not &quot;yet&quot;'></td></tr></table><h1><a href=/x><img src=logo></a></h1><p>"
    )
    page += '<a href="/c"><img alt = "The plan" src="data:image/png;base64,x"></a><img hidden alt=SECRET><img alt="">'
    text = resolve_links(read("a.html", f"{page}<img style='display:none' alt='SECRET'>"), "https://a.example").text
    assert text == 'SSO not "yet"\n\n# \n\n[The plan](https://a.example/c)\n'
    assert "| --- | --- |\n" in read("a.html", f"<table><tr><td>{'long ' * 60}<td>x</table>").text


def test_template_code_and_comments_outside_code_are_not_text() -> None:
    text = "<!-- a --> Left.\n\n{% include x.md %}{{ site.url }}{{< note >}}Kept {{ name }}.\n\n```\n{% raw %}\n```\n"
    kept = read("a.md", text).text
    assert "Left." in kept
    assert "Kept {{ name }}." in kept
    assert "{% raw %}" in kept
    assert not any(gone in kept for gone in ("include", "site.url", "note", "a -->"))


def test_words_that_a_template_tag_puts_on_the_page_are_read_and_its_comments_are_not() -> None:
    tags = 'Ask in {% slack_channel "dc" %}. [Leave]({% page "a/b" %}) {{< tab "Linux" >}} {% include "note.html" %}'
    tags += ' {% highlight "python" %} {%- highlight "js" "nos" -%} {{< youtube "dQw4" >}}{{% codeblock "x" %}}'
    text = f'{tags} {{% if page == "x" %}}\n{{% comment %}}The limit is 5.\n{{% endcomment %}}'
    assert read("a.md", text).text.split() == ["Ask", "in", "dc.", "[Leave]()", "Linux"]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.pdf", b"%PDF-1.7\nbroken", "damaged PDF"),
        ("a.pdf", b"no pdf at all", "damaged PDF"),
        ("a.md", b"", "empty"),
        ("a.txt", b" \n\t", "empty"),
        ("a.md", b"---\ntitle: x\n---\n\n", "no text"),
        ("a.html", b"<html><script>x()</script></html>", "no text"),
        ("a.md", b"text\0\1\2", "binary"),
        ("a.txt", os.urandom(4_000).replace(b"\xef", b"\0"), "binary"),
        ("a.txt", "Отпуск составляет двадцать дней.".encode("koi8-r"), "not UTF-8"),
        ("a.txt", "Отпуск составляет двадцать дней.".encode("cp1251"), "not UTF-8"),
        ("a.ipynb", b"[]", "damaged Jupyter notebook"),
        ("a.docx", b"PK", "a damaged Word document"),
        ("a.odt", b"PK", "(.odt): save it as .docx"),
        ("a.doc", b"PK", "(.doc): save it as .docx or PDF"),
        ("a.rtf", b"PK", "(.rtf): save it as .docx or PDF"),
        ("a.epub", b"PK", "(.epub): convert it to HTML or PDF"),
        ("README", b"x", "no suffix"),
    ],
)
def test_unreadable_input_is_refused_with_the_reason(name: str, data: bytes, said: str) -> None:
    assert said in reason(name, data)


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.txt", "\ufeffGrüße".encode(), "Grüße"),
        ("a.txt", "Grüße 日本".encode("utf-16"), "Grüße 日本"),
        ("a.txt", "Grüße\nDas Kennwort läuft ab.".encode("utf-16-le"), "läuft"),
        ("a.txt", "日本語の文書です。\n次の行".encode("utf-16-be"), "日本語"),
        ("a.txt", "Die Größe beträgt fünf Meter, sagt der Prüfer am Nachmittag.".encode("cp1252"), "Größe"),
        ("a.html", '<meta charset="shift_jis"><p>日本語</p>'.encode("shift_jis"), "日本語"),
        ("a.txt", "休暇は①20日です。\n".encode("cp932") * 9_000, "休暇は①20日です。"),
        ("a.log", b"ok\n" * 9_000 + "エラーが発生しました。\n".encode("cp932") * 900, "エラーが発生しました。"),
        ("a.txt", "【重要】～お知らせ～\n・終了：１８時３０分\n※詳細は別紙①②を参照\n".encode("cp932"), "※詳細は別紙①②"),
        ("a.csv", "氏名,部署\n山田太郎,営業部\n".encode("euc_jp"), "| 山田太郎 | 営業部 |"),
        ("a.md", ("a" + "年假为二十天。请向人事部申请。\n" * 9_000).encode("gb18030"), "年假为二十天。"),
        ("a.txt", "年假為二十天。請向人事部申請。".encode("big5"), "年假為二十天。"),
        ("a.txt", "연차는 20일입니다. 인사팀에 신청하세요.".encode("cp949"), "연차는 20일입니다."),
        ("a.txt", b"a\x07b\x1b[0m", "ab[0m"),
        ("a.md", "Größe, Füße, Öl".encode() + b"\xff x", "Größe, Füße, Öl\ufffd x"),
        ("a.md", "One lost sign \ufffd among plain letters.".encode(), "sign \ufffd among"),
        ("a.html", b'<meta charset="utf-8"><p>Caf\xe9', "Café"),
        ("a.txt", b"Forty seats." + b" A stray zero harms nothing." * 40 + b"\0", "Forty seats."),
        ("a.txt", b"Forty seats." + b" A stray zero harms nothing." * 40 + b"\0 ", "Forty seats."),
    ],
)
def test_usual_encodings_are_understood(name: str, data: bytes, text: str) -> None:
    assert text in read(name, data).text


def test_a_small_page_of_many_spans_is_read_quickly() -> None:
    page = "<table><tr>" + "<td rowspan=100>x" * 900 + "</tr>" + "<tr></tr>" * 100 + "</table>"
    began = time.process_time()
    assert read("a.html", page).text.startswith("| x | x |")
    assert time.process_time() - began < 10, "without a limit: half a minute"


def test_a_file_that_is_too_big_is_not_read(tmp_path: Path) -> None:
    big = tmp_path / "big.txt"
    with big.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ReadError, match="too big"):
        read_document(big)


def test_pipe_or_missing_file_never_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(ReadError, match="regular file"):
        read_document(tmp_path / "pipe.txt")
    with pytest.raises(ReadError, match="cannot be opened"):
        read_document(tmp_path / "gone.txt")


@given(st.binary(max_size=400), st.sampled_from([".md", ".txt", ".html", ".pdf"]))
def test_any_bytes_are_text_or_a_reason(data: bytes, suffix: str) -> None:
    try:
        document = read(f"x{suffix}", data)
    except ReadError as error:
        said = error.reason
    else:
        said = document.text
    assert said.encode("utf-8").strip()


VTT = """\ufeffWEBVTT - Stand-up
Kind: captions

NOTE
SECRET

1f0c-1/15-0
00:00:04.963 --> 00:00:08.571 line:0
<v.loud Ann Smith>OK,
<i.x>start</i> at <00:05.1>9 &amp; end</v>

01:10.000 --> 01:12.000
Bob: 5 < 6
"""
SRT = """1
00:00:01,000 --> 00:00:03,000
<b>Hello</b>
2024

2
00:00:04,500 --> 00:00:05,000
Bye
"""


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("a.vtt", VTT, ["[00:00:04]", "Ann Smith: OK,", "start at 9 & end", "[01:10]", "Bob: 5 < 6"]),
        ("a.srt", SRT, ["[00:00:01]", "Hello", "2024", "[00:00:04]", "Bye"]),
    ],
    ids=["vtt", "srt"],
)
def test_transcript_is_who_says_what_and_when(name: str, text: str, shown: list[str]) -> None:
    read_text = read(name, text).text
    assert [*filter(None, read_text.split("\n"))] == shown
    assert read_text.count("\n") == text.count("\n")


def read_until_refused(file: Path) -> None:
    give_up = time.monotonic() + 60  # the writer may have to wait for a processor
    while time.monotonic() < give_up:
        read_bytes(file)


def test_a_file_that_is_being_written_waits_until_it_is_stable(tmp_path: Path) -> None:
    file = tmp_path / "minutes.txt"
    file.write_text("one\n" * 2_000_000)
    touch = "import itertools, os, sys\nfor n in itertools.count(): os.utime(sys.argv[1], ns=(n, n))"
    with subprocess.Popen([sys.executable, "-c", touch, str(file)]) as writer:
        try:
            with pytest.raises(ReadError, match="is being written") as raised:
                read_until_refused(file)
        finally:
            writer.kill()
    assert raised.value.temporary
    assert read_document(file).title == "Minutes"


@pytest.mark.parametrize(
    ("line", "date"),
    [
        ("_Last modified 2026-02-03_", "2026-02-03"),
        ("**Last updated:** 2026-10-02", "2026-10-02"),
        ("Last updated: 2026-02-31", "2024-10-04"),
        ("Last updated: January 5, 2026", "2026-01-05"),
        ("Owner: Sales. Last updated: 2026-01-05", "2026-01-05"),
        ("Verantwortlich: J. Stand: 5. November 2026.", "2026-11-05"),
        ("| Owner | Sales |\n| Last updated | 5 January 2026 |", "2024-10-04"),
        ("**Stand:** 3. März 2026", "2026-03-03"),
        ("Stand: März 2026", "2026-03-01"),
        ("Zuletzt geändert am 03.04.2026", "2026-04-03"),
        ("Datum: Mittwoch, 11. November 2026, 15:00 Uhr", "2026-11-11"),
        ("**Fecha**: miércoles, 21 de octubre de 2026, 09:30", "2026-10-21"),
        ("Vigentes desde el 1 de enero de 2026 · Versión del 12 de diciembre de 2025", "2025-12-12"),
        (f"{'x ' * 400}\n\nDate: 5 January 2026", "2024-10-04"),
        ("Customer Care · October 2023 · J. Tennant", "2024-10-04"),
        ("In force from 1 April 2026. Replaces the policy of 15 January 2024.", "2024-10-04"),
        ("See https://a.example/2021-03-04/updated: 2021-03-04", "2024-10-04"),
        ("```\nDate: 5 January 2026\n```", "2024-10-04"),
        ("Tariff year 2026. Approved on 18 November 2025. Next review: June 2999", "2024-10-04"),
        ("## Holidays\n\nThe office is closed on 1 May 2026.", "2024-10-04"),
        ("Dernière mise à jour : 5 janvier 2026", "2026-01-05"),
        ("Última actualización: 5 de enero de 2026", "2026-01-05"),
        ("Terakhir diperbarui: 5 Januari 2026", "2026-01-05"),
        ("最終更新日：2026年1月5日", "2026-01-05"),
        ("最后更新：2026年1月5日", "2026-01-05"),
        ("Last updated: 03/04/2026", "2024-10-04"),
        (":revdate: 2026-01-05", "2026-01-05"),
        ("#+DATE: 2026-01-05", "2026-01-05"),
        ("Updated by Ann in 2026", "2024-10-04"),
        ("Last updated: Mon, 06 May 2024 10:00:00 +0200", "2024-05-06"),
        ("Last updated: Tue May  7 10:00:00 2024 +0200", "2024-05-07"),
        ("Stand: Mo., 6. Mai 2024, 10:00 Uhr", "2024-05-06"),
        ("Last updated: 2024-05-06 10:00 CET", "2024-05-06"),
        ("Last updated: May 6, 2024 at 10:00 AM PST", "2024-05-06"),
        ("As of: 2999-01-01", "2024-10-04"),
        ("As of: 1899-12-30", "2024-10-04"),
    ],
)
def test_a_date_that_a_document_states_is_read_in_seven_languages(line: str, date: str) -> None:
    assert read("a.md", f"# Title\n\n{line}\n\nText.\n").updated_at == date


def test_a_modified_date_comes_before_a_created_one_and_a_commit_before_the_head() -> None:
    fields = "---\ndate: 2020-01-01\nlastmod: 2024-05-06T10:00:00Z\n---\n"
    assert read("a.md", f"{fields}# T\n\nText.").updated_at == "2024-05-06"
    head = b"# T\n\nLast updated: 2020-01-01\n"
    assert parse_document("a.md", head, committed=20_000 * DAY).updated_at == "2024-10-04"
    assert parse_document("a.md", b"# T\n\nText.\n").updated_at == ""
    assert read("a.md", "---\ndate: 2999-01-01\ncreated: 2024-05-06\n---\n# T\n\nText.").updated_at == "2024-05-06"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<table>\n<tr><th>Plan</th><th>Price</th></tr>\n<tr><td>Pro</td><td>5<sup>1</sup></td></tr>\n</table>",
         "| Plan | Price |\n| --- | --- |\n| Pro  | 5¹ |"),
        ('<table><tr><td rowspan="2">Pro</td><td>`a`</td></tr><tr><td>b</td></tr></table>',
         "| Pro | `a` |\n| --- | --- |\n| Pro | b |"),
        ("| `a \\|    b`     | c        |\n|---------|:----------:|\n|      1 | `x    y`",
         "| `a \\|    b` | c |\n|---|:---:|\n| 1 | `x    y`"),
        ("```\n| a     | b |\n|---|---|\n```\n\nUse a     | b.", "```\n| a     | b |\n|---|---|\n```\nUse a     | b."),
        ("- One\n\n  | a    | b |\n  |---|---|", "- One\n  | a | b |\n  |---|---|"),
        ("<ul>\n<li>a<ul><li>b</li></ul></li>\n</ul>", "- a\n  * b"),
        ('<h2 align="center">Leave</h2>\n<p>90 days</p><p>60 days</p>', "## Leave\n 90 days  60 days"),
        ("<details>\n<summary>How long?</summary>\n\n90 days.\n\n</details>", "**How long?**\n90 days."),
        ('Press <kbd>Ctrl</kbd>, <a href="https://x.example">see</a> <img src="x" alt="the plan">',
         "Press Ctrl, [see](https://x.example) the plan"),
        ('Full<img src="x" alt="Power"><img src="y" alt="Disk">', "Full Power Disk"),
        ("```html\n<ul><li>x</li></ul>\n```\n`<td>`", "```html\n<ul><li>x</li></ul>\n```\n`<td>`"),
        ("a < b, List<T> and <table>", "a < b, List<T> and <table>"),
        ("<table>\nnever closed", "<table>\nnever closed"),
        ("<h1>\n\n![urllib3](x.svg)\n\n</h1>", "<h1>\n![urllib3](x.svg)\n</h1>"),
        (":::note\nNever.\n:::", "**Note**\nNever."),
        (":::warning[Careful now]\nNever.\n:::", "**Careful now**\nNever."),
        ("::: {.tip}\nNever.\n:::", "**Tip**\nNever."),
        ("> [!IMPORTANT]\n> Never.", "> **Important**\n> Never."),
        ("> [!info]- Folded\n> Never.", "> **Folded**\n> Never."),
        ('!!! tip "Old"\n    30.\n\n    ??? note\n        Ask.\n\nNow 90.', "**Old**\n30.\n**Note**\nAsk.\nNow 90."),
        ('=== "Linux"\n\n    apt\n', "**Linux**\napt"),
        ("```\n!!! note\n    x\n:::note\n```", "```\n!!! note\n    x\n:::note\n```"),
        ("Title\n===\n\n    code", "Title\n===\n    code"),
        ("~~30~~ 40 for 10<sup>6</sup>, <del>old</del> new. `~~code~~` H~2~O ~~~\n\nA ~~ b ~~ c",
         "40 for 10⁶,  new. `~~code~~` H~2~O ~~~\nA ~~ b ~~ c"),
        ("Konfigurations&shy;datei&nbsp;5 &euro;, 1 &lt; 2 &amp; `&lt;`", "Konfigurationsdatei 5 €, 1 < 2 & `&lt;`"),
        ("Set &lt;name&gt; to a&#124;b &bogus; R&D", "Set \\<name\\> to a\\|b &bogus; R&D"),
        ("| a<br>b | c<wbr>d |\n| --- | --- |", "| a b | cd |\n| --- | --- |"),
        ("##Install\n###1.<br>Copy\n#5 is an issue", "## Install\n### 1. Copy\n#5 is an issue"),
        ("[Go](x){: .btn } *now*{ .wide }\n{: .note }\n{:toc}\n`{: .btn }`", "[Go](x) *now*\n`{: .btn }`"),
        ("## Leave\n{: #time-off .wide }\n", "## Leave {: #time-off .wide }"),
        ('{{ example({ group: "x", item: "y" }) }}Kept.', "Kept."),
        ("import Tabs from '@theme/Tabs';\n<Tabs>\n<TabItem label=\"Linux\">apt</TabItem>\n</Tabs>", "Linux apt"),
        ('## Use `it` {/*use-it*/}\n<Badge text="beta" />\n`List<T>`', "## Use `it`\nbeta\n`List<T>`"),
        ("A List<T>, a <B>bold</B> x.\n`</Tabs>`", "A List<T>, a bold x.\n`</Tabs>`"),
        ("Set:\n\n    <IfModule x.c>\n    </IfModule>", "Set:\n    <IfModule x.c>\n    </IfModule>"),
        ("Shown.\n{ .annotate }\n<code>a_b</code>", "Shown.\na_b"),
        (':::tip{icon="heart"}\nDo.\n:::\n:::note[Mind]{icon="x"}\nIt.\n:::', "**Tip**\nDo.\n**Mind**\nIt."),
    ],
    ids=range(37),
)  # fmt: skip
def test_markdown_is_read_as_a_browser_and_a_site_generator_show_it(text: str, shown: str) -> None:
    lines = (line.rstrip() for line in read("a.md", text).parts[0].text.splitlines())
    assert "\n".join(filter(None, lines)).strip() == shown


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a-b.md", "```sh\n# install it\n```\n\n## Summary\n\nx", "A b"),
        ("a-b.md", "Real title\n==========\n\n# Other\n", "Real title"),
        ("a.html", "<title>untitled</title><p>x</p>", "A"),
        ("data-use.html.md.erb", "Text.\n", "Data use"),
        ("a.html", "<title>The &amp;nbsp; sign</title><p>x</p>", "The &nbsp; sign"),
        ("x.htm", "<title>Tom &amp; Jerry</title><p>Text</p>", "Tom & Jerry"),
        ("x-y.htm", "<p>Text</p>", "X y"),
        ("a.html", "<title>Microsoft Word - x.doc</title><p>x</p>", "A"),
        ("install-guide.html.erb", "<% x %><p>Text</p>", "Install guide"),
        ("Leave 1f0c2ab0c9d3804fb9c1f2f0a4f8a7d1.md", "Text", "Leave"),
        ("a%20b.md", "Text", "A b"),
        ("a.md", "# Leave {#time-off .wide}\n\nText", "Leave"),
        ("a.md", "---\ntitle: >-\n  Long\n  title\nowner: Ann\n---\n\nText", "Long title"),
        ("a.md", '---\ntitle: "The \\"x\\" plan" # draft\n---\n\nText', 'The "x" plan'),
        ("a.md", "---\ntitle: The plan # draft\n---\n\nText", "The plan"),
        ("a.md", '{\n  "title": "Given",\n  "weight": 3\n}\n\n# Other\n', "Given"),
        ("plain.rst", "Words only.\n", "Plain"),
        ("retry_later.py", "def retry() -> None:\n    ...\n", "retry_later.py"),
        (
            "x.html",
            '<h1>Install<a class="headerlink" href="#i">\u00b6</a></h1><p>Run <a href="/x">it</a>.</p>',
            "Install",
        ),
        ("a-b.adoc", "== A section\n\nText", "A b"),
        ("a.md", "# The `max_conns` and \\_new\\_ _odd_ *one*\n\nText", "The max_conns and _new_ odd one"),
        (
            "a.xhtml",
            "<?xml version='1.0'?><html><head><title/></head><body><h1>The guide</h1></body></html>",
            "The guide",
        ),
        ("a.mdx", "export const x = 1\n\n# Cards\n\n<Card>Text</Card>", "Cards"),
        ("a.md", '+++\ntitle = "Given"\n+++\n\n# Other\n', "Given"),
        ("a.md", "---\ntitle: Logging in &amp; Networks\n---\n\nText.\n", "Logging in & Networks"),
    ],
)
def test_a_document_has_its_own_title_or_its_file_name(name: str, text: str, title: str) -> None:
    assert read(name, text).title == title


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('A <div style="display:none">SECRET</div> b', "A b"),
        ("<DIV title='a>b' STYLE='color: red; Visibility : hidden'>\n\nSECRET\n<div>x</div>\n\n</DIV>\n\nA b", "A b"),
        ('<div style={{ display: "none" }}>SECRET</div> A b', "A b"),
        ("<span style=font-size:0>SECRET</span>A <span style='opacity: 0'>SECRET</span>b", "A b"),
        ("<span style='display&#58;none'>SECRET</span>A b", "A b"),
        ("A <span hidden>SECRET</span>b <b hidden=''>SECRET</b><input type=hidden value=SECRET>", "A b"),
        ("A b\n\n<p hidden>SECRET\n\nc", "A b c"),
        ("A b\n\n<section hidden>SECRET\n\nSECRET", "A b"),
        ("<!--\n```\nSECRET\n```\n-->\nA `<!--` b <!-- SECRET `x` -->", "A `<!--` b"),
        ("A <!--> b\n\n<!-- SECRET\n\nSECRET", "A b"),
        ("<script>document.write('<script>SECRET')</script>A <style>SECRET</style>b <?php SECRET ?>", "A b"),
        ("<table><tr hidden><td>SECRET</td></tr><tr><td>A b</td></tr></table>", "A b"),
        ('A b\n\n[//]: # (SECRET\nSECRET)\n\n[note]: <> "SECRET"', "A b"),
        ("A `<div hidden>` b </div>", "A `<div hidden>` b"),
        ("A\n\n    <!--\n\n    <script>\n\nb", "A <!-- <script> b"),
        ('<div role="tabpanel" hidden>A b</div>', "A b"),
        ('<div hidden="until-found">A <i style="font-size:0;transform:none">SECRET</i>b</div>', "A b"),
        ('<div style="display:block" data-x=" hidden ">A b</div>', "A b"),
        ("<b style='font-size: small; opacity: .5'>A</b> <i style='opacity: inherit; fill-opacity: 0'>b</i>", "A b"),
        ("<template #title>A b</template>", "<template #title>A b</template>"),
        ("A %%SECRET%%b\n\n%%\nSECRET\n\nSECRET\n%%", "A b"),
        ("A 5 %% and b 6 %", "A 5 %% and b 6 %"),
    ],
    ids=range(22),
)  # fmt: skip
def test_text_that_no_person_sees_is_not_read(text: str, shown: str) -> None:
    for suffix in ("md", "mdx"):
        page = resolve_links(read(f"a.{suffix}", text), "")
        assert " ".join(page.text.split()) == shown
    notebook = json.dumps({"cells": [{"cell_type": "markdown", "source": [text]}]})
    assert "SECRET" not in resolve_links(read("a.ipynb", notebook), "").text


@pytest.mark.parametrize(
    "hidden",
    [
        "<div hidden>SECRET<p>SECRET</p>",
        "<p style='opacity:0'>SECRET</p>",
        "<p style='color:red; font-size:0'>SECRET",
        "<span style='visibility : hidden'>SECRET</span>",
        "<td style='display:none'>SECRET</td>",
    ],
)
def test_hidden_text_of_a_page_is_not_read(hidden: str) -> None:
    shown = "<p style='opacity:.5'>A b</p><p style='opacity:0;transform:translateY(24px)'>fades in</p>"
    assert read("a.html", f"{shown}{hidden}").text.split() == ["A", "b", "fades", "in"]


@pytest.mark.parametrize(
    "mark",
    [
        "<",
        "<div",
        "<div>",
        "<a ='",
        "<p hidden> ",
        "<span hidden>",
        "<!-- ",
        "<h1>\n\n",
        ":::",
        "|",
        "<img ",
        "{{",
        "{:",
        "%%\n",
    ],
)
@pytest.mark.parametrize("name", ["a.mdx", "a.html"])
def test_a_page_of_one_repeated_mark_is_read_quickly(name: str, mark: str) -> None:
    begun = time.process_time()
    for end in ("", "</span>", "</h1>", "-->"):
        read(name, "Text.\n\n" + mark * (50_000 // len(mark)) + end * (50_000 // (len(end) or 1)))
    assert time.process_time() - begun < 5, (
        "each takes a tenth of a second; a second search after each mark takes minutes"
    )


def test_prose_that_begins_like_code_is_kept_in_mdx() -> None:
    code = 'import Tabs from "./tabs"\nimport {\n  A,\n  B,\n} from "./b";\nimport "./c.css"\nexport const x = 1\n'
    text = read(
        "a.mdx", f"{code}\n# Customs\n\nThey say that\nimport duties are 5 %, and\nexport licences 40 euros."
    ).text
    assert "import duties are 5 %, and\nexport licences 40 euros." in text
    assert not any(gone in text for gone in ("Tabs", "./b", "B,", "css", "const"))


def test_a_date_in_front_matter_may_have_a_name_in_any_of_the_languages() -> None:
    for field, said in (("actualizado", "2024-02-12"), ("updatedAt", "2024-02-12"), ("Stand", "2. März 2026")):
        text = f"---\ntitulo: Gastos\n{field}: {said}\n---\n\n# Gastos\n\nTexto.\n"
        assert read("a.md", text).updated_at in {said, "2026-03-02"}


BASE = "https://docs.example/guide/intro.md"


def resolve(text: str, url: str = BASE) -> str:
    document = ReadDocument(title="T", form="markdown", parts=(DocumentPart(text=text),), updated_at="")
    return resolve_links(document, url).text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](b.md)", "[a](https://docs.example/guide/b.md)"),
        ("[a](../x/b.md#top)", "[a](https://docs.example/x/b.md#top)"),
        ('[a](/b "Title")', "[a](https://docs.example/b)"),
        ("[a](https://other.example/a_(b))", "[a](https://other.example/a_(b))"),
        ("See [the guide][g] and [g].\n\n[g]: guide.md 'G'\n", None),
        ("![A diagram](img/d.png) shows it", "A diagram shows it"),
        ("| 8 | ![Power A](a.svg)![Disk B](b.svg 'B') |", "| 8 | Power A Disk B |"),
        (
            "Click![Save](s.png)now, ![c][s]![d][s]. (![e](s.png)) x![](s.png)y\n\n[s]: s.png",
            "Click Save now, c d. (e) xy\n\n",
        ),
        ("[run](javascript:alert(1))", "run"),
        ("[the card]() has a template's tag as its target", "the card has a template's tag as its target"),
        ("`[a](b.md)` is code", "`[a](b.md)` is code"),
        ("As in [2](https://x.example/) and [3] [4].", "As in [(2)](https://x.example/) and (3) (4)."),
        ("- [ ] open\n- [x] done [^1]", "- [ ] open\n- [x] done [^1]"),
        ("[`a` now](b.md), `[c](d.md)`", "[`a` now](https://docs.example/guide/b.md), `[c](d.md)`"),
        ("[a](<b c.md>)", "[a](https://docs.example/guide/b%20c.md)"),
        ("[![Build](https://ci.example/b.svg)](b.md)", "[Build](https://docs.example/guide/b.md)"),
        ("See [[Leave]] and [[x/Leave#Days|the days]], not [[1]].", "See Leave and the days, not (1)."),
        ("![[plan.png|300]] ![[icon.svg#icon]] ![[Leave]] [[#Days]]", "  Leave Days"),
        (
            "[[Note a]](//x.example/n) [[1]](b.md)",
            "[[Note a]](https://x.example/n) [(1)](https://docs.example/guide/b.md)",
        ),
        (
            "[`pip`][p] [`x`][] [`a[0]`]\n\n[p]:\n  p.md\n[`x`]: #x\n",
            f"[`pip`](https://docs.example/guide/p.md) [`x`]({BASE}#x) [`a[0]`]\n\n\n\n\n",
        ),
        (
            "The [guide][the\nguide] says\n\n[The guide]: g.md",
            "The [guide](https://docs.example/guide/g.md)\n says\n\n",
        ),
    ],
)
def test_links_work_or_are_text(text: str, expected: str | None) -> None:
    if expected is None:
        expected = (
            "See [the guide](https://docs.example/guide/guide.md) and [g](https://docs.example/guide/guide.md).\n\n\n"
        )
    assert resolve(text) == expected


def test_without_an_address_of_its_own_a_document_shows_no_paths() -> None:
    assert resolve("Read [the guide](../guide.md) and [mail](mailto:a@b.example).", "") == (
        "Read the guide and [mail](mailto:a@b.example)."
    )


def test_text_between_two_rules_is_no_front_matter() -> None:
    assert "Seats: forty." in read("a.md", "---\n\nSeats: forty.\n\n---\n\nMore.\n").text
    assert "Welcome" in read("a.md", "---\nWelcome to the team.\n---\n\nMore.\n").text


def test_component_shows_its_words_and_no_code() -> None:
    text = '<Card\n  title="Team plan"\n  onClick={() => go()}\n  description={"40 seats"}\n>\nBody\n</Card>\n'
    text += "export const meta = {\n  size: 3,\n}\n\n<Title>End.</Title>\n"
    assert read("a.mdx", text).text == "Team plan: 40 seats \n\n\n\n\nBody\n\n\n\n\n\nEnd.\n"
