// The workspace page: what is open, what is known, and how both become what is seen.
import { confirmed, renderBlock } from "./blocks.js";
import { Composer } from "./composer.js";
import { announce, avatar, byId, day, el, FOCUSABLE, refill, seen, tell, toast } from "./dom.js";
import { renderRecord } from "./inspector.js";
import { follows, renderMessage, renderStatus, spoken, turnSteps } from "./messages.js";
import { forgetViews, openView, viewClosed, watchModal } from "./modal.js";
import { act, get, Live } from "./net.js";
import { drawWho, watchTry } from "./try.js";

const ROTATE_MS = 2600;
const NARROW = matchMedia("(max-width: 1000px)");
const state = {
  boot: null, channel: "", tab: "messages", thread: "", inspecting: "",
  messages: new Map(), loaded: new Set(), unread: new Map(), statuses: new Map(), sessions: new Map(), told: new Map(), turn: 0,
};

const member = (id) => state.boot.members.find((one) => one.id === id);
const channelOf = (id) => state.boot.channels.find((one) => one.id === id);
const known = (channel) => state.messages.get(channel) ?? state.messages.set(channel, new Map()).get(channel);
const threadKey = (channel, thread) => `${channel} ${thread}`;
const isDirect = (channel) => channel?.kind === "im";

function title(channel) {
  return isDirect(channel) ? channel.name : `#${channel.name}`;
}

const actions = {
  get me() { return state.boot.me; },
  member,
  openThread: (ts, focus) => showThread(ts, focus),
  react: (message, name) => attempt(act("react", { channel: message.channel, ts: message.ts, name })),
  remove: async (message) => {
    const asked = { title: "Delete message", text: "Delete this message? If Orion answered it, its answer goes too.", confirm: "Delete", deny: "Keep" };
    if (await confirmed(asked)) attempt(act("delete", { channel: message.channel, ts: message.ts }));
  },
  edit: (message) => startEdit(message),
  inspect: (message) => inspect(message),
  get shortcuts() { return state.boot.shortcuts; },
  shortcut: (message, id) => attempt(act("shortcut", { channel: message.channel, ts: message.ts, callback_id: id })),
  click: (message, element, block) => act("click", { channel: message.channel, ts: message.ts, action_id: element.action_id, block_id: block.block_id, value: element.value }),
};

async function attempt(promise) {
  try {
    return await promise;
  } catch (failure) {
    toast(failure.message);
    return null;
  }
}

/* What is seen ------------------------------------------------------------------------------------------------- */

function timeline(channel) {
  return [...known(channel).values()].filter((one) => !one.thread_ts || one.thread_ts === one.ts).sort(byTs);
}

function threadMessages(channel, ts) {
  return [...known(channel).values()].filter((one) => one.ts === ts || one.thread_ts === ts).sort(byTs);
}

const byTs = (a, b) => Number(a.ts) - Number(b.ts);

function statusOf(channel, thread) {
  const key = threadKey(channel, thread);
  const status = state.statuses.get(key);
  return status && { ...status, running: state.sessions.get(key) === "processing" };
}

function statusNode(status, open) {
  const { channel, thread_ts: thread } = status;
  const question = threadMessages(channel, thread).filter((one) => !one.is_bot).at(-1);
  const stop = status.running ? () => attempt(act("stop", { channel, thread_ts: thread })) : null;
  return renderStatus(status, member(state.boot.bot).name, { stop, open, asked: question ? spoken(question) : "", turn: state.turn });
}

const parts = (node) => [node, ...node.querySelectorAll(FOCUSABLE)];

// The old node while it says the same or is being edited; else a new one, with the focus where it was in the old.
function renewed(old, signature, make) {
  if (old && (old.dataset.signature === signature || old.dataset.editing)) return old;
  const fresh = make();
  fresh.dataset.signature = signature;
  const focused = document.activeElement;
  const at = old?.contains(focused) ? parts(old).indexOf(focused) : -1;
  const now = parts(fresh)[at];
  if (at >= 0) queueMicrotask(() => (now?.className === focused.className ? now : fresh).focus());
  return fresh;
}

