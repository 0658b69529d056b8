"""Sentences that state nothing to be checked: greetings, questions, offers, announcements, admissions of not knowing.

Promises: plain patterns in the seven languages over one sentence; a sentence with a citation is never small talk (its
caller sees to that). Must err toward "states something": a claim taken for small talk would escape the check.
"""

from __future__ import annotations

import re

_MARKUP = re.compile(r"[*_~`]|:[a-z0-9_+-]{2,30}:|<@[A-Z0-9]+>|[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f]")
_WORD = re.compile(r"[^\W_]+")
_QUESTION = re.compile(r"[?？]['\")\]}»”’*_~\s]*$")
_GREETING = re.compile(
    r"(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|question)|thanks?|thank you|welcome|"
    r"you['’]re welcome|sure|of course|certainly|"
    r"absolutely|great|yes|no|ok(?:ay)?|sorry|no problem|got it|hallo|guten (?:tag|morgen|abend)|danke|"
    r"vielen dank|gern(?:e)?|"
    r"natürlich|klar|ja|nein|bitte|bonjour|bonsoir|salut|merci|bien sûr|oui|non|avec plaisir|de rien|désolé|hola|"
    r"buenos días|"
    r"buenas tardes|gracias|claro|por supuesto|sí|de nada|lo siento|halo|hai|selamat (?:pagi|siang|sore|malam|"
    r"datang)|terima kasih|"
    r"tentu|ya|tidak|maaf|sama-sama|baik|はい|いいえ|こんにちは|おはよう|ありがとう|承知|もちろん|了解|你好|您好|谢谢|好的|当然|是的|不客气|抱歉)"
    r"(?![^\W_])",
    re.IGNORECASE,
)
_GREETING_WORDS = 6
_GREETING_LETTERS_CJK = 16
_OFFER = re.compile(
    r"(?:please )?(?:let me know|feel free|just ask|ask me|tell me|(?:i )?hope (?:this|that|it)|i['’]?(?:ll| can|"
    r" could| will| would|['’]d|m| am)"
    r" (?:also )?(?:be )?(?:happy|glad|help|look|search|check|summari[sz]e|explain|show you|find|provide|draft|"
    r"translate|tell you)|happy to|"
    r"glad to|sag(?:e|en sie)? (?:mir |einfach )?(?:gerne? )?bescheid|lass(?:en sie)? (?:es )?mich wissen|"
    r"melde dich|ich hoffe|ich (?:kann|helfe|könnte)"
    r" (?:dir |ihnen |auch |gerne? )+|n['’]hésite|dites-moi|dis-moi|j['’]espère|je peux (?:aussi |vous |t['’])|"
    r"fais-moi savoir|faites-moi savoir|"
    r"no dude|avísame|dime|espero que|puedo (?:también )?(?:ayudar|buscar|explicar)|hazme saber|silakan (?:tanya|"
    r"beri tahu|hubungi saya)|"
    r"beri tahu saya|semoga|saya (?:bisa|dapat) (?:juga )?(?:membantu|mencari)|お気軽に|ご不明な点|何かあれば|"
    r"お役に立て|请随时|請隨時|"
    r"希望这|希望對|希望对|告诉我)",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"(?:if|should) you|wenn (?:du|sie)|falls (?:du|sie)|si (?:vous|tu|necesitas|quieres|tienes|desea)|"
    r"jika (?:anda|kamu)|"
    r"(?:他に|もし|さらに|必要)|如果(?:您|你)|如(?:需|有)",
    re.IGNORECASE,
)
_CONDITION_OFFER = re.compile(
    r"let me know|just (?:ask|tell|say)|i (?:can|could|will)|i['’]ll|i['’]d|happy to|bescheid|frag (?:einfach|"
    r"mich)|kann ich|helfe ich|dis-moi|"
    r"dites-moi|n['’]hésite|je peux|dímelo|avísame|dime|puedo|no dude|beri tahu|saya (?:bisa|dapat)|tanya|知らせ|"
    r"お申し付け|聞いて|お問い合わせください|告诉我|随时|隨時",
    re.IGNORECASE,
)
_ANNOUNCEMENT = re.compile(
    r"here(?:['’]s| is| are)|below (?:is|are)|hier (?:ist|sind|findest)|nachfolgend|voici|ci-dessous|"
    r"aquí (?:está|tiene|tienes|van)|"
    r"a continuación|berikut(?: ini)?|以下は|以下が|以下是|下面是",
    re.IGNORECASE,
)
_ADMISSION = re.compile(
    r"(?:unfortunately,? |sorry,? |however,? |leider )*(?:"
    r"(?:i|we)(?: can(?:not|['’]t)| could(?: not|n['’]t)| do(?: not|n['’]t)| did(?: not|n['’]t)| have(?: not|"
    r"n['’]t)| was(?: not|n['’]t) able| am not able)"
    r"|(?:i|we) (?:found|have|see) (?:no|nothing)|there (?:is|was) no(?:thing)? (?:information|mention|answer|"
    r"details?|in the)"
    r"|(?:the |my |these |your |cited |available )*(?:sources?|documents?|docs|passages?|handbook|"
    r"context)(?: i (?:found|have|searched|read))?"
    r" (?:do(?:es)?(?: not|n['’]t)|did(?: not|n['’]t)|contains? no|says? nothing|has no|have no)"
    r"|ich (?:konnte|kann|weiß|finde|habe|sehe)\b.{0,60}\b(?:nicht|nichts|kein)|(?:die|den|in den) (?:quellen|"
    r"dokumenten?|unterlagen)\b.{0,60}\b(?:nicht|nichts|kein)"
    r"|je n['’](?:ai|arrive)|je ne (?:trouve|sais|peux|vois)|les (?:sources|documents) (?:ne |n['’])|"
    r"aucun(?:e)? (?:source|document|information)"
    r"|no (?:he )?(?:encontr|puedo|pude|sé|tengo|hay información)|(?:las fuentes|los documentos) no"
    r"|(?:saya )?tidak (?:dapat |bisa )?(?:menemukan|ditemukan|tahu|ada informasi)|(?:sumber|dokumen)\b.{0,30}\btidak"
    r"|.{0,30}(?:見つかりません|見つけられません|わかりません|記載(?:は|が)?(?:されて)?(?:い|あり)ません|情報(?:は|が)ありません)"
    r"|.{0,20}(?:没有找到|找不到|未找到|没有提到|未提及|没有(?:相关)?信息|没有说明|不知道))",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"[;；]|[,，、.]\s*(?:but|however|though|aber|jedoch|mais|pero|tetapi|namun|ただし|しかし|但|不过)|\bbut\b|ただし",
    re.IGNORECASE,
)


