// One message as DOM: head, body, reactions, replies, and the tools that appear beside it.
import { renderBlock } from "./blocks.js";
import { avatar, clock, day, el, thumb, when } from "./dom.js";

const GROUP_SECONDS = 300;

export function follows(message, before) {
  return Boolean(
    before && before.user === message.user && !message.ephemeral && !before.ephemeral && !before.reply_count &&
    Number(message.ts) - Number(before.ts) < GROUP_SECONDS && day(message.ts) === day(before.ts),
  );
}

function body(message, actions) {
  const node = el("div", { class: message.streaming ? "body streaming" : "body", "aria-busy": message.streaming ? "true" : null });
  if (message.tombstone) return el("div", { class: "body gone" }, "This message was deleted.");
  if (message.blocks.length) {
    const click = (element, block) => actions.click(message, element, block);
    node.append(...message.blocks.map((block) => renderBlock(block, click)));
  } else {
    node.append(el("div", { class: "rich", html: message.html }));
  }
  nameCitations(node);
  if (message.turn_id) addInspect(node, message, actions);
  for (const one of node.querySelectorAll(".mention")) if (one.dataset.id === actions.me) one.classList.add("me");
  if (message.edited) node.append(el("span", { class: "edited" }, "(edited)"));
  for (const file of message.files) node.append(el("div", { class: "file" }, file.name, el("span", { class: "time" }, `${Math.ceil(file.size / 1024)} KB`)));
  return node;
}

// A list of links that are all called "[1]" does not say where they lead: the line below the answer has the titles.
function nameCitations(node) {
  const links = [...node.querySelectorAll("a")];
  for (const link of links) {
    const source = links.find((one) => one.href === link.href && one.textContent.startsWith(`${link.textContent} `));
    if (source) link.setAttribute("aria-label", source.textContent);
  }
}

// Beside the answer's last buttons, or on a line of its own.
function addInspect(node, message, actions) {
  const last = node.lastElementChild;
  const row = last?.classList.contains("block-actions") ? last : el("div", { class: "block-actions" });
  row.append(el("button", { type: "button", class: "btn small inspect", onclick: () => actions.inspect(message) }, "Inspect"));
  if (row !== last) node.append(row);
}

function replyBar(message, actions) {
  const count = message.reply_count;
  const faces = message.reply_users.map((user) => avatar(actions.member(user)));
  return el(
    "button",
    { type: "button", class: "replies", onclick: () => actions.openThread(message.ts, true) },
    ...faces, el("b", {}, count === 1 ? "1 reply" : `${count} replies`), el("span", {}, `Last reply ${day(message.latest_reply) === "Today" ? "" : `${day(message.latest_reply)} `}${clock(message.latest_reply)}`),
  );
}

function under(message, actions, inThread) {
  const node = el("div", { class: "under" });
  for (const one of message.reactions) {
    const mine = one.users.includes(actions.me);
    node.append(el("button", { type: "button", class: `reaction${mine ? " mine" : ""}`, "aria-pressed": String(mine), "aria-label": `${one.name}, ${one.count}`, onclick: () => actions.react(message, one.name) }, el("span", { html: one.sign }), ` ${one.count}`));
  }
  if (message.reply_count && !inThread) node.append(replyBar(message, actions));
  return node;
}

function tools(message, actions, inThread) {
  if (message.ephemeral || message.tombstone) return null;
  const buttons = [];
  const add = (label, run, name) => buttons.push(el("button", { type: "button", "data-tool": name, onclick: run }, label));
  if (!inThread) add("Reply in thread", () => actions.openThread(message.thread_ts || message.ts, true), "reply");
  add(thumb("up"), () => actions.react(message, "+1"), "react");
  buttons.at(-1).setAttribute("aria-label", "React with thumbs up");
  if (message.user === actions.me) {
    add("Edit", () => actions.edit(message), "edit");
    add("Delete", () => actions.remove(message), "delete");
  }
  const shortcut = ({ name, callback_id: id }) => el("button", { type: "button", onclick: (event) => {
    event.target.closest("details").open = false;
    actions.shortcut(message, id);
  } }, name);
  if (actions.shortcuts.length) buttons.push(el("details", {}, el("summary", {}, "More"), el("div", {}, ...actions.shortcuts.map(shortcut))));
  return el("div", { class: "tools", role: "group", "aria-label": "Message actions" }, ...buttons);
}

// What a screen reader says of a message: all that is read in it, without its buttons and the steps that led there.
export function spoken(message) {
  const said = el("div", {}, ...(message.blocks.length ? message.blocks.map((block) => renderBlock(block)) : [el("div", { html: message.html })]));
  for (const one of said.querySelectorAll("button, .btn, .plan")) one.remove();
  for (const one of said.querySelectorAll("div, p, pre, li, th, td, br, summary, .block-context > *")) one.after(" ");
  return `${message.name}: ${said.textContent.replace(/\s+/g, " ").trim()}`;
}

export function renderMessage(message, { compact, inThread, actions }) {
  const member = actions.member(message.user) ?? { id: message.user, name: message.name, is_bot: message.is_bot };
  const classes = ["message", compact && "follows", message.ephemeral && "private"].filter(Boolean).join(" ");
  const time = el("time", { class: "time", datetime: when(message.ts).toISOString(), title: when(message.ts).toLocaleString() }, clock(message.ts));
  const head = el("div", { class: "head" }, el("span", { class: "author" }, message.name), message.is_bot && el("span", { class: "app-badge" }, "APP"), time);
  const said = body(message, actions);
  said.id = `${inThread ? "reply" : "message"}-${message.ts}`;
  const content = el(
    "div", {},
    message.ephemeral && el("div", { class: "only-you" }, "Only visible to you"),
    head, said, under(message, actions, inThread),
  );
  return el(
    "div", { class: classes, "data-ts": message.ts, tabindex: "-1", role: "article", "aria-label": `${message.name}, ${clock(message.ts)}`, "aria-describedby": said.id },
    avatar(member), content, tools(message, actions, inThread),
  );
}

export function turnSteps(turn, within = document) {
  for (const one of within.querySelectorAll(".status-step")) {
    const steps = JSON.parse(one.dataset.steps);
    one.textContent = steps[turn % steps.length];
  }
}

export function renderStatus(status, name, { stop, open, asked, turn }) {
  const node = el("div", { class: "status", "data-thread": status.thread_ts }, el("span", { class: "dots", "aria-hidden": "true" }, el("i"), el("i"), el("i")));
  node.append(el("span", { class: "status-text" }, `${name} ${status.status}`));
  const steps = status.loading_messages.filter((one) => one !== status.status);
  if (steps.length) node.append(el("span", { class: "status-step", "data-steps": JSON.stringify(steps) }));
  turnSteps(turn, node);
  if (open) node.append(el("button", { type: "button", class: "btn small", onclick: open }, "View thread"));
  if (stop) node.append(el("button", { type: "button", class: "btn small", "aria-label": `Stop answering ${asked}`, onclick: stop }, "Stop"));
  return node;
}
