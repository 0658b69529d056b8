"""Words that turn a statement round, as data for the seven languages: negations, opposites, quantifiers.

The two words of a pair in ``OPPOSITES`` cannot both be said of the same thing.
"""

from __future__ import annotations

_NEGATIONS = {
    "en": "not no never none neither nor without cannot can't don't doesn't didn't isn't aren't wasn't weren't won't "
    "wouldn't shouldn't couldn't mustn't hasn't haven't hadn't nobody nothing nowhere n't",
    "de": "nicht nie niemals kein keine keinen keinem keiner keines ohne niemand nichts weder",
    "fr": "ne n'est n'a n'ont n'y pas jamais aucun aucune sans personne rien ni",
    "es": "no nunca jamás ningún ninguna ninguno sin nadie nada ni tampoco",
    "id": "tidak bukan jangan tanpa belum tak",
}
NEGATIONS: dict[str, frozenset[str]] = {language: frozenset(words.split()) for language, words in _NEGATIONS.items()}
NEGATIONS_CJK: dict[str, tuple[str, ...]] = {
    "ja": ("ません", "ない", "なかった", "なく", "ずに", "禁止", "不可"),
    "zh": ("不", "没", "沒", "未", "无", "無", "勿", "别", "禁止"),
}

_OPPOSITES = {
    "en": "increase:decrease increases:decreases increased:decreased increasing:decreasing rise:fall rises:falls "
    "rose:fell raise:lower higher:lower high:low more:less more:fewer most:least maximum:minimum enable:disable "
    "enabled:disabled enables:disables allow:forbid allowed:forbidden allows:forbids permitted:prohibited "
    "permitted:forbidden permits:forbids permits:prohibits allows:prohibits "
    "allowed:prohibited required:optional mandatory:optional mandatory:voluntary include:exclude includes:excludes "
    "included:excluded open:closed opens:closes before:after first:last always:never everyone:nobody all:none "
    "start:stop starts:stops begin:end begins:ends public:private internal:external accept:reject accepts:rejects "
    "accepted:rejected approve:reject approved:rejected add:remove added:removed adds:removes create:delete "
    "created:deleted success:failure succeeds:fails succeeded:failed pass:fail passes:fails gain:loss win:lose "
    "wins:loses won:lost buy:sell strong:weak stronger:weaker fast:slow faster:slower early:late earlier:later "
    "long:short longer:shorter large:small larger:smaller big:small old:new older:newer older:younger hot:cold "
    "safe:unsafe secure:insecure valid:invalid automatic:manual automatically:manually online:offline read:write "
    "encrypted:unencrypted paid:unpaid possible:impossible direct:indirect positive:negative better:worse best:worst "
    "upgrade:downgrade push:pull upper:lower left:right top:bottom north:south east:west northern:southern "
    "eastern:western inside:outside above:below with:without known:unknown able:unable same:different "
    "similar:different common:rare presence:absence present:absent active:inactive simple:complex easy:difficult "
    "easier:harder supervised:unsupervised static:dynamic local:global finite:infinite linear:nonlinear "
    "improve:worsen improves:worsens improved:worsened improves:degrades outperforms:underperforms "
    "exceeds:underperforms superior:inferior efficient:inefficient effective:ineffective significant:insignificant "
    "reduce:increase reduces:increases reduced:increased reducing:increasing male:female men:women married:unmarried "
    "temporary:permanent temporarily:permanently expired:valid everybody:nobody",
    "de": "erlaubt:untersagt gestattet:verboten gestattet:untersagt "
    "erlaubt:verboten zulässig:unzulässig aktiviert:deaktiviert aktivieren:deaktivieren immer:nie mehr:weniger "
    "höher:niedriger steigt:sinkt steigen:sinken erhöht:gesenkt erforderlich:optional pflicht:freiwillig vor:nach "
    "vorher:nachher geöffnet:geschlossen öffnet:schließt offen:geschlossen intern:extern öffentlich:privat "
    "alle:keine "
    "automatisch:manuell maximal:mindestens höchstens:mindestens erste:letzte früher:später länger:kürzer "
    "größer:kleiner mit:ohne beginnt:endet angenommen:abgelehnt genehmigt:abgelehnt enthalten:ausgeschlossen",
    "fr": "autorisé:interdit autorisée:interdite permis:interdit activé:désactivé activer:désactiver toujours:jamais "
    "plus:moins augmente:diminue augmenter:diminuer obligatoire:facultatif obligatoire:facultative avant:après "
    "ouvert:fermé ouvre:ferme interne:externe public:privé tous:aucun automatique:manuel "
    "automatiquement:manuellement "
    "premier:dernier avec:sans commence:finit accepté:refusé inclus:exclu minimum:maximum",
    "es": "permitido:prohibido permitida:prohibida permite:prohíbe activado:desactivado activar:desactivar "
    "siempre:nunca más:menos aumenta:disminuye obligatorio:opcional obligatoria:opcional antes:después "
    "abierto:cerrado abre:cierra interno:externo público:privado todos:ninguno automático:manual "
    "automáticamente:manualmente primero:último con:sin empieza:termina aceptado:rechazado aprobado:rechazado "
    "incluye:excluye mínimo:máximo",
    "id": "boleh:dilarang diizinkan:dilarang aktif:nonaktif selalu:tidak lebih:kurang naik:turun wajib:opsional "
    "wajib:sukarela sebelum:sesudah sebelum:setelah buka:tutup dibuka:ditutup internal:eksternal publik:pribadi "
    "semua:tidak otomatis:manual pertama:terakhir dengan:tanpa diterima:ditolak disetujui:ditolak minimal:maksimal",
}


