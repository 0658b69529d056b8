"""Texts that act, leak or hide if they reach Slack as they are, by kind.

The made-up tokens are put together here, so that no scanner of repositories takes this file for a leak.
"""

from typing import Final

MIX: Final = "7Qz9Lm2XvB4nT8kRw1Yc5HdJ3gPs6FaU0eNi"
_TARGETS: Final = [
    "data:text/html,evil", "javascript:alert('evil')", "JaVaScRiPt://evil.test/%0aalert(1)", "magnet:?xt=evil",
    "intent://evil.test/#Intent;scheme=https;end", "ms-word:ofe|u|https://evil.test/a.docx", "sip:evil@evil.test",
    "view-source:https://evil.test/", "blob:https://evil.test/", "whatsapp://send?text=evil", "//evil.test/a",
    "https:\\\\evil.test\\a", "https:/evil.test/a", "HTTPS://EVIL.TEST", "https://good@evil.test/a",
    "https://d\u043ecs.test/", "https://docs.test.evil.test/", "https://evil\u3002test/", "https://[::1]/evil",
    "https\uff1a//evil.test/", "%68ttps://evil.test/", "&#104;ttps://evil.test/", "h\u00adttps://evil.test/",
    "ht\ntps://evil.test/", "java\tscript:evil", "ssh://evil.test/x", " https://evil.test/a ",
    '<https://evil.test/a b> "t"',
]  # fmt: skip
_FORMS: Final = [
    "[x][y]\n\n[y]: https://evil.test/a", "<https://evil.test/a>", '<a href="https://evil.test/a">x</a>',
    "<https://evil.test/a|https://docs.test/>", "_https://evil.test/a_", "-https://evil.test/a", "<iframe src=evil>",
    "https:\u200b//evil.test/", "![i](https://evil.test/i.png)", "<!date^1^{date}^https://evil.test/|x>",
    "www.evil.test/a", "[a [b](https://evil.test/) c](https://evil.test/)", "x[^1]\n\n[^1]: https://evil.test/a",
    "<mailto:evil@evil.test|x>", "<tel:+190055501|x>", "| a | b |\n|---|---|\n| [x](https://evil.test/) | y |",
    "> # https://evil.test/a", "\\[x](https://evil.test/a)", "https&#58;//evil.test/a",
    "https&colon;&sol;&sol;evil.test/", "[x][y]\n\n[y]:\n  https://evil.test/a",
    "[y]: evil.test\n\n[x][y]", "<slack://evil>", "HTTPS&#x3a;//EVIL.TEST/",
]  # fmt: skip
_CALLS: Final = [
    "<!channel>", "<!here|x>", "<!subteam^S0EVIL>", "<@W0EVIL|x>", "<#C0EVIL|help>", "&lt;!channel&gt;",
    "`<!channel>`", "&amp;lt;!here&amp;gt;", "\\<!everyone>", "<\u200b!channel>", "<!group>",
    "<!room>", "<@u0evil>", "<!date^1^{date}^slack://evil|x>",
]  # fmt: skip
_HIDDEN: Final = ["pay \u202e001\u202c euros", "a\U000e0041\U000e0042b", "a\u2066\u2067b\u2069", "a\u200f\u061c\ufeffb"]
SECRETS: Final = [
    "xoxb" + "-2847163950-" + MIX[:24], "sk" + "-proj-" + MIX, "password: " + "Winter2026!", "pcsk_" + MIX * 2,
    "postgres://admin:" + "p4ssw0rd9" + "@db.acme.test/main",
]  # fmt: skip
SERIALISED: Final = ['{"answer": "Use the console."}', '{"action": "respond", "text": "x"}', "<thinking>x</thinking>"]
ATTACKS: Final = [*(f"[x]({target})" for target in _TARGETS), *_FORMS, *_CALLS, *_HIDDEN, *SECRETS, *SERIALISED]
NEVER: Final = [*SECRETS, '{"', "{&quot;", "thinking>"]
"""Words that nothing sent may hold."""