function fill(box, messages, { inThread, empty }) {
  const stick = box.scrollHeight - box.scrollTop - box.clientHeight < 80;
  const held = box.contains(document.activeElement);
  const old = new Map([...box.querySelectorAll(":scope > .message")].map((node) => [node.dataset.ts, node]));
  const nodes = [];
  let before = null;
  for (const message of messages) {
    if (!before || day(before.ts) !== day(message.ts)) if (!inThread) nodes.push(el("div", { class: "day" }, day(message.ts)));
    const compact = follows(message, inThread && before === messages[0] ? null : before);
    const status = inThread ? null : statusOf(message.channel, message.ts);
    nodes.push(renewed(old.get(message.ts), JSON.stringify([message, compact, status]), () => {
      const node = renderMessage(message, { compact, inThread, actions });
      if (status) node.children[1].append(statusNode(status, () => showThread(message.ts, true)));
      return node;
    }));
    if (inThread && message === messages[0] && message.reply_count) nodes.push(el("div", { class: "reply-rule" }, message.reply_count === 1 ? "1 reply" : `${message.reply_count} replies`));
    before = message;
  }
  const status = inThread && statusOf(state.channel, state.thread);
  if (status) nodes.push(renewed(box.querySelector(":scope > .status"), JSON.stringify(status), () => statusNode(status)));
  place(box, nodes.length ? nodes : [empty].filter(Boolean));
  if (held) queueMicrotask(() => box.contains(document.activeElement) || (inThread ? threadComposer : mainComposer).input.focus());
  if (stick && messages.length && !old.has(messages.at(-1).ts)) toLast(box);
  else if (stick) box.scrollTop = box.scrollHeight;
}

// Puts nodes in order without moving those that stay: a node that is moved loses focus and selection.
function place(box, nodes) {
  const staying = new Set(nodes);
  for (const child of [...box.children]) if (!staying.has(child)) child.remove();
  nodes.forEach((node, index) => {
    if (box.children[index] !== node) box.insertBefore(node, box.children[index] ?? null);
  });
}

function welcome(channel) {
  const orion = member(state.boot.bot);
  const direct = isDirect(channel);
  const given = state.boot.prompts[channel.id];
  const examples = state.boot.examples;
  const suggested = (direct ? given?.prompts ?? [] : []).filter((one) => !examples.includes(one.message));
  const send = (text) => {
    if (!direct) return mainComposer.insert(`@${orion.name} ${text}`);
    mainComposer.input.focus(); // the button disappears once the question is there
    return attempt(act("post", { channel: channel.id, text }));
  };
  return el(
    "div", { class: "welcome" },
    direct ? avatar(orion) : el("span", { class: "avatar tint3", "aria-hidden": "true" }, "#"),
    el("h2", {}, direct ? orion.name : `Welcome to #${channel.name}`),
    el("p", {}, direct ? given?.title || "Ask a question. Answers come from your documents, with their sources, and are checked before they are shown." : `${channel.topic ? `${channel.topic}. ` : ""}Mention @${orion.name} to ask a question here.`),
    examples.length ? el("div", { class: "prompts" }, ...examples.slice(0, 4).map((text) => el("button", { type: "button", class: "prompt", onclick: () => send(text) }, text))) : null,
    suggested.length ? el("div", { class: "suggested", role: "group", "aria-label": `Suggested by ${orion.name}` }, ...suggested.map((one) => el("button", { type: "button", class: "btn small", title: one.message, onclick: () => send(one.message) }, one.title))) : null,
  );
}

function drawTimeline() {
  const channel = channelOf(state.channel);
  fill(byId("timeline"), timeline(channel.id), { inThread: false, empty: state.loaded.has(channel.id) ? welcome(channel) : null });
}

