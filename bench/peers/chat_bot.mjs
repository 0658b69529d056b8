// The Chat SDK's Slack adapter as its documentation starts it: one model call a mention, state in memory.
import { createMemoryState } from "@chat-adapter/state-memory";
import { createSlackAdapter } from "@chat-adapter/slack";
import { Chat } from "chat";

const { SLACK_API_URL, SLACK_BOT_TOKEN, SLACK_APP_TOKEN, SLACK_SIGNING_SECRET, OPENAI_BASE_URL } = process.env;

const slack = createSlackAdapter({
  mode: "socket",
  apiUrl: SLACK_API_URL,
  botToken: SLACK_BOT_TOKEN,
  appToken: SLACK_APP_TOKEN,
  signingSecret: SLACK_SIGNING_SECRET,
});
const bot = new Chat({ userName: "bench", adapters: { slack }, state: createMemoryState() });

bot.onNewMention(async (thread, message) => {
  const messages = [
    { role: "system", content: "Answer." },
    { role: "user", content: message.text },
  ];
  const response = await fetch(`${OPENAI_BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages }),
  });
  const { choices } = await response.json();
  await thread.post(choices[0].message.content);
});

await bot.initialize();
