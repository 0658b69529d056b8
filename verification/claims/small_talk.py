"""Sentences that state nothing: greetings, questions, offers, announcements, admissions of not knowing.

What stands behind a greeting, a colon or a "but" is looked at by itself. In doubt a sentence states something: a claim
taken for small talk would escape the check.
"""

from __future__ import annotations

import re

_MARKUP = re.compile(r"[*_~`]|:[a-z0-9_+-]{2,30}:|<@[A-Z0-9]+>|[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f]")
_WORD = re.compile(r"[^\W_]+")
_EDGE = " \t-–—•\"'“”«»()"
_QUESTION = re.compile(r"[?？]['\")\]}»”’*_~\s]*$")
# Questions that tell instead of asking.
_TELLS = re.compile(
    r"\b(?:did you know|are you aware|is(?: it not|n['’]t it)|wusste(?:st du|n sie)|ist es nicht|saviez-vous|savais-tu"
    r"|n['’]est-ce pas|sabías|sabía usted|tahukah|tahu kah)\b|ご存じ(?:です|でした)か"
    r"|(?:你|您)知道(?!如何|怎|什么|哪)[^？?]{4,80}吗",
    re.IGNORECASE,
)
_ANSWER = (
    r"yes|no|ja|nein|oui|non|sí|ya|tidak|はい|いいえ|是的|sure|of course|certainly|absolutely|natürlich|klar|bien sûr"
    r"|claro|por supuesto|tentu|もちろん|当然"
)
_GREETING = re.compile(
    rf"(?:no (?:problem|worries)|tidak masalah|{_ANSWER}|hi|hello|hey|dear|good (?:morning|afternoon|evening"
    rf"|question)|thanks?|thank you|welcome|"
    r"you['’]re welcome|great|ok(?:ay)?|sorry|got it|hallo|guten (?:tag|morgen|abend)|danke|"
    r"vielen dank|gern(?:e)?|bitte|bonjour|bonsoir|salut|merci|avec plaisir|de rien|désolé|hola|buenos días|"
    r"buenas tardes|gracias|de nada|lo siento|halo|hai|selamat (?:pagi|siang|sore|malam|datang)|terima kasih|"
    r"maaf|sama-sama|baik|"
    r"(?:こんにちは|おはよう|ありがとう|承知|了解|お待たせ)(?:しました|いたしました|です|ございます|ございました)?|"
    r"你好|您好|谢谢(?:您|你)?|好的|不客气|抱歉)(?:(?:です|ね|よ)(?=[。！!、,]|$))?(?![^\W_])[\s,，、.。!！;；:：–—-]*",
    re.IGNORECASE,
)
_SALUTATION = re.compile(
    r"hi\b|hello|hey|dear|good |hallo|guten|bonjour|bonsoir|salut|hola|buen|halo|hai\b|selamat", re.IGNORECASE
)
# What may stand behind a greeting and is none of it a statement.
_COURTESY = re.compile(
    r"(?:there|all|everyone|everybody|team|folks|again|back|aboard|question|idea|thing|work|please|so|very|much|a lot"
    r"|and|to the team|to hear that|about that|for (?:asking|waiting|reaching out|checking)"
    r"|for (?:the|your|this|any) (?:\w+ )?(?:question|message|patience|help|confusion|delay|inconvenience"
    r"|misunderstanding|note|correction)|zusammen|sehr|schön|geschehen|doch|wieder|à tous|beaucoup|bien|muchas"
    r"|por preguntar|a todos|banyak|kembali|semua(?:nya)?|für (?:die|deine|ihre) (?:\w+ )?(?:frage|nachricht|geduld)"
    r"|pour (?:votre|ta|la) question|por (?:tu|su|la) pregunta|atas pertanyaannya|大家|各位|[\s,!.。！、])*",
    re.IGNORECASE,
)
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
# An offer that states all the same: "I can tell you that …", "…, which is allowed, …".
_STATING = re.compile(
    r"\b(?:tell you|say|confirm|explain|show you|know|explicar|sagen|confirmer|confirmar) (?:that|,? ?dass|que|bahwa)\b"
    r"|,\s*(?:which|who|since|because|as|da|weil|denn|car|puisque|porque|ya que|karena) ",
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
    r"here(?:['’]s| is| are)|below (?:is|are)"
    r"|hier (?:ist|sind|findest)\b(?=.*(?:übersicht|überblick|zusammenfassung|antwort|liste|schritte?|informationen"
    r"|angaben|details|regeln|ergebnis|punkte|fakten|was ich)|.{0,40}$)(?!.*(?:verboten|erlaubt|gestattet|nötig))"
    r"|nachfolgend|voici|ci-dessous|aquí (?:está (?:el|la|lo|los|las|un)|están|tiene|tienes|van)\b|"
    r"a continuación|berikut(?: ini)?|以下は|以下が|以下是|下面是",
    re.IGNORECASE,
)
_ABOUT = (
    r"(?:\w+ ){0,2}(?:information|info|details?|answers?|sources?|documents?|docs|mentions?|records?|data|evidence|idea"
    r"|access|pages?|passages?|entry|entries|references?|results?|hits?|match\w*|sections?|statements?|knowledge"
    r"|way (?:to (?:know|tell|check|verify)|of (?:knowing|telling)))\b"
)
_SAYS = (
    r"(?:\w+ly )?(?:say|mention|contain|state|cover|specif|describ|explain|includ|list|giv|provid|tell|name|defin"
    r"|answer"
    r"|address|discuss|indicat|show|reveal|speak|talk|clarif|go into)"
)
_FINDS = (
    r"(?:\w+ly |yet |yet been able to |been able to |able to |have |currently |really )*"
    r"(?:find|found|see|seen|know|tell|say|answer|determine|confirm|locate|identif\w+|access|open|read|verif\w+"
    r"|check|help|be (?:sure|certain)|sure|certain|aware|look|judge|look)\b"
    rf"|(?:have|possess) (?:any |enough |a |the )*{_ABOUT}"
)
_NOT_EN = r"(?:can(?:not|['’]t| not)|could(?: not|n['’]t)|do(?: not|n['’]t)|did(?: not|n['’]t)|have(?: not|n['’]t)"
_ADMISSION = re.compile(
    r"(?:unfortunately,? |sorry,? |however,? |leider )*(?:"
    rf"(?:i|we) {_NOT_EN}|was(?: not|n['’]t) able to|am not able to|am not) (?:{_FINDS})"
    r"|i['’]m (?:not|afraid|sorry)\b"
    rf"|(?:i|we) (?:found|have|see) (?:no {_ABOUT}|nothing (?:about|on|in|that|regarding|to)\b)"
    r"|i found nothing\b"
    rf"|there (?:is|was|are) no(?:thing)? (?:{_ABOUT}|in the)"
    rf"|no {_ABOUT}(?: (?:was|were|is|are|has been|have been))? (?:found|available|given|mentioned|provided)"
    r"|(?:(?:none of )?(?:the |my |these |your |cited |available |provided )*(?:sources?|documents?|docs"
    r"|passages?|handbook"
    r"|context|pages?)(?: i (?:found|have|searched|read))?"
    rf" (?:(?:do(?:es)?(?: not|n['’]t)|did(?: not|n['’]t)) {_SAYS}|contains? no (?:{_ABOUT}|rules?\b|word\b)"
    rf"|says? nothing"
    rf"|ha(?:s|ve) (?:no (?:{_ABOUT}|rules?\b)|nothing (?:about|on)\b)))"
    r"|(?:the|this|that|these) (?:runbook|policy|changelog|notes?|report|guide|manual|documentation|article|file|wiki"
    r"|table|roadmap|reference|ticket|thread|minutes) (?:do(?:es)?|did)(?: not|n['’]t)"
    r" (?:say|mention|specify|state|tell|explain) (?:how|what|when|where|who|which|why|whether|if|anything)\b"
    r"|ich (?:konnte|kann|habe)\b.{0,80}\b(?:nicht|nichts|kein\w*)\b.{0,60}\b(?:finden|gefunden|sagen|beantworten"
    r"|erkennen|bestätigen|entnehmen|ermitteln|feststellen|helfen|Informationen|Angaben)\b"
    r"|ich (?:weiß|finde|sehe)\b.{0,60}\b(?:nicht|nichts|kein\w*)\b"
    r"|(?:die|den|in den|aus den) (?:quellen|dokumenten?|unterlagen)\b"
    r"(?=.{0,100}(?:sag|nenn|erwähn|enth[aä]lt|steht|stehen|find|hervor|beschreib|beantwort|angegeben|aufgeführt"
    r"|Information|Angabe|Hinweis)).{0,60}\b(?:nicht|nichts|kein)"
    r"|je n['’](?:ai|arrive)|je ne (?:trouve|sais|peux|vois)"
    r"|les (?:sources|documents) (?:ne |n['’])(?:disent|mentionnent|contiennent|précisent|parlent|indiquent|donnent"
    r"|couvrent|répondent|fournissent|permettent|comportent|décrivent|expliquent)"
    r"|aucun(?:e)? (?:source|document|information)\b.{0,20}(?:trouvé|disponible|(?:ne |n['’])(?:mentionne|dit|précise"
    r"|contient|indique|parle|donne))"
    r"|no (?:he )?(?:encontr|puedo (?:encontr|respond|confirm|decir|ver)|pude|sé|tengo (?:informaci|datos|acceso)"
    r"|hay información)"
    r"|(?:las fuentes|los documentos) no (?:dicen|mencionan|contienen|indican|especifican|hablan|dan|cubren|incluyen"
    r"|tratan|explican|responden|ofrecen|aclaran|detallan)"
    r"|(?:saya )?tidak (?:dapat |bisa )?(?:menemukan|ditemukan|tahu|ada informasi)"
    r"|(?:sumber|dokumen)\b.{0,30}\btidak (?:menyebut|memuat|mengandung|berisi|menjelaskan|mencantumkan|memberi"
    r"|membahas|mencakup|menyatakan|mengatakan)"
    r"|.{0,30}(?:見つかりません|見つけられません|わかりません|記載(?:は|が)?(?:されて)?(?:い|あり)ません|情報(?:は|が)ありません)"
    r"|.{0,20}(?:没有找到|找不到|未找到|没有提到|未提及|没有(?:相关)?信息|没有说明|不知道))",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"[;；]|[:：](?=\s|$|[\u3040-\u9fff])|\s[–—]\s"
    r"|[,，、.]\s*(?:but|however|though|so|therefore|which means|aber|jedoch|also|deshalb|daher|mais|donc|pero|así que"
    r"|por lo que|tetapi|namun|jadi|sehingga|ただし|しかし|但|不过|所以|因此)"
    r"|\b(?:but|although|though|whereas)\b|(?<!not )\byet (?!in\b|on\b|about\b|that\b|for\b|to\b)(?=\w)|ただし|が[、,]",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"(?:so |therefore |maybe |perhaps )*(?:please |you (?:could|can|may|might|should) (?:want to |try to )?"
    r"|bitte |veuillez |por favor |silakan |mohon )(?:\w+ )?(?:ask|contact|check|try|rephrase|reach|consult|turn|refer"
    r"|frag|wende|prüf|versuch|demand|contact|essay|vérifi|pregunt|consult|intent|revis|tanya|hubungi|coba|periksa)\w*",
    re.IGNORECASE,
)
_ONLY_ANSWER = re.compile(rf"\W*(?:(?:{_ANSWER}|correct|exactly|genau|exact\w*|benar|对|否|不是)\W*)+", re.IGNORECASE)


