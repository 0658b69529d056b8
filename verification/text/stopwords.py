"""The small words of each language, which carry grammar and no subject.

``FUNCTION_WORDS`` serves as stop words and, with the ``DECOYS`` (neighbouring languages that must not be taken for one
of ours), to tell languages apart.
"""

from __future__ import annotations

from typing import Final


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


FUNCTION_WORDS: Final[dict[str, frozenset[str]]] = {
    "en": _words(
        "a about after again all also am an and any are as at be because been before being between both but by can "
        "could did do does doing done down each either for from further get gets got had has have having he her "
        "here hers him his how i if in into is it its just let like may me might more most much must my no nor not "
        "now of off on once one only or other our ours out over own please same shall she should so some such tell "
        "than that the their theirs them then there these they this those through to too under until up upon us "
        "very was we were what when where whether which while who whom whose why will with within without would "
        "you your yours yes many cannot doesn don isn aren wasn won didn ll ve re"
    ),
    "de": _words(
        "aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bin bis bist bitte "
        "da dafür damit dann daran darauf das dass dazu dein deine dem den denn der des dich die dies diese diesem "
        "diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch für gegen "
        "gibt hab habe haben hat hatte hier hin ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede "
        "jedem jeden jeder jedes kann kannst kein keine keinen können könnte man mehr mein meine mich mir mit muss "
        "müssen nach nicht nichts noch nun nur ob oder ohne schon sehr sein seine sich sie sind so soll sollen "
        "sollte über um und uns unser unsere unter vom von vor wann war waren warum was wegen weil welche welchem "
        "welchen welcher welches wenn wer werden wie wieder wird wir wo wurde wurden würde zu zum zur zwischen "
        "viel viele lange wieviel"
    ),
    "fr": _words(
        "a à afin ai alors après as au aucun aucune aussi autre aux avant avec avez avoir ayant bien c ça car ce "
        "ceci cela ces cet cette ceux chaque chez combien comme comment d dans de depuis des dès dit doit doivent "
        "donc dont du elle elles en encore entre es est et étaient était été être eu faire fait faut il ils j je l "
        "la là le les leur leurs lors lui m ma mais me même mes moi moins mon n ne ni non nos notre nous on ont ou "
        "où par parce pas pendant peu peut peuvent plus pour pourquoi qu quand que quel quelle quelles quels qui "
        "quoi s sa sans se sera ses si son sont sous sur t ta te tes toi ton tous tout toute toutes très tu un une "
        "vers via voici vos votre vous y jusqu puis"
    ),
    "es": _words(
        "a al algo alguna algunas alguno algunos ante antes así aún aunque bajo bien cada casi como cómo con "
        "contra cual cuál cuales cuáles cuando cuándo cuánto cuánta cuántos cuántas de del desde donde dónde dos "
        "durante e el él ella ellas ellos en entre era eran es esa esas ese eso esos esta está estaba están estar "
        "estas este esto estos fue fueron ha había hace hacer hacia han hasta hay la las le les lo los más me mi "
        "mis mucho muy nada ni no nos nosotros nuestra nuestro o os otra otras otro otros para pero poco por "
        "porque puede pueden puedo pues que qué quien quién quienes se sea según ser será si sí sido sin sobre "
        "solo sólo son su sus también tan tanto te tengo tiene tienen todo toda todos todas tu tus un una unas uno "
        "unos usted ustedes y ya yo debe deben hay"
    ),
    "id": _words(
        "ada adalah agar akan aku anda antara apa apabila apakah atas atau bagaimana bagi bahwa banyak beberapa "
        "begitu belum berapa bila bisa boleh bukan dalam dan dapat dari daripada dengan di dia hanya harus hingga "
        "ia ini itu jadi jangan jika juga kalau kalian kami kamu kapan karena ke kenapa kepada kita lagi lain "
        "lebih maka mana masih mengapa mereka milik namun nya oleh pada para pernah pun saat saja sampai sangat "
        "saya sebagai sebelum sebuah secara sedang sehingga sejak selama semua sendiri seorang seperti serta "
        "setelah setiap siapa suatu sudah supaya tapi telah tentang terhadap tersebut tetapi tidak tolong untuk "
        "yaitu yakni yang"
    ),
}

DECOYS: Final[dict[str, frozenset[str]]] = {
    "nl": _words(
        "aan als bij dan dat de deze die dit een en er geen het hij hoe hun ik je kan maar met mijn moet naar niet "
        "nog om onze ook op te uit uw van veel voor waar wanneer wat we wel werd wordt worden zal ze zich zijn "
        "zonder zou"
    ),
    "pt": _words(
        "a ao aos as até com como da das de do dos e é ela ele em entre essa esse esta está este eu foi há isso já "
        "lhe mais mas me meu minha muito na não nas nem no nos nós o os ou para pela pelo por quais qual quando "
        "que quem são se seu só sua também tem um uma você"
    ),
    "it": _words(
        "a agli ai al alla alle anche che chi ci come con cosa da dal dalla dei del della delle di dopo dove due e "
        "è gli ha hanno il in io la le lo loro ma mi nel nella non o per perché più può quando questa questo "
        "quanto sono se si sono su sul sulla tra tutti un una"
    ),
    "sv": _words(
        "att av de den det där efter eller en ett för från har hur här i inte jag kan man med men när och om på "
        "sig ska som så till upp ut vad var vi vid är över"
    ),
    "pl": _words(
        "aby ale bo być ci co czy dla do gdy i ich ile ja jak jako jest jeszcze już kiedy które który na nie o od "
        "po pod przez przy są się tak to tylko tym w we więc z za ze że"
    ),
    "vi": _words("bạn các cho có của được đã để không là một những này tôi và với"),
}

LETTERS: Final[dict[str, str]] = {
    "de": "äöüß",
    "fr": "çœèêëàâîïôûù",
    "es": "ñ¿¡áíóú",
    "sv": "å",
    "pt": "ãõ",
    "pl": "łąęśżźćń",
    "vi": "ạảấầậắặẻếềệỉịọỏốồộớờợụủứừựđơư",
}
"""Letters that speak for a language beside the words; shared ones (é, ä in Swedish) are left to the words."""

CJK_FUNCTION: Final = frozenset(
    "的了是在和与及或也就都而着把被让吗呢吧啊之其这那哪什么怎样么个们我你您他她它请为所以于从到对向给上下中里会能可要想有没不很最更多少几何如若则但"
    "何誰今後前者等及又或其此"
)
"""Han characters that mostly carry grammar: a bigram made of two of them names no subject."""
