"""What Orion says about attached files, in the language of the question (F9), as mrkdwn.

Promises: every line exists in all seven languages and names the file. Must never hold an exception's text (I6): why a
file was not read is said in plain words, with what to do about it where something can be done.
"""

from __future__ import annotations

from typing import Final, Literal

from agent.texts.catalogue import LANGUAGES
from agent.thread.conversation import FileTrouble

FileWord = FileTrouble | Literal["long", "summarise"]

_WORDS: Final[dict[FileWord, tuple[str, str, str, str, str, str, str]]] = {
    "form": (
        "I could not read `{name}`: I read text, Markdown, HTML, PDF and Word, not files of this kind.",
        "`{name}` konnte ich nicht lesen: Ich lese Text, Markdown, HTML, PDF und Word, aber nichts dieser Art.",
        "Je n'ai pas pu lire `{name}` : je lis le texte, Markdown, HTML, PDF et Word, pas ce type de fichier.",
        "No pude leer `{name}`: leo texto, Markdown, HTML, PDF y Word, no archivos de este tipo.",
        "Saya tidak dapat membaca `{name}`: saya membaca teks, Markdown, HTML, PDF, dan Word, bukan jenis berkas ini.",
        "`{name}` は読めませんでした。読めるのはテキスト、Markdown、HTML、PDF、Word で、この種類は読めません。",
        "无法读取 `{name}`：我能读文本、Markdown、HTML、PDF 和 Word，不能读这种文件。",
    ),
    "big": (
        "I did not read `{name}`: it is too big. The part that matters, as a smaller file, will do.",
        "`{name}` habe ich nicht gelesen: Die Datei ist zu groß. Der wichtige Teil als kleinere Datei genügt.",
        "Je n'ai pas lu `{name}` : le fichier est trop gros. La partie utile, en plus petit, suffira.",
        "No leí `{name}`: es demasiado grande. Basta la parte importante en un archivo más pequeño.",
        "Saya tidak membaca `{name}`: berkasnya terlalu besar. Kirim bagian yang penting saja.",
        "`{name}` は大きすぎるため読みませんでした。必要な部分だけを小さなファイルで送ってください。",
        "未读取 `{name}`：文件太大。请只发送需要的部分。",
    ),
    "unreadable": (
        "I could not read `{name}`: it is empty, damaged, locked, or has no text in it (a scan, for example).",
        "`{name}` konnte ich nicht lesen: leer, beschädigt, gesperrt oder ohne Text darin (etwa ein Scan).",
        "Je n'ai pas pu lire `{name}` : vide, endommagé, verrouillé ou sans texte (une numérisation, par exemple).",
        "No pude leer `{name}`: está vacío, dañado, bloqueado o no contiene texto (por ejemplo, un escaneo).",
        "Saya tidak dapat membaca `{name}`: kosong, rusak, terkunci, atau tanpa teks (misalnya hasil pindaian).",
        "`{name}` は読めませんでした。空か、壊れているか、ロックされているか、文字がありません（スキャンなど）。",
        "无法读取 `{name}`：文件为空、已损坏、已加锁，或没有文字（例如扫描件）。",
    ),
    "elsewhere": (
        "I did not read `{name}`: it is kept outside Slack. Upload it here, or paste what matters.",
        "`{name}` habe ich nicht gelesen: Die Datei liegt außerhalb von Slack. Lade sie hier hoch oder füge Text ein.",
        "Je n'ai pas lu `{name}` : il est conservé hors de Slack. Déposez-le ici ou collez l'essentiel.",
        "No leí `{name}`: está fuera de Slack. Súbelo aquí o pega lo importante.",
        "Saya tidak membaca `{name}`: disimpan di luar Slack. Unggah di sini atau tempel isinya.",
        "`{name}` は Slack の外にあるため読みませんでした。ここにアップロードするか、内容を貼り付けてください。",
        "未读取 `{name}`：它存放在 Slack 之外。请上传到这里，或粘贴内容。",
    ),
    "not_allowed": (
        "I may not open `{name}`: an admin has to grant me `files:read` in this workspace.",
        "`{name}` darf ich nicht öffnen: Jemand mit Adminrechten muss mir hier `files:read` erlauben.",
        "Je n'ai pas le droit d'ouvrir `{name}` : un admin doit m'accorder `files:read` dans cet espace.",
        "No puedo abrir `{name}`: un administrador debe concederme `files:read` en este espacio.",
        "Saya tidak boleh membuka `{name}`: admin perlu memberi saya `files:read` di ruang kerja ini.",
        "`{name}` を開く権限がありません。管理者が `files:read` を許可する必要があります。",
        "我无权打开 `{name}`：需要管理员在此工作区授予 `files:read`。",
    ),
    "away": (
        "I could not get `{name}` from Slack just now. Asking again may help.",
        "`{name}` konnte ich gerade nicht von Slack holen. Noch einmal fragen kann helfen.",
        "Je n'ai pas pu obtenir `{name}` de Slack à l'instant. Reposer la question peut aider.",
        "No pude obtener `{name}` de Slack en este momento. Preguntar otra vez puede ayudar.",
        "Saya tidak dapat mengambil `{name}` dari Slack saat ini. Coba tanyakan lagi.",
        "いま Slack から `{name}` を取得できませんでした。もう一度聞いてみてください。",
        "刚才无法从 Slack 取得 `{name}`。可以再问一次。",
    ),
    "many": (
        "I did not read `{name}`: there were too many files at once.",
        "`{name}` habe ich nicht gelesen: Es waren zu viele Dateien auf einmal.",
        "Je n'ai pas lu `{name}` : il y avait trop de fichiers à la fois.",
        "No leí `{name}`: había demasiados archivos a la vez.",
        "Saya tidak membaca `{name}`: terlalu banyak berkas sekaligus.",
        "一度に送られたファイルが多すぎたため、`{name}` は読みませんでした。",
        "未读取 `{name}`：一次发送的文件太多。",
    ),
    "long": (
        "`{name}` is long: I looked only at the parts nearest to the question.",
        "`{name}` ist lang: Ich habe nur die Teile angesehen, die der Frage am nächsten sind.",
        "`{name}` est long : je n'ai regardé que les parties les plus proches de la question.",
        "`{name}` es largo: solo miré las partes más cercanas a la pregunta.",
        "`{name}` panjang: saya hanya melihat bagian yang paling dekat dengan pertanyaan.",
        "`{name}` は長いため、質問に最も近い部分だけを見ました。",
        "`{name}` 很长：我只看了与问题最接近的部分。",
    ),
    "summarise": (
        "Summarise the attached file.",
        "Fasse die angehängte Datei zusammen.",
        "Résume le fichier ci-joint.",
        "Resume el archivo adjunto.",
        "Ringkas berkas terlampir ini.",
        "添付のファイルを要約してください。",
        "请总结附件的内容。",
    ),
}


def file_words(word: FileWord, language: str | None, *, name: str = "") -> str:
    """The line in that language, English for any other. ``name`` must be safe to stand between backticks."""
    return _WORDS[word][LANGUAGES.index(language) if language in LANGUAGES else 0].format(name=name)