def states_nothing(sentence: str) -> bool:
    """True if the sentence (without citations) has nothing that a source could support or contradict."""
    plain = _MARKUP.sub(" ", sentence).strip(_EDGE)
    if not _WORD.search(plain):
        return True
    if _QUESTION.search(plain):
        return not _TELLS.search(plain)
    head, *rest = (part.strip(_EDGE) for part in _TURN.split(plain))
    if _is_empty_talk(head):
        return all(_ADVICE.match(part) or states_nothing(part) for part in rest)
    greeted = _greeted(plain)
    return greeted > 0 and _is_only_polite(plain, plain[greeted:])


def _greeted(plain: str) -> int:
    """Where the greetings at the head of a sentence end."""
    end = 0
    while match := _GREETING.match(plain, end):
        end = match.end()
    return end


def is_bare_answer(sentence: str) -> bool:
    """True for a mere "Yes." or "No.": beside a statement it adds nothing, alone it is the statement."""
    return bool(_ONLY_ANSWER.fullmatch(_MARKUP.sub(" ", sentence)))


def _is_empty_talk(plain: str) -> bool:
    """True for an offer, an announcement or an admission of not knowing."""
    if _OFFER.match(plain) or (_CONDITION.match(plain) and _CONDITION_OFFER.search(plain)):
        return not _STATING.search(plain)
    if _ANNOUNCEMENT.match(plain):
        return not any(letter.isdigit() for letter in plain)
    return bool(_ADMISSION.match(plain))


def _is_only_polite(plain: str, rest: str) -> bool:
    """True if nothing stands behind a greeting but more of the like, a name behind "Hello", or empty talk."""
    if _COURTESY.fullmatch(rest) or states_nothing(rest):
        return True
    words = rest.rstrip(" .!,").split()
    return bool(_SALUTATION.match(plain)) and len(words) <= 2 and all(word[:1].isupper() for word in words)  # noqa: PLR2004  # a name


def is_interjection(sentence: str) -> bool:
    """True for one or two words without a digit ("Great!", "Kurz gesagt"): no statement of their own."""
    plain = _MARKUP.sub(" ", sentence)
    words = _WORD.findall(plain)
    if any(letter.isdigit() for letter in plain):
        return False
    if len(words) == 2 and is_bare_answer(words[0]):  # noqa: PLR2004  # "Yes, allowed."
        return states_nothing(sentence)
    return len(words) <= 2 and all(word.isascii() or len(word) <= 3 for word in words)  # noqa: PLR2004  # two words