def _pairs(listed: str) -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for pair in listed.split():
        one, other = pair.split(":")
        table.setdefault(one, set()).add(other)
        table.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in table.items()}


OPPOSITES: dict[str, dict[str, frozenset[str]]] = {language: _pairs(pairs) for language, pairs in _OPPOSITES.items()}
HAVING_OPPOSITES: dict[str, frozenset[str]] = {language: frozenset(table) for language, table in OPPOSITES.items()}
"""The words of each table."""
OPPOSITES_CJK: dict[str, tuple[tuple[str, str], ...]] = {
    "ja": (
        ("有効", "無効"),
        ("許可", "禁止"),
        ("必須", "任意"),
        ("前", "後"),
        ("開始", "終了"),
        ("増加", "減少"),
        ("以上", "以下"),
        ("最大", "最小"),
        ("自動", "手動"),
        ("常に", "決して"),
        ("公開", "非公開"),
        ("内部", "外部"),
        ("承認", "却下"),
        ("可能", "不可能"),
    ),
    "zh": (
        ("启用", "禁用"),
        ("允许", "禁止"),
        ("必须", "可选"),
        ("之前", "之后"),
        ("开始", "结束"),
        ("增加", "减少"),
        ("以上", "以下"),
        ("最大", "最小"),
        ("自动", "手动"),
        ("总是", "从不"),
        ("公开", "私有"),
        ("内部", "外部"),
        ("批准", "拒绝"),
        ("至少", "至多"),
        ("所有", "没有"),
    ),
}

# How much of a set is spoken of. "part" against "whole" is a contradiction in one direction only: claiming the whole.
_WHOLE = {
    "en": "all every each always everyone everybody entire any",
    "de": "alle alles jeder jede jedes jeden immer sämtliche",
    "fr": "tous toutes tout chaque toujours",
    "es": "todos todas cada siempre",
    "id": "semua setiap selalu seluruh",
}
_PART = {
    "en": "some most many sometimes often usually several few partly mostly certain typically rarely",
    "de": "einige manche viele meist meistens manchmal oft teilweise wenige mehrere",
    "fr": "certains certaines plupart parfois souvent plusieurs quelques",
    "es": "algunos algunas mayoría veces varios muchos",
    "id": "beberapa sebagian kadang sering banyak",
}
_ONLY = {
    "en": "only solely exclusively",
    "de": "nur ausschließlich lediglich",
    "fr": "seulement uniquement seul seuls seule",
    "es": "solo sólo solamente únicamente",
    "id": "hanya cuma",
}
WHOLE, PART, ONLY = (
    {language: frozenset(words.split()) for language, words in table.items()} for table in (_WHOLE, _PART, _ONLY)
)


def negates(word: str, table: frozenset[str]) -> bool:
    """Whether a case-folded word is one of a language's ``NEGATIONS``, or a verb with a short one: "doesn't"."""
    return word in table or is_short_negation(word)


def is_short_negation(word: str) -> bool:
    """Whether a negation is only the end of a word."""
    return word.endswith(("'t", "’t"))
