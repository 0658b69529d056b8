"""The few words that the quoting engine says itself, in the language of the question.

Promises: nothing here claims anything about the world: lines end in a colon, greet, ask or admit. Must never
be filled with anything but a source's title.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Line = Literal["quoted", "differ", "older", "conflict", "also", "rest", "hello", "thanks"]
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
}

_HELLO: Final[dict[str, str]] = {
    "en": "hi|hello|hey|good (?:morning|afternoon|evening)|help|what can you do|who are you",
    "de": "hallo|guten (?:morgen|tag|abend)|moin|servus|hilfe|was kannst du",
    "fr": "bonjour|bonsoir|salut|coucou|aide",
    "es": "hola|buenos días|buenas tardes|ayuda",
    "id": "halo|hai|selamat (?:pagi|siang|sore|malam)|bantuan",
    "ja": "こんにちは|おはよう(?:ございます)?|こんばんは|はじめまして",
    "zh": "你好|您好|早上好|大家好",
}
_THANKS: Final[dict[str, str]] = {
    "en": "thanks|thank you|thx|ty|cheers|great|perfect|awesome|got it|ok|okay|cool|bye|goodbye",
    "de": "danke|vielen dank|dankeschön|super|prima|tschüss",
    "fr": "merci|parfait|au revoir",
    "es": "gracias|muchas gracias|perfecto|adiós",
    "id": "terima kasih|makasih|oke",
    "ja": "ありがとう(?:ございます|ございました)?|了解(?:です)?",
    "zh": "谢谢|多谢|好的|再见",
}
_FILLER: Final = (
    r"(?:[\s,.!?！？。、~]"
    r"|\b(?:there|all|orion|you|so|much|very|a|lot|team|everyone|again|zusammen|schön|bien|beaucoup|banyak)\b)*"
)


def line(name: Line, language: str | None, *, title: str = "") -> str:
    """One line; English for any other language."""
    index = _LANGUAGES.index(language) if language in _LANGUAGES else 0
    return _LINES[name][index].format(title=_plain(title))


def small_talk(message: str) -> str:
    """The reply to a greeting or to thanks; nothing for any message that says more."""
    for name, table in (("hello", _HELLO), ("thanks", _THANKS)):
        for language, patterns in table.items():
            if re.fullmatch(rf"{_FILLER}(?:(?:{patterns})\b{_FILLER})+", message.strip(), re.IGNORECASE):
                return line("hello" if name == "hello" else "thanks", language)
    return ""


def _plain(title: str) -> str:
    """A title as running text: no marks that would change the form of the line."""
    return " ".join(re.sub(r"[\[\]<>*_`|#]+", " ", title).split())