def states_nothing(sentence: str) -> bool:
    """True if the sentence (without citations) has nothing that a source could support or contradict."""
    plain = _MARKUP.sub(" ", sentence).strip(" \t-–—•\"'“”«»()")
    words = _WORD.findall(plain)
    if not words or _QUESTION.search(plain):
        return True
    if _GREETING.match(plain) and _is_short(plain, words):
        return True
    if _OFFER.match(plain) or (_CONDITION.match(plain) and _CONDITION_OFFER.search(plain)):
        return True
    if _ANNOUNCEMENT.match(plain) and not any(word.isdigit() for word in words):
        return True
    return bool(_ADMISSION.match(plain)) and not _TURN.search(plain)


def _is_short(plain: str, words: list[str]) -> bool:
    if plain.isascii() or len(words) > 1:
        return len(words) <= _GREETING_WORDS and not any(letter.isdigit() for letter in plain)
    return len(plain) <= _GREETING_LETTERS_CJK


def is_interjection(sentence: str) -> bool:
    """True for one or two words without a digit ("Great!", "Kurz gesagt"): no statement of their own."""
    plain = _MARKUP.sub(" ", sentence)
    words = _WORD.findall(plain)
    if any(letter.isdigit() for letter in plain):
        return False
    return len(words) <= 2 and all(word.isascii() or len(word) <= 4 for word in words)  # noqa: PLR2004  # two words
