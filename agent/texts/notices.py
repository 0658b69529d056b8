"""What Orion tells people about who may ask, how much, when, and whom else: in the seven languages of F9.

Promises: every notice exists in all seven languages and has the same named gaps; each says what happened, what was kept
and what to do. Must never name a rule's members (who else may ask) nor carry text of a person but an admin's reason.
"""

from __future__ import annotations

from typing import Literal

from agent.texts.catalogue import LANGUAGES

# fmt: off
Notice = Literal[
    "user_refused", "channel_refused", "guest", "external_person", "external_channel", "unknown_person",
    "unknown_channel", "checking", "budget_user", "budget_channel", "budget_workspace", "budget_renewed", "paused",
    "paused_now", "resumed_now", "beside", "ask_human", "human_asked", "hand_off_confirm", "yes", "no", "handed_off",
    "hand_off_head", "hand_off_failed", "hand_off_where", "nothing_runs",
]
# fmt: on

_NOTICES: dict[Notice, tuple[str, str, str, str, str, str, str]] = {
    "user_refused": (
        "I may not answer you here: the admin who runs me has not opened me to your account.",
        "Ich darf dir hier nicht antworten: Der Admin, der mich betreibt, hat mich für dein Konto nicht freigegeben.",
        "Je ne peux pas vous répondre ici : l'admin qui me gère ne m'a pas ouvert à votre compte.",
        "No puedo responderle aquí: el admin que me gestiona no me ha abierto a su cuenta.",
        "Saya tidak boleh menjawab Anda di sini: admin yang menjalankan saya belum membuka akses untuk akun Anda.",
        "ここではお答えできません。管理者があなたのアカウントに利用を許可していません。",
        "我不能在此回答你：管理员没有向你的账号开放。",
    ),
    "channel_refused": (
        "I may not answer in this channel. Write to me directly, or ask the admin who runs me to open it.",
        "In diesem Kanal darf ich nicht antworten. Schreib mir direkt, oder bitte meinen Admin, ihn freizugeben.",
        "Je ne peux pas répondre dans ce canal. Écrivez-moi directement, ou demandez à mon admin de l'ouvrir.",
        "No puedo responder en este canal. Escríbame directamente, o pida a mi admin que lo abra.",
        "Saya tidak boleh menjawab di kanal ini. Tulis langsung kepada saya, atau minta admin saya membukanya.",
        "このチャンネルではお答えできません。直接メッセージを送るか、管理者に許可を依頼してください。",
        "我不能在此频道回答。请直接给我发消息，或请管理员开放此频道。",
    ),
    "guest": (
        "I answer full members of this workspace only, and your account is a guest's. My admin can change that.",
        "Ich antworte nur vollen Mitgliedern; dein Konto ist ein Gastkonto. Mein Admin kann das ändern.",
        "Je réponds aux membres à part entière, et votre compte est celui d'un invité. Mon admin peut le changer.",
        "Solo respondo a miembros plenos de este espacio, y su cuenta es de invitado. Mi admin puede cambiarlo.",
        "Saya hanya menjawab anggota penuh, sedangkan akun Anda adalah akun tamu. Admin saya dapat mengubahnya.",
        "正式メンバーにのみお答えしています。あなたはゲストのアカウントです。管理者が変更できます。",
        "我只回答本工作区的正式成员，而你的账号是访客账号。管理员可以更改。",
    ),
    "external_person": (
        "I answer people of this organisation only. My admin can change that.",
        "Ich antworte nur Menschen dieser Organisation. Mein Admin kann das ändern.",
        "Je réponds seulement aux personnes de cette organisation. Mon admin peut le changer.",
        "Solo respondo a personas de esta organización. Mi admin puede cambiarlo.",
        "Saya hanya menjawab orang dari organisasi ini. Admin saya dapat mengubahnya.",
        "この組織の方にのみお答えしています。管理者が変更できます。",
        "我只回答本组织的人员。管理员可以更改。",
    ),
    "external_channel": (
        "This channel is shared with another organisation, so I do not answer here. Write to me directly instead.",
        "Dieser Kanal ist mit einer anderen Organisation geteilt, darum antworte ich hier nicht. Schreib mir direkt.",
        "Ce canal est partagé avec une autre organisation, je n'y réponds donc pas. Écrivez-moi plutôt directement.",
        "Este canal se comparte con otra organización, por eso no respondo aquí. Escríbame directamente.",
        "Kanal ini dibagikan dengan organisasi lain, jadi saya tidak menjawab di sini. Tulis langsung kepada saya.",
        "このチャンネルは他の組織と共有されているため、お答えしません。直接メッセージを送ってください。",
        "此频道与其他组织共享，因此我不在这里回答。请直接给我发消息。",
    ),
    "unknown_person": (
        "I could not find out whether I may answer you, so I do not. My admin can run `orion doctor` to see why.",
        "Ich konnte nicht klären, ob ich dir antworten darf, also tue ich es nicht. Mein Admin: `orion doctor`.",
        "Je n'ai pas pu vérifier si je peux vous répondre, donc je m'abstiens. Mon admin peut lancer `orion doctor`.",
        "No pude averiguar si puedo responderle, así que no lo hago. Mi admin puede ejecutar `orion doctor`.",
        "Saya tidak dapat memastikan apakah boleh menjawab Anda, jadi tidak saya jawab. Admin: `orion doctor`.",
        "お答えしてよいか確認できなかったため、回答を控えます。管理者は `orion doctor` で原因を確認できます。",
        "我无法确认是否可以回答你，因此不作回答。管理员可运行 `orion doctor` 查看原因。",
    ),
    "unknown_channel": (
        "I could not find out who can read this channel, so I do not answer here. My admin can run `orion doctor`.",
        "Ich konnte nicht klären, wer diesen Kanal liest, darum antworte ich hier nicht. Mein Admin: `orion doctor`.",
        "Je n'ai pas pu vérifier qui lit ce canal, je n'y réponds donc pas. Mon admin peut lancer `orion doctor`.",
        "No pude averiguar quién lee este canal, por eso no respondo aquí. Mi admin puede ejecutar `orion doctor`.",
        "Saya tidak dapat memastikan siapa yang membaca kanal ini, jadi tidak saya jawab. Admin: `orion doctor`.",
        "このチャンネルを誰が読めるか確認できなかったため、お答えしません。管理者は `orion doctor` を実行できます。",
        "我无法确认谁能看到此频道，因此不在这里回答。管理员可运行 `orion doctor`。",
    ),
    "checking": (
        "Slack does not tell me yet whether I may answer you. Your question is kept, and I keep asking.",
        "Slack sagt mir noch nicht, ob ich dir antworten darf. Deine Frage ist aufgehoben, ich frage weiter nach.",
        "Slack ne me dit pas encore si je peux vous répondre. Votre question est conservée, je redemande.",
        "Slack aún no me dice si puedo responderle. Su pregunta está guardada y sigo consultando.",
        "Slack belum memberi tahu apakah saya boleh menjawab Anda. Pertanyaan Anda disimpan dan saya terus bertanya.",
        "お答えしてよいか、まだ Slack に確認できていません。質問は保存されており、確認を続けます。",
        "Slack 还没有告诉我是否可以回答你。你的问题已保留，我会继续查询。",
    ),
    "budget_user": (
        "You have used up what I may spend on one person a day.",
        "Du hast verbraucht, was ich pro Person und Tag ausgeben darf.",
        "Vous avez épuisé ce que je peux dépenser par personne et par jour.",
        "Ha agotado lo que puedo gastar por persona y día.",
        "Jatah harian Anda sudah habis.",
        "一人あたりの一日の上限に達しました。",
        "你今天的个人额度已用完。",
    ),
    "budget_channel": (
        "This channel has used up what I may spend on it a day.",
        "Dieser Kanal hat verbraucht, was ich dafür am Tag ausgeben darf.",
        "Ce canal a épuisé ce que je peux y dépenser par jour.",
        "Este canal agotó lo que puedo gastar en él al día.",
        "Jatah harian kanal ini sudah habis.",
        "このチャンネルの一日の上限に達しました。",
        "此频道今天的额度已用完。",
    ),
    "budget_workspace": (
        "This workspace has used up what I may spend on it a day.",
        "Dieser Workspace hat verbraucht, was ich am Tag ausgeben darf.",
        "Cet espace a épuisé ce que je peux y dépenser par jour.",
        "Este espacio agotó lo que puedo gastar en él al día.",
        "Jatah harian ruang kerja ini sudah habis.",
        "このワークスペースの一日の上限に達しました。",
        "此工作区今天的额度已用完。",
    ),
    "budget_renewed": (
        "It is renewed at 00:00 UTC, in {left}: ask me again then.",
        "Um 00:00 UTC, in {left}, geht es weiter: Frag dann noch einmal.",
        "C'est renouvelé à 00:00 UTC, dans {left} : redemandez alors.",
        "Se renueva a las 00:00 UTC, en {left}: pregúnteme entonces.",
        "Diperbarui pukul 00:00 UTC, dalam {left}: silakan tanya lagi saat itu.",
        "00:00 UTC（あと {left}）に更新されます。その後もう一度お尋ねください。",
        "将在 00:00 UTC（{left} 后）更新，届时请再问我。",
    ),
    "paused": (
        "I am paused right now. Your question is kept, and I answer it when I go on.",
        "Ich pausiere gerade. Deine Frage ist aufgehoben; ich beantworte sie, sobald es weitergeht.",
        "Je suis en pause. Votre question est conservée et j'y répondrai à la reprise.",
        "Estoy en pausa. Su pregunta está guardada y la responderé cuando continúe.",
        "Saya sedang dijeda. Pertanyaan Anda disimpan dan saya jawab saat saya berjalan lagi.",
        "現在一時停止中です。質問は保存されており、再開後にお答えします。",
        "我目前已暂停。你的问题已保留，恢复后我会回答。",
    ),
    "paused_now": (
        "Paused. Questions are kept until you write `resume`.",
        "Angehalten. Fragen werden aufgehoben, bis du `resume` schreibst.",
        "En pause. Les questions sont conservées jusqu'à ce que vous écriviez `resume`.",
        "En pausa. Las preguntas se guardan hasta que escriba `resume`.",
        "Dijeda. Pertanyaan disimpan sampai Anda menulis `resume`.",
        "一時停止しました。`resume` と書くまで質問は保存されます。",
        "已暂停。在你输入 `resume` 之前，问题会被保留。",
    ),
    "resumed_now": (
        "I go on. What waited is answered now.",
        "Es geht weiter. Was gewartet hat, beantworte ich jetzt.",
        "Je reprends. Les questions en attente reçoivent maintenant une réponse.",
        "Continúo. Lo que esperaba se responde ahora.",
        "Saya berjalan lagi. Yang menunggu dijawab sekarang.",
        "再開しました。待っていた質問にこれからお答えします。",
        "我已恢复。等待中的问题现在开始回答。",
    ),
    "beside": (
        "I am waiting for somebody else's answer here, so I took this as said to them. Mention me if it is for me.",
        "Ich warte hier auf jemand anderen und nahm das als dazu gesagt. Erwähne mich, wenn ich gemeint bin.",
        "J'attends ici la réponse de quelqu'un d'autre ; ceci semblait lui être adressé. Sinon, mentionnez-moi.",
        "Espero aquí la respuesta de otra persona y entendí esto como dicho a ella. Si es para mí, mencióneme.",
        "Saya menunggu jawaban orang lain di sini, jadi ini saya anggap untuknya. Sebut saya jika untuk saya.",
        "ここでは別の方の返答を待っているため、その方への発言と受け取りました。私宛ての場合はメンションしてください。",
        "我在等另一个人的回答，因此把这句话当作是对对方说的。如果是问我，请提及我。",
    ),
    "ask_human": (
        "Ask a human",
        "Einen Menschen fragen",
        "Demander à un humain",
        "Preguntar a una persona",
        "Tanya manusia",
        "人に聞く",
        "询问真人",
    ),
    "human_asked": (
        "✓ A human was asked",
        "✓ Ein Mensch ist gefragt",
        "✓ Un humain est sollicité",
        "✓ Se preguntó a una persona",
        "✓ Manusia sudah ditanya",
        "✓ 担当者に依頼済み",
        "✓ 已询问真人",
    ),
    "hand_off_confirm": (
        "Your question and what I found are shown to the people who help where I cannot.",
        "Deine Frage und was ich gefunden habe sehen dann die Menschen, die helfen, wo ich es nicht kann.",
        "Votre question et ce que j'ai trouvé seront montrés aux personnes qui aident quand je ne peux pas.",
        "Su pregunta y lo que encontré se muestran a quienes ayudan donde yo no puedo.",
        "Pertanyaan Anda dan yang saya temukan diperlihatkan kepada orang yang membantu saat saya tidak bisa.",
        "質問と見つかった内容が、対応する担当者に共有されます。",
        "你的问题和我找到的内容会展示给能提供帮助的人。",
    ),
    "yes": ("Ask", "Fragen", "Demander", "Preguntar", "Tanya", "聞く", "询问"),
    "no": ("Cancel", "Abbrechen", "Annuler", "Cancelar", "Batal", "キャンセル", "取消"),
    "handed_off": (
        "I passed your question on. People answer there or in this thread.",
        "Ich habe deine Frage weitergegeben. Geantwortet wird dort oder hier im Thread.",
        "J'ai transmis votre question. On y répondra là-bas ou dans ce fil.",
        "Pasé su pregunta. Le responderán allí o en este hilo.",
        "Saya meneruskan pertanyaan Anda. Jawabannya di sana atau di utas ini.",
        "質問を引き継ぎました。先方かこのスレッドで回答があります。",
        "我已转达你的问题。会有人在那边或此消息列中回答。",
    ),
    "hand_off_head": (
        "{who} asks for a human: I could not answer this from the documents.",
        "{who} fragt nach einem Menschen: Aus den Dokumenten konnte ich das nicht beantworten.",
        "{who} demande un humain : je n'ai pas pu répondre à partir des documents.",
        "{who} pide una persona: no pude responder esto con los documentos.",
        "{who} meminta bantuan manusia: saya tidak dapat menjawab ini dari dokumen.",
        "{who} が担当者の回答を求めています。文書からはお答えできませんでした。",
        "{who} 需要真人帮助：我无法根据文档回答这个问题。",
    ),
    "nothing_runs": (
        "I am not working on anything here, so there is nothing to stop.",
        "Ich arbeite hier an nichts, es gibt also nichts anzuhalten.",
        "Je ne travaille sur rien ici, il n'y a donc rien à arrêter.",
        "No estoy trabajando en nada aquí, así que no hay nada que detener.",
        "Saya tidak sedang mengerjakan apa pun di sini, jadi tidak ada yang perlu dihentikan.",
        "ここで実行中のものはないため、停止するものはありません。",
        "我在这里没有正在处理的内容，因此没有可停止的。",
    ),
    "hand_off_where": (
        "Open the thread",
        "Zum Thread",
        "Ouvrir le fil",
        "Abrir el hilo",
        "Buka utas",
        "スレッドを開く",
        "打开消息列",
    ),
    "hand_off_failed": (
        "I could not pass this on to a human. Please ask somebody directly; my admin can run `orion doctor`.",
        "Ich konnte das nicht an einen Menschen weitergeben. Frag bitte direkt; mein Admin: `orion doctor`.",
        "Je n'ai pas pu transmettre cela à un humain. Demandez directement ; mon admin peut lancer `orion doctor`.",
        "No pude pasar esto a una persona. Pregunte directamente; mi admin puede ejecutar `orion doctor`.",
        "Saya tidak dapat meneruskan ini kepada manusia. Silakan tanya langsung; admin: `orion doctor`.",
        "担当者に引き継げませんでした。直接お尋ねください。管理者は `orion doctor` で原因を確認できます。",
        "我没能把问题转给真人。请直接询问他人；管理员可运行 `orion doctor` 查看原因。",
    ),
}  # fmt: skip


def notice(name: Notice, language: str | None, **gaps: str) -> str:
    """The notice in that language; English for any other."""
    index = LANGUAGES.index(language) if language in LANGUAGES else 0
    text = _NOTICES[name][index]
    return text.format(**gaps) if gaps else text