function drawThread() {
  if (state.thread) fill(byId("thread"), threadMessages(state.channel, state.thread), { inThread: true });
}

function drawSidebar() {
  drawPlaces(byId("channel-list"), state.boot.channels.filter((one) => !isDirect(one)));
  drawPlaces(byId("direct-list"), state.boot.channels.filter(isDirect));
}

// A button stays while a message changes its text: the browser drops a click that began on a button it lost.
function drawPlaces(list, channels) {
  const kept = new Map([...list.querySelectorAll("button")].map((button) => [button.dataset.channel, button]));
  const buttons = channels.map(({ id }) => kept.get(id) ?? el("button", { type: "button", "data-channel": id, onclick: () => go(id) }));
  if (String([...kept.keys()]) !== String(channels.map((one) => one.id))) refill(list, ...buttons.map((button) => el("li", {}, button)));
  buttons.forEach((button, at) => drawPlace(button, channels[at]));
}

function drawPlace(button, channel) {
  const unread = state.unread.get(channel.id) ?? 0;
  const sign = isDirect(channel) ? avatar(member(channel.user)) : el("span", { class: "sign", "aria-hidden": "true" }, "#");
  const badge = unread && isDirect(channel) ? [el("span", { class: "badge" }, String(unread))] : [];
  const note = unread ? [el("span", { class: "visually-hidden" }, " unread")] : [];
  button.className = `nav-item${unread ? " unread" : ""}`;
  if (channel.id === state.channel) button.setAttribute("aria-current", "page");
  else button.removeAttribute("aria-current");
  button.replaceChildren(sign, el("span", { class: "label" }, channel.name), ...badge, ...note);
}

function drawHead() {
  const channel = channelOf(state.channel);
  byId("place-name").textContent = title(channel);
  byId("place-topic").textContent = isDirect(channel) ? member(channel.user)?.title ?? "" : channel.topic;
  const tabs = isDirect(channel) && channel.user === state.boot.bot;
  byId("tabs").hidden = !tabs;
  const home = tabs && state.tab === "home";
  for (const name of ["home", "messages"]) {
    byId(`tab-${name}`).setAttribute("aria-selected", String(state.tab === name));
    byId(`tab-${name}`).tabIndex = state.tab === name ? 0 : -1;
  }
  if (!home) delete byId("tab-messages").dataset.news;
  byId("timeline").hidden = home;
  byId("home").hidden = !home;
  byId("channel-composer-slot").hidden = home;
  mainComposer.show(channel.id, isDirect(channel) ? `Message ${channel.name}` : `Message #${channel.name}`);
  document.title = `${title(channel)} · ${state.boot.team}`;
}

function drawHome() {
  const home = state.boot.home;
  const click = (element, block) => act("click", { view_id: home.id, action_id: element.action_id, block_id: block.block_id });
  const inner = home ? home.blocks.map((block) => renderBlock(block, click)) : [el("p", { class: "empty" }, "Orion has not set up this page yet.")];
  refill(byId("home"), el("div", { class: "inner" }, ...inner));
  for (const head of byId("home").querySelectorAll("[aria-level]")) head.setAttribute("aria-level", "2");
}

function draw() {
  drawSidebar();
  drawTimeline();
  drawThread();
}

/* Where we are -------------------------------------------------------------------------------------------------- */

async function load(channel, thread) {
  const query = new URLSearchParams(thread ? { channel, thread_ts: thread } : { channel });
  const since = live.seq;
  const { messages } = await get(`/ui/messages?${query}`);
  // What the socket told meanwhile is newer than what was asked for.
  for (const message of messages) if ((state.told.get(message.ts) ?? 0) <= since) known(channel).set(message.ts, message);
  if (!thread) state.loaded.add(channel);
}

