"""The few words that the quoting engine says itself, in the language of the question.

Promises: nothing here claims anything about the world: lines end in a colon, greet, ask or admit. Must never
be filled with anything but a source's title.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, Literal

Line = Literal["quoted", "closest", "differ", "older", "conflict", "also", "rest", "hello", "thanks", "about"]
_LANGUAGES: Final = ("en", "de", "fr", "es", "id", "ja", "zh")

_LINES: Final[dict[Line, tuple[str, str, str, str, str, str, str]]] = {
    "quoted": (
        "Quoted from {title}:",
        "Zitiert aus {title}:",
        "Cité de {title} :",
        "Citado de {title}:",
        "Dikutip dari {title}:",
        "{title} からの引用：",
        "引自 {title}：",
    ),
    "closest": (
        "What comes closest to your question, quoted from {title}:",
        "Was deiner Frage am nächsten kommt, zitiert aus {title}:",
        "Ce qui se rapproche le plus de votre question, cité de {title} :",
        "Lo más cercano a su pregunta, citado de {title}:",
        "Yang paling dekat dengan pertanyaan Anda, dikutip dari {title}:",
        "ご質問に最も近い内容、{title} からの引用：",
        "与您的问题最接近的内容，引自 {title}：",
    ),
    "differ": (
        "Two documents differ here. Quoted from the newer one, {title}:",
        "Zwei Dokumente sagen hier Verschiedenes. Zitiert aus dem neueren, {title}:",
        "Deux documents divergent ici. Cité du plus récent, {title} :",
        "Dos documentos difieren aquí. Citado del más reciente, {title}:",
        "Dua dokumen berbeda di sini. Dikutip dari yang lebih baru, {title}:",
        "二つの文書で内容が異なります。新しい方 {title} からの引用：",
        "两份文档说法不同。引自较新的 {title}：",
    ),
    "older": (
        "And from the older one, {title}:",
        "Und aus dem älteren, {title}:",
        "Et du plus ancien, {title} :",
        "Y del más antiguo, {title}:",
        "Dan dari yang lebih lama, {title}:",
        "古い方 {title} からの引用：",
        "引自较旧的 {title}：",
    ),
    "conflict": (
        "Two documents differ here. Quoted from {title}:",
        "Zwei Dokumente sagen hier Verschiedenes. Zitiert aus {title}:",
        "Deux documents divergent ici. Cité de {title} :",
        "Dos documentos difieren aquí. Citado de {title}:",
        "Dua dokumen berbeda di sini. Dikutip dari {title}:",
        "二つの文書で内容が異なります。{title} からの引用：",
        "两份文档说法不同。引自 {title}：",
    ),
    "also": (
        "And from {title}:",
        "Und aus {title}:",
        "Et de {title} :",
        "Y de {title}:",
        "Dan dari {title}:",
        "{title} からの引用：",
        "引自 {title}：",
    ),
    "rest": (
        "I found nothing for the other part of your question.",
        "Ich habe zum anderen Teil deiner Frage nichts gefunden.",
        "Je n'ai rien trouvé pour l'autre partie de votre question.",
        "No encontré nada sobre la otra parte de su pregunta.",
        "Saya tidak menemukan apa pun untuk bagian lain pertanyaan Anda.",
        "質問の残りの部分は見つかりませんでした。",
        "没有找到问题其余部分的内容。",
    ),
    "hello": (
        "Hello! What would you like to know from your team's documents?",
        "Hallo! Was möchtest du aus den Dokumenten eures Teams wissen?",
        "Bonjour ! Que voulez-vous savoir des documents de votre équipe ?",
        "¡Hola! ¿Qué quiere saber de los documentos de su equipo?",
        "Halo! Apa yang ingin Anda ketahui dari dokumen tim Anda?",
        "こんにちは！チームの文書について何を知りたいですか？",
        "你好！你想从团队文档里了解什么？",
    ),
    "thanks": (
        "You're welcome! Is there anything else?",
        "Gern! Gibt es noch etwas?",
        "Avec plaisir ! Y a-t-il autre chose ?",
        "¡De nada! ¿Hay algo más?",
        "Sama-sama! Ada lagi yang lain?",
        "お役に立ててうれしいです！ほかに何かありますか？",
        "不客气！还有别的问题吗？",
    ),
    "about": (
        "Hello! I can look things up in your team's documents and show you where they stand. {invites}",
        "Hallo! Ich kann dir in den Dokumenten eures Teams nachsehen und zeigen, wo es steht. {invites}",
        "Bonjour ! Je peux vous montrer ce que disent les documents de votre équipe, et où. {invites}",
        "¡Hola! Puedo buscar en los documentos de su equipo y mostrar dónde está cada cosa. {invites}",
        "Halo! Saya bisa mencari di dokumen tim Anda dan menunjukkan letaknya. {invites}",
        "こんにちは！お気軽に、チームの文書について質問してください。{invites}",
        "你好！请随时问我团队文档里的内容。{invites}",
    ),
}
_INVITES: Final = (
    "What would you like to know? Or would you like to see which documents there are?",
    "Was möchtest du wissen? Oder möchtest du sehen, welche Dokumente es gibt?",
    "Que voulez-vous savoir ? Ou voulez-vous voir quels documents il y a ?",
    "¿Qué quiere saber? ¿O quiere ver qué documentos hay?",
    "Apa yang ingin Anda ketahui? Atau ingin melihat dokumen apa saja yang ada?",
    "何を知りたいですか？文書の一覧を見ますか？",
    "你想了解什么？要看看有哪些文档吗？",
)

_HELLO: Final[dict[str, str]] = {
    "en": "hi|hello|hey|good (?:morning|afternoon|evening)",
    "de": "hallo|guten (?:morgen|tag|abend)|moin|servus",
    "fr": "bonjour|bonsoir|salut|coucou",
    "es": "hola|buenos días|buenas tardes",
    "id": "halo|hai|selamat (?:pagi|siang|sore|malam)",
    "ja": "こんにちは|おはよう(?:ございます)?|こんばんは|はじめまして",
    "zh": "你好|您好|早上好|大家好",
}
_ABOUT: Final[dict[str, str]] = {
    "en": (
        r"help(?: me)?|can you help(?: me)?|how (?:can|do) you help(?: me)?|introduce yourself|tell me about yourself"
        r"|(?:so )?what (?:else )?(?:can|do|could) you (?:do|help(?: \w+)? with|know|answer)(?: for (?:me|us))?"
        r"|(?:so )?(?:who|what) (?:are (?:you|u)|r u|is orion|is this(?: bot)?|does orion do)|what are you for"
        r"|how do (?:you|i use you|i use orion)(?: work)?|how does (?:this|orion|it|this bot) work"
        r"|what (?:can|should|do) i ask(?: you)?"
    ),
    "de": (
        r"hilfe|hilf mir|kannst du mir helfen|stell dich vor|wie funktionierst du|(?:wer|was) (?:bist du|ist orion)"
        r"|was (?:kannst|machst|weißt) du(?: (?:alles|so|eigentlich))?(?: (?:machen|tun))?"
        r"|(?:wobei|womit|wie) kannst du (?:mir |uns )?helfen|was kann ich (?:dich )?fragen"
    ),
    "fr": (
        r"aide(?:z?[ -]moi)?|à l['’]aide|présente[- ]toi|présentez[- ]vous|comment (?:ça marche|fonctionnes-tu)"
        r"|(?:que|qu['’]est-ce que) (?:peux-tu|pouvez-vous|sais-tu|tu peux|vous pouvez|tu sais)(?: faire)?"
        r"|qui (?:es-tu|êtes-vous|es tu)|tu es qui|comment (?:peux-tu|pouvez-vous) (?:m['’])?aider"
    ),
    "es": (
        r"ayuda(?:me)?|ayúdame|preséntate|quién (?:eres|es usted)|qué eres|cómo funcionas?"
        r"|qué (?:puedes|puede|sabes|sabe)(?: usted)?(?: hacer)?|cómo (?:me )?puedes ayudar(?:me)?"
        r"|en qué (?:me )?(?:puedes|puede) ayudar(?:me)?"
    ),
    "id": (
        r"bantuan|tolong(?: bantu)?|siapa (?:kamu|anda)|(?:kamu|anda) siapa|bagaimana cara kerjamu"
        r"|apa (?:saja )?(?:yang )?(?:bisa|dapat) (?:kamu|anda) (?:lakukan|bantu)"
        r"|(?:kamu|anda) (?:bisa|dapat) (?:apa(?: saja)?|bantu apa)"
    ),
    "ja": (
        r"(?:あなたは)?(?:何|なに)(?:が|を)?(?:できます(?:か)?|できるの|してくれます(?:か)?)|(?:あなたは)?(?:誰|だれ)(?:ですか)?"
        r"|ヘルプ|助けて(?:ください)?|自己紹介して(?:ください)?"
    ),
    "zh": r"你(?:能|可以|会)(?:做|干|帮我做?)(?:些)?(?:什么|啥)|你是谁|帮助|帮帮我|怎么用|请?介绍一下你自己",
}
_THANKS: Final[dict[str, str]] = {
    "en": (
        r"thanks(?: for (?:your|the) \w+)?|thank you|thx|ty|cheers|great|perfect|awesome|got it|ok|okay|cool|bye"
        r"|goodbye|(?:that|this|it) (?:really |totally )?(?:help(?:s|ed)|work(?:s|ed)|makes sense|made sense)"
        r"|(?:that|this|it)(?: is|['’]s) (?:great|perfect|helpful|all|it|good to know)|good to know|makes sense"
        r"|understood|will do|sounds good|lol|haha+|nice|wow|yay"
        r"|i(?:['’]ll| will) (?:tell|let|inform) (?:the team|my team|them|everyone|him|her)(?: know)?"
    ),
    "de": (
        r"danke|vielen dank|dankeschön|super|prima|tschüss|das (?:hilft|passt)(?: mir)?(?: sehr)?|alles klar|verstanden"
        r"|passt|gut zu wissen"
    ),
    "fr": "merci|parfait|au revoir",
    "es": "gracias|muchas gracias|perfecto|adiós",
    "id": "terima kasih|makasih|oke",
    "ja": "ありがとう(?:ございます|ございました)?|了解(?:です)?",
    "zh": "谢谢|多谢|好的|再见",
}
_EMOJI: Final = re.compile(r":[\w+'-]{1,60}:(?::skin-tone-\d:)?")
"""As Slack writes every emoji."""
_FILLER: Final = (
    r"(?:[\s,.!?¿¡！？。、~]"
    r"|\b(?:there|all|orion|you|so|much|very|a|lot|team|everyone|again|please|bitte|zusammen|schön|bien|beaucoup|banyak)\b)*"
)


def line(name: Line, language: str | None, *, title: str = "") -> str:
    """One line; English for any other language."""
    index = _LANGUAGES.index(language) if language in _LANGUAGES else 0
    return _LINES[name][index].format(title=_plain(title), invites=_INVITES[index])


def small_talk(message: str) -> str:
    """The reply to a greeting, to thanks or to a question about Orion; nothing for a message that says more."""
    said = _EMOJI.sub("", message).strip()
    if not said and message.strip():
        return line("thanks", None)
    return next((line(name, language) for name, language, pattern in _patterns() if pattern.fullmatch(said)), "")


@cache
def _patterns() -> tuple[tuple[Line, str, re.Pattern[str]], ...]:
    """What each kind of small talk looks like: one or more of its phrases alone, maybe after a greeting."""
    tables: tuple[tuple[Line, dict[str, str]], ...] = (("hello", _HELLO), ("thanks", _THANKS), ("about", _ABOUT))
    return tuple(
        (name, language, re.compile(_whole(said, _HELLO[language] if name == "about" else ""), re.IGNORECASE))
        for name, table in tables
        for language, said in table.items()
    )


def _whole(said: str, first: str) -> str:
    opening = rf"(?:(?:{first})\b{_FILLER})?" if first else ""
    return rf"{_FILLER}{opening}(?:(?:{said})\b{_FILLER})+"


def _plain(title: str) -> str:
    """A title as running text: no marks that would change the form of the line."""
    return " ".join(re.sub(r"[\[\]<>*_`|#]+", " ", title).split())
