"""What Orion itself says to a person, in the language of the question (F9), as mrkdwn.

Promises: every phrase exists in all seven languages and has the same named gaps. Must never hold an exception's text, a
prompt or a key (I6): what went wrong is said in plain words, with what to do about it.
"""

from __future__ import annotations

from typing import Literal

Phrase = Literal[
    "not_found",
    "nearest",
    "try_rephrase",
    "not_verified",
    "reason_claim",
    "reason_citation",
    "reason_form",
    "reason_safety",
    "partial",
    "general",
    "own_words",
    "model_down",
    "model_setup",
    "model_refused",
    "too_long",
    "out_of_budget",
    "internal",
    "stopped",
    "help",
]

LANGUAGES = ("en", "de", "fr", "es", "id", "ja", "zh")

_PHRASES: dict[Phrase, tuple[str, str, str, str, str, str, str]] = {
    "not_found": (
        "I did not find an answer to that in the documents I know.",
        "Dazu habe ich in den Dokumenten, die ich kenne, keine Antwort gefunden.",
        "Je n'ai pas trouvé de réponse à cela dans les documents que je connais.",
        "No encontré una respuesta a eso en los documentos que conozco.",
        "Saya tidak menemukan jawabannya di dokumen yang saya ketahui.",
        "私が知っている文書の中に、その答えは見つかりませんでした。",
        "在我所知的文档中没有找到答案。",
    ),
    "nearest": (
        "The nearest documents:",
        "Die nächstliegenden Dokumente:",
        "Les documents les plus proches :",
        "Los documentos más cercanos:",
        "Dokumen yang paling dekat:",
        "最も近い文書：",
        "最接近的文档：",
    ),
    "try_rephrase": (
        "What may help: other words, more detail, or one smaller question at a time.",
        "Was helfen kann: andere Worte, mehr Einzelheiten oder eine kleinere Frage nach der anderen.",
        "Ce qui peut aider : d'autres mots, plus de détails, ou une question plus petite à la fois.",
        "Lo que puede ayudar: otras palabras, más detalle o una pregunta más pequeña cada vez.",
        "Yang mungkin membantu: kata lain, lebih rinci, atau satu pertanyaan kecil dulu.",
        "別の言葉で、より詳しく、または小さな質問に分けて聞いてみてください。",
        "可以试试：换个说法、补充细节，或一次问一个小问题。",
    ),
    "not_verified": (
        "I wrote an answer but could not verify it, so I am not showing it.",
        "Ich habe eine Antwort geschrieben, konnte sie aber nicht belegen. Darum zeige ich sie nicht.",
        "J'ai rédigé une réponse, mais je n'ai pas pu la vérifier ; je ne la montre donc pas.",
        "Escribí una respuesta, pero no pude verificarla, así que no la muestro.",
        "Saya menulis jawaban tetapi tidak dapat memverifikasinya, jadi tidak saya tampilkan.",
        "回答を書きましたが、裏付けを確認できなかったため表示しません。",
        "我写了一个回答，但无法核实，因此不予显示。",
    ),
    "reason_claim": (
        "something in it does not stand in the documents it cites",
        "etwas darin steht nicht in den zitierten Dokumenten",
        "un élément ne figure pas dans les documents cités",
        "algo no consta en los documentos citados",
        "ada isi yang tidak tercantum di dokumen yang dikutip",
        "引用した文書にない内容が含まれていました",
        "其中有内容在所引文档中找不到",
    ),
    "reason_citation": (
        "a statement had no source, or a source that does not exist",
        "eine Aussage hatte keine Quelle oder eine, die es nicht gibt",
        "une affirmation était sans source, ou avec une source inexistante",
        "una afirmación no tenía fuente, o una que no existe",
        "ada pernyataan tanpa sumber, atau sumbernya tidak ada",
        "出典のない記述、または存在しない出典がありました",
        "有的说法没有来源，或来源不存在",
    ),
    "reason_form": (
        "its form could not be put right",
        "die Form ließ sich nicht richten",
        "sa mise en forme n'a pas pu être corrigée",
        "no se pudo corregir su formato",
        "bentuknya tidak dapat diperbaiki",
        "書式を直せませんでした",
        "格式无法修正",
    ),
    "reason_safety": (
        "it held something that must not be posted",
        "sie enthielt etwas, das nicht gesendet werden darf",
        "elle contenait quelque chose qui ne doit pas être publié",
        "contenía algo que no debe publicarse",
        "isinya ada yang tidak boleh dikirim",
        "投稿してはならない内容が含まれていました",
        "其中有不能发布的内容",
    ),
    "partial": (
        "Part of the answer: what I could not verify has been left out.",
        "Ein Teil der Antwort: Was ich nicht belegen konnte, ist weggelassen.",
        "Réponse partielle : ce que je n'ai pas pu vérifier a été retiré.",
        "Respuesta parcial: se omitió lo que no pude verificar.",
        "Sebagian jawaban: yang tidak dapat saya verifikasi dihilangkan.",
        "回答の一部です。確認できなかった部分は省きました。",
        "部分回答：无法核实的内容已省略。",
    ),
    "general": (
        "From general knowledge: not from your documents, not verified.",
        "Aus allgemeinem Wissen: nicht aus euren Dokumenten, nicht geprüft.",
        "Connaissances générales : pas issu de vos documents, non vérifié.",
        "De conocimiento general: no proviene de sus documentos, sin verificar.",
        "Dari pengetahuan umum: bukan dari dokumen Anda, tidak diverifikasi.",
        "一般知識による回答です。あなたの文書によるものではなく、未確認です。",
        "来自一般知识：并非出自你们的文档，未经核实。",
    ),
    "own_words": (
        "Made from your own words: there is nothing to verify it against.",
        "Aus deinen eigenen Worten gemacht: Es gibt nichts, woran es zu prüfen wäre.",
        "Fait à partir de vos propres mots : rien à quoi le vérifier.",
        "Hecho con sus propias palabras: no hay con qué verificarlo.",
        "Dibuat dari kata-kata Anda sendiri: tidak ada yang perlu diverifikasi.",
        "ご自身の言葉から作成したものです。照合する文書はありません。",
        "根据你自己的文字写成：没有可供核实的来源。",
    ),
    "model_down": (
        "The language model did not answer. Nothing of your question is lost: please ask again in a minute.",
        "Das Sprachmodell hat nicht geantwortet. Deine Frage ist nicht verloren: Frag in einer Minute noch einmal.",
        "Le modèle de langue n'a pas répondu. Votre question n'est pas perdue : réessayez dans une minute.",
        "El modelo de lenguaje no respondió. Su pregunta no se perdió: inténtelo de nuevo en un minuto.",
        "Model bahasa tidak menjawab. Pertanyaan Anda tidak hilang: coba lagi sebentar lagi.",
        "言語モデルが応答しませんでした。質問は失われていません。少し待ってからもう一度お試しください。",
        "语言模型没有响应。你的问题没有丢失：请一分钟后再试。",
    ),
    "model_setup": (
        "I cannot reach the language model as I am set up. An admin can run `orion doctor` to see what to mend.",
        "So eingerichtet erreiche ich das Sprachmodell nicht. Ein Admin sieht mit `orion doctor`, was fehlt.",
        "Ma configuration n'atteint pas le modèle. Un admin peut lancer `orion doctor` pour voir pourquoi.",
        "Con mi configuración no llego al modelo. Un admin puede ejecutar `orion doctor` para ver qué falta.",
        "Dengan pengaturan ini saya tidak dapat menghubungi model bahasa. Admin dapat menjalankan `orion doctor`.",
        "現在の設定では言語モデルに接続できません。管理者は `orion doctor` で原因を確認できます。",
        "按目前的设置我无法连接语言模型。管理员可运行 `orion doctor` 查看原因。",
    ),
    "model_refused": (
        "The language model declined to answer this. Other words may help.",
        "Das Sprachmodell wollte das nicht beantworten. Andere Worte helfen vielleicht.",
        "Le modèle de langue a refusé de répondre. D'autres mots aideront peut-être.",
        "El modelo de lenguaje no quiso responder a esto. Quizá ayuden otras palabras.",
        "Model bahasa menolak menjawab ini. Kata lain mungkin membantu.",
        "言語モデルがこの質問への回答を控えました。別の言い方をお試しください。",
        "语言模型拒绝回答此问题。换个说法也许可以。",
    ),
    "too_long": (
        "That was more than the language model can read at once. A smaller question will work.",
        "Das war mehr, als das Sprachmodell auf einmal lesen kann. Eine kleinere Frage geht.",
        "C'était plus que le modèle ne peut lire d'un coup. Une question plus petite passera.",
        "Era más de lo que el modelo puede leer de una vez. Una pregunta más pequeña funcionará.",
        "Itu lebih dari yang dapat dibaca model sekaligus. Pertanyaan yang lebih kecil bisa.",
        "言語モデルが一度に読める量を超えていました。質問を小さくしてください。",
        "内容超出了语言模型一次能读取的量。请问小一点的问题。",
    ),
    "out_of_budget": (
        "I used up what I may spend on one question before I had a verified answer.",
        "Ich habe verbraucht, was ich für eine Frage ausgeben darf, bevor eine belegte Antwort stand.",
        "J'ai épuisé le budget d'une question avant d'avoir une réponse vérifiée.",
        "Agoté lo permitido para una pregunta antes de tener una respuesta verificada.",
        "Batas untuk satu pertanyaan habis sebelum ada jawaban yang terverifikasi.",
        "確認済みの回答が得られる前に、一つの質問に使える上限に達しました。",
        "在得到已核实的回答之前，已用完一个问题的额度。",
    ),
    "internal": (
        "Something went wrong on my side. Please ask again; an admin finds this under id `{id}`.",
        "Bei mir ist etwas schiefgegangen. Bitte frag noch einmal; ein Admin findet es unter der Kennung `{id}`.",
        "Quelque chose a échoué de mon côté. Veuillez redemander ; un admin le trouvera sous l'id `{id}`.",
        "Algo falló de mi lado. Pregunte de nuevo; un admin lo encuentra con el id `{id}`.",
        "Ada yang salah di pihak saya. Silakan tanya lagi; admin menemukannya dengan id `{id}`.",
        "こちらで問題が発生し、完了できませんでした。もう一度お試しください。管理者用 ID：`{id}`。",
        "我这边出了问题，未能完成。请再问一次；管理员可用编号 `{id}` 查到。",
    ),
    "stopped": (
        "Stopped.",
        "Angehalten.",
        "Arrêté.",
        "Detenido.",
        "Dihentikan.",
        "停止しました。",
        "已停止。",
    ),
    "help": (
        "Ask me about anything in your team's documents. I answer with the source of every statement.",
        "Frag mich etwas aus den Dokumenten eures Teams. Ich antworte mit der Quelle jeder Aussage.",
        "Demandez-moi ce que disent les documents de votre équipe. Je réponds avec la source de chaque affirmation.",
        "Pregúnteme sobre los documentos de su equipo. Respondo con la fuente de cada afirmación.",
        "Tanyakan apa saja dari dokumen tim Anda. Saya menjawab dengan sumber setiap pernyataan.",
        "チームの文書について何でも聞いてください。すべての記述に出典を付けて答えます。",
        "可以问我团队文档里的任何内容。我的回答每一句都有来源。",
    ),
}


def say(phrase: Phrase, language: str | None, **gaps: str) -> str:
    """The phrase in that language; English for any other."""
    index = LANGUAGES.index(language) if language in LANGUAGES else 0
    text = _PHRASES[phrase][index]
    return text.format(**gaps) if gaps else text