// Each place is a step of the browser's history, so that its Back button leads to the place before.
function remember() {
  const thread = state.thread ? `/${state.thread}` : "";
  const view = state.inspecting || (state.tab === "home" ? "home" : "");
  const hash = `#/${state.channel}${thread}${view && `?${view}`}`;
  if (document.body.dataset.ready && location.hash !== hash) history.pushState(null, "", `/${hash}`);
  else history.replaceState(null, "", `/${hash}`);
}

async function go(channel, { thread = "", inspecting = "", tab = "messages", focus = true } = {}) {
  const changed = state.channel !== channel;
  Object.assign(state, { channel, tab, thread: "", inspecting: "" });
  state.unread.delete(channel);
  hideSidebar();
  drawPane();
  drawHead();
  if (changed) byId("timeline").replaceChildren();
  draw();
  if (!thread && !inspecting) remember();
  if (isDirect(channelOf(channel)) && channelOf(channel).user === state.boot.bot) attempt(act("open_home", { tab }));
  if (tab === "home") drawHome();
  await attempt(load(channel));
  if (state.channel !== channel) return;
  draw();
  byId("timeline").scrollTop = byId("timeline").scrollHeight;
  if (thread) await showThread(thread, false, !inspecting);
  if (inspecting) inspect(known(channel).get(inspecting) ?? { ts: inspecting });
  else if (!thread && focus && tab === "messages") mainComposer.input.focus();
}

async function showThread(ts, focus, last = true) {
  const root = known(state.channel).get(ts);
  state.thread = root?.thread_ts || ts;
  state.inspecting = "";
  drawPane();
  if (last) remember();
  byId("thread").replaceChildren();
  drawThread();
  await attempt(load(state.channel, state.thread));
  drawThread();
  toLast(byId("thread"));
  if (focus) threadComposer.input.focus();
  else if (!seen(byId("main")) || document.activeElement === document.body) byId("pane-title").focus(); // else it is nowhere
}

// To the end, but not past the beginning of the last message: an answer is read from its first line.
function toLast(box) {
  box.scrollTop = box.scrollHeight;
  const last = [...box.querySelectorAll(":scope > .message")].at(-1);
  if (last && last.offsetHeight > box.clientHeight) last.scrollIntoView({ block: "start" });
}

function drawPane() {
  const open = Boolean(state.thread || state.inspecting);
  byId("pane").hidden = !open;
  byId("pane").role = NARROW.matches ? "main" : "complementary"; // there it replaces the conversation
  byId("pane-title").ariaLevel = NARROW.matches ? "1" : null;
  if (!open) return;
  const inspecting = Boolean(state.inspecting);
  byId("pane-title").textContent = inspecting ? "How this answer was made" : "Thread";
  byId("pane").setAttribute("aria-label", byId("pane-title").textContent);
  byId("pane-subtitle").textContent = title(channelOf(state.channel));
  byId("pane-back").hidden = !(inspecting && state.thread);
  byId("thread").hidden = byId("thread-composer-slot").hidden = inspecting;
  byId("inspector").hidden = !inspecting;
  if (!inspecting) threadComposer.show(threadKey(state.channel, state.thread), "Reply…");
}

function closePane() {
  const thread = state.thread;
  const within = byId("pane").contains(document.activeElement);
  state.thread = state.inspecting = "";
  drawPane();
  remember();
  if (!within) return;
  (document.querySelector(`#timeline [data-ts="${thread}"] .replies`) ?? mainComposer.input).focus();
}

function backFromInspector() {
  const ts = state.inspecting;
  state.inspecting = "";
  if (!state.thread) {
    closePane();
    document.querySelector(`#timeline [data-ts="${ts}"] .inspect`)?.focus();
    return;
  }
  drawPane();
  remember();
  drawThread();
  document.querySelector(`#thread [data-ts="${ts}"] .inspect`)?.focus();
}

