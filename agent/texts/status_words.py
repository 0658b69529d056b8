"""What people see while Orion works, in the language of the question (F9). Slack writes the app's name before a status.

Promises: every status that has a translation has all six; any other is shown as it is. Must never carry answer text.
"""

from __future__ import annotations

from typing import Final

from agent.texts.catalogue import LANGUAGES

_WORDS: Final[dict[str, tuple[str, str, str, str, str, str]]] = {
    "is thinking…": (
        "denkt nach…", "réfléchit…", "está pensando…", "sedang berpikir…", "が考えています…", "正在思考…",
    ),
    "is waiting for the language model…": (
        "wartet auf das Sprachmodell…", "attend le modèle de langue…", "espera al modelo de lenguaje…",
        "menunggu model bahasa…", "が言語モデルを待っています…", "正在等待语言模型…",
    ),
    "is waiting for the language model and keeps trying…": (
        "wartet auf das Sprachmodell und versucht es weiter…", "attend le modèle de langue et réessaie…",
        "espera al modelo de lenguaje y sigue intentándolo…", "menunggu model bahasa dan terus mencoba…",
        "が言語モデルを待ち、再試行しています…", "正在等待语言模型，并会继续尝试…",
    ),
    "cannot reach the documents and keeps trying…": (
        "erreicht die Dokumente nicht und versucht es weiter…", "ne peut pas joindre les documents et réessaie…",
        "no alcanza los documentos y sigue intentándolo…", "tidak dapat menjangkau dokumen dan terus mencoba…",
        "は文書に接続できず、再試行しています…", "无法访问文档，会继续尝试…",
    ),
    "is busy: you are number {number} in the queue…": (
        "ist beschäftigt: Du bist Nummer {number} in der Schlange…",
        "est occupé : vous êtes numéro {number} dans la file…", "está ocupado: usted es el número {number} de la cola…",
        "sedang sibuk: Anda nomor {number} dalam antrean…", "は混み合っています。順番は{number}番目です…",
        "正忙：你排在第 {number} 位…",
    ),
    "is at work on what was asked before; your message is next…": (
        "arbeitet noch an der vorigen Frage; deine Nachricht ist die nächste…",
        "traite encore la question précédente ; votre message est le suivant…",
        "trabaja aún en la pregunta anterior; su mensaje es el siguiente…",
        "masih mengerjakan pertanyaan sebelumnya; pesan Anda berikutnya…",
        "は前の質問に対応中です。次があなたの番です…", "正在处理之前的问题，接下来就是你的消息…",
    ),
    "is searching the documents…": (
        "durchsucht die Dokumente…", "cherche dans les documents…", "busca en los documentos…",
        "mencari di dokumen…", "が文書を検索しています…", "正在搜索文档…",
    ),
    "is looking something up…": (
        "schlägt etwas nach…", "vérifie quelque chose…", "está consultando algo…",
        "memeriksa sesuatu…", "が調べています…", "正在查阅…",
    ),
    "is writing an answer…": (
        "schreibt eine Antwort…", "rédige une réponse…", "escribe una respuesta…",
        "menulis jawaban…", "が回答を書いています…", "正在撰写回答…",
    ),
    "is putting the answer right…": (
        "berichtigt die Antwort…", "corrige la réponse…", "corrige la respuesta…",
        "memperbaiki jawaban…", "が回答を直しています…", "正在修正回答…",
    ),
    "is checking the answer against its sources…": (
        "prüft die Antwort an ihren Quellen…", "vérifie la réponse avec ses sources…",
        "comprueba la respuesta con sus fuentes…", "memeriksa jawaban dengan sumbernya…",
        "が回答を出典と照合しています…", "正在对照来源核对回答…",
    ),
    "is at step {number} of {total}: {step}": (
        "ist bei Schritt {number} von {total}: {step}", "en est à l'étape {number} sur {total} : {step}",
        "está en el paso {number} de {total}: {step}", "sedang di langkah {number} dari {total}: {step}",
        "がステップ{number}/{total}を進めています：{step}", "正在进行第 {number} 步（共 {total} 步）：{step}",
    ),
    "Step {number}": (
        "Schritt {number}", "Étape {number}", "Paso {number}", "Langkah {number}", "ステップ{number}", "第 {number} 步",
    ),
    "Reading your documents…": (
        "Liest eure Dokumente…", "Lecture de vos documents…", "Leyendo sus documentos…",
        "Membaca dokumen Anda…", "文書を読んでいます…", "正在阅读你们的文档…",
    ),
    "Finding the passages that matter…": (
        "Sucht die passenden Stellen…", "Recherche des passages utiles…", "Buscando los pasajes importantes…",
        "Mencari bagian yang penting…", "関連する箇所を探しています…", "正在查找相关段落…",
    ),
    "Writing an answer…": (
        "Schreibt eine Antwort…", "Rédaction d'une réponse…", "Escribiendo una respuesta…",
        "Menulis jawaban…", "回答を書いています…", "正在撰写回答…",
    ),
    "Checking every claim against its source…": (
        "Prüft jede Aussage an ihrer Quelle…", "Vérification de chaque affirmation…",
        "Comprobando cada afirmación con su fuente…", "Memeriksa setiap pernyataan dengan sumbernya…",
        "すべての記述を出典と照合しています…", "正在逐条对照来源核实…",
    ),
}  # fmt: skip


def status_in(text: str, language: str | None) -> str:
    """The status in that language; as it is for English, any other language and any other text."""
    words = _WORDS.get(text)
    number = LANGUAGES.index(language) if language in LANGUAGES else 0
    return words[number - 1] if words and number else text