async function inspect(message) {
  state.inspecting = message.ts;
  drawPane();
  remember();
  const box = byId("inspector");
  box.replaceChildren(el("p", { class: "empty" }, "Loading…"));
  byId("pane-title").focus();
  try {
    box.replaceChildren(...renderRecord(await get(`/ui/turn/${encodeURIComponent(message.turn_id)}`)));
  } catch {
    box.replaceChildren(el("p", { class: "empty" }, "There is no record of this answer any more."));
  }
  box.scrollTop = 0;
}

function startEdit(message) {
  const inThread = byId("thread").querySelector(`[data-ts="${message.ts}"]`);
  const node = inThread ?? byId("timeline").querySelector(`[data-ts="${message.ts}"]`);
  if (!node) return;
  node.dataset.editing = "1";
  const box = el("textarea", { class: "edit-box", "aria-label": "Edit message", rows: "3" });
  box.value = typedAgain(message.text);
  const leave = () => {
    delete node.dataset.editing;
    node.dataset.signature = "";
    draw();
    (inThread ? threadComposer : mainComposer).input.focus();
  };
  const save = async () => {
    if ((await attempt(act("edit", { channel: message.channel, ts: message.ts, text: box.value }))) !== null) leave();
  };
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      leave();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      save();
    }
  });
  const row = el("div", { class: "edit-row" }, el("button", { type: "button", class: "btn", onclick: leave }, "Cancel"), el("button", { type: "button", class: "btn primary", onclick: save }, "Save"));
  node.querySelector(".body").replaceChildren(box, row);
  box.focus();
  node.scrollIntoView({ block: "nearest" });
}

// Slack's text form back into what a person typed.
function typedAgain(text) {
  const names = (found, sign, id) => `${sign}${(sign === "@" ? member(id) : channelOf(id))?.name ?? id}`;
  return text.replace(/<([@#])([A-Z0-9]+)(?:\|[^>]*)?>/g, names).replace(/<(https?:[^|>]+)(?:\|[^>]*)?>/g, "$1")
    .replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

function editLast(inThread) {
  const list = inThread ? threadMessages(state.channel, state.thread) : timeline(state.channel);
  const mine = list.filter((one) => one.user === state.boot.me && !one.tombstone).at(-1);
  if (mine) startEdit(mine);
}

/* What happens -------------------------------------------------------------------------------------------------- */

function onMessage(update) {
  const { message, parent } = update;
  for (const one of [message, parent]) if (one) state.told.set(one.ts, update.seq);
  const channel = message.channel;
  const before = known(channel).get(message.ts);
  const fresh = !before;
  if (state.loaded.has(channel) || channel === state.channel) {
    known(channel).set(message.ts, message);
    if (parent) known(channel).set(parent.ts, parent);
  }
  const foreign = message.user !== state.boot.me;
  openFirst(message, parent, fresh);
  if (fresh && foreign && channel === state.channel && state.tab === "home") byId("tab-messages").dataset.news = " (new)";
  if (fresh && foreign && channel !== state.channel) state.unread.set(channel, (state.unread.get(channel) ?? 0) + 1);
  const news = fresh || before.streaming || spoken(before) !== spoken(message);
  if (news && !message.streaming && foreign && channel === state.channel) announce(spoken(message));
}

// A newcomer's first answer opens by itself.
function openFirst(message, parent, fresh) {
  if (!fresh || localStorage.getItem("answered") || message.user !== state.boot.bot || parent?.user !== state.boot.me) return;
  localStorage.setItem("answered", "1");
  if (message.channel === state.channel && !state.thread) queueMicrotask(() => showThread(parent.ts, false));
}

const handlers = {
  message: onMessage,
  message_deleted: ({ channel, ts, thread_ts: thread }) => {
    known(channel).delete(ts);
    if (thread && channel === state.channel) attempt(load(channel, thread).then(draw));
    if (ts === state.thread && channel === state.channel) closePane();
  },
  status: (update) => {
    const key = threadKey(update.channel, update.thread_ts);
    if (update.status && !state.statuses.has(key) && update.channel === state.channel) announce(`${member(state.boot.bot).name} ${update.status}`);
    if (update.status) state.statuses.set(key, update);
    else state.statuses.delete(key);
  },
  session: (update) => state.sessions.set(threadKey(update.channel, update.thread_ts), update.status),
  prompts: (update) => {
    state.boot.prompts[update.channel] = { title: update.title, prompts: update.prompts };
    byId("timeline").querySelector(".welcome")?.remove();
  },
  app: ({ connected }) => {
    state.boot.connected = connected;
    drawPresence();
  },
  notice: ({ text }) => {
    state.boot.notice = text;
    drawNotice();
  },
  home: async () => {
    state.boot.home = (await get("/ui/view?id=home")).view;
    drawHome();
  },
  view: ({ view_id: id, user }) => user === state.boot.me && openView(id),
  view_closed: ({ view_id: id }) => viewClosed(id),
};

let scheduled = false;

function onUpdate(update) {
  handlers[update.type]?.(update);
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    draw();
  });
}

function onConnection(connected) {
  state.online = connected;
  drawNotice();
  drawPresence();
}

function drawNotice() {
  const text = state.online ? state.boot.notice : "Reconnecting to the workspace…";
  byId("connection").hidden = !text;
  tell("connection", text);
}

function drawPresence() {
  const there = state.online && state.boot?.connected;
  byId("presence").className = `presence${there ? "" : " off"}`;
  tell("presence", there ? "Orion is online" : state.online ? "Orion is offline" : "Offline");
}

const live = new Live({ onUpdate, onReset: () => start(), onState: onConnection });

async function upload(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (bytes.length > 700000) throw new Error(`${file.name} is too big for this workspace (700 KB at most).`);
  let content = "";
  for (let at = 0; at < bytes.length; at += 8192) content += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return (await act("upload", { name: file.name, content: btoa(content) })).file;
}

async function send(text, thread, files = []) {
  const body = { channel: state.channel, text, files };
  const box = byId(thread ? "thread" : "timeline");
  await act("post", thread ? { ...body, thread_ts: thread } : body);
  box.scrollTop = box.scrollHeight;
}

function candidates(sign) {
  if (sign === "#") return state.boot.channels.filter((one) => !isDirect(one)).map((one) => ({ id: one.id, name: one.name, title: one.topic }));
  const others = state.boot.members.filter((one) => one.id !== state.boot.me);
  return [...others.filter((one) => one.is_bot), ...others.filter((one) => !one.is_bot)];
}

const mainComposer = new Composer(byId("channel-composer-slot"), { id: "channel-composer", label: "Message", candidates, send: (text, files) => send(text, "", files), upload, editLast: () => editLast(false) });
const threadComposer = new Composer(byId("thread-composer-slot"), { id: "thread-composer", label: "Reply…", candidates, send: (text, files) => send(text, state.thread, files), upload, editLast: () => editLast(true) });

function drawer(open) {
  byId("sidebar").classList.toggle("shown", open);
  byId("scrim").hidden = !open;
  byId("main").inert = byId("pane").inert = open;
  byId("open-sidebar").setAttribute("aria-expanded", String(open));
}

function hideSidebar() {
  const within = byId("sidebar").matches(".shown:focus-within");
  drawer(false);
  if (within) byId("open-sidebar").focus();
}

function showSidebar() {
  drawer(true);
  byId("sidebar").querySelector("[data-channel][aria-current]").focus();
}

function toggleTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const next = (document.documentElement.dataset.theme ?? system) === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  document.cookie = `theme=${next}; path=/; max-age=31536000; samesite=lax`;
  announce(`${next} theme`);
}

function onKey(event) {
  if (document.querySelector("dialog[open]")) return; // its keys are its own
  if (event.key === "Escape") {
    if (byId("sidebar").classList.contains("shown")) hideSidebar();
    else if (state.inspecting) backFromInspector();
    else if (state.thread) closePane();
    return;
  }
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
  const box = event.target.closest?.("#timeline, #thread");
  if (event.key === "Enter" && event.target.matches("#timeline > .message")) showThread(event.target.dataset.ts, true);
  if (!step || !box || event.target.closest("textarea, input")) return;
  const rows = [...box.querySelectorAll(":scope > .message")];
  const at = rows.indexOf(event.target.closest(".message"));
  const next = at < 0 ? rows.at(step > 0 ? 0 : -1) : rows[at + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function watch() {
  addEventListener("keydown", onKey);
  addEventListener("failure", (event) => toast(event.detail.message));
  NARROW.addEventListener("change", drawPane);
  byId("pane-close").addEventListener("click", () => (state.inspecting ? backFromInspector() : closePane()));
  byId("pane-back").addEventListener("click", backFromInspector);
  byId("open-sidebar").addEventListener("click", showSidebar);
  byId("scrim").addEventListener("click", hideSidebar);
  byId("theme-toggle").addEventListener("click", toggleTheme);
  byId("tab-home").addEventListener("click", () => go(state.channel, { tab: "home" }));
  byId("tab-messages").addEventListener("click", () => go(state.channel));
  byId("tabs").addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = byId(state.tab === "home" ? "tab-messages" : "tab-home");
    other.click();
    other.focus();
  });
  watchModal();
  watchTry(() => start({ focus: false }).catch((failure) => toast(failure.message)));
  addEventListener("hashchange", () => {
    const wanted = target();
    if (channelOf(wanted.channel)) go(wanted.channel, wanted);
  });
  setInterval(() => {
    state.turn += 1;
    turnSteps(state.turn);
  }, ROTATE_MS);
}

// Where the address points: /#/C0HELP/<thread> or a permalink /archives/C0HELP/p<ts>.
function target() {
  const permalink = /^\/archives\/([A-Z0-9]+)\/p(\d+)(\d{6})$/.exec(location.pathname);
  if (permalink) {
    const thread = new URLSearchParams(location.search).get("thread_ts");
    return { channel: permalink[1], thread: thread ?? "", message: `${permalink[2]}.${permalink[3]}` };
  }
  const [, channel = "", thread = "", view = ""] = /^#\/([A-Z0-9]+)(?:\/([\d.]+))?(?:\?(home|[\d.]+))?$/.exec(location.hash) ?? [];
  return { channel, thread, tab: view === "home" ? "home" : "messages", inspecting: view === "home" ? "" : view };
}

async function start({ focus = true } = {}) {
  forgetViews();
  state.boot = await get("/ui/boot");
  state.boot.members.forEach((one, index) => (one.tint = index));
  for (const part of ["messages", "statuses", "sessions", "unread", "told"]) state[part].clear();
  state.loaded.clear();
  for (const one of state.boot.statuses) state.statuses.set(threadKey(one.channel, one.thread_ts), one);
  for (const one of state.boot.sessions) state.sessions.set(threadKey(one.channel, one.thread_ts), one.status);
  byId("team-name").textContent = state.boot.team;
  byId("team-mark").textContent = state.boot.team[0];
  drawWho(state.boot);
  live.start(state.boot.run, state.boot.seq);
  const wanted = target();
  const first = state.boot.channels.find((one) => one.user === state.boot.bot) ?? state.boot.channels[0];
  await go(channelOf(wanted.channel) ? wanted.channel : first.id, { ...wanted, focus });
  const cited = wanted.message && document.querySelector(`[data-ts="${wanted.message}"]`);
  cited?.classList.add("flash");
  cited?.scrollIntoView({ block: "center" });
  document.body.dataset.ready = "1";
}

watch();
start().catch(() => toast("The workspace cannot be reached. Is it still running?"));
