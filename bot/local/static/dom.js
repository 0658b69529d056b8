// Small pieces of DOM. Text goes in as text; only HTML that the server made safe goes in as HTML.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name === "html") node.innerHTML = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return node;
}

export const byId = (id) => document.getElementById(id);

export function initials(name) {
  const words = name.split(/[\s-]+/).filter(Boolean);
  return (words[0]?.[0] ?? "?").toUpperCase() + (words.length > 1 ? words[1][0].toUpperCase() : "");
}

export function avatar(member) {
  // A background, not an image: nodes are recreated at each change, and an image would flash each time.
  if (member?.is_bot && member.name === "Orion") return el("span", { class: "avatar orion", "aria-hidden": "true" });
  const name = member?.name ?? "?";
  return el("span", { class: `avatar tint${(member?.tint ?? 5) % 6}`, "aria-hidden": "true" }, initials(name));
}

const THUMB = "M5 7.5v6M5 13.2c1.6.9 2.4 1.1 4.3 1.1h2c1 0 1.7-.6 1.9-1.6l.8-3.8c.2-1-.5-1.9-1.5-1.9H9.5l.5-2.7c.2-1-.4-1.9-1.3-1.9L6 6.8 5 7.5";

export function thumb(kind) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 17 17");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", THUMB);
  svg.append(path);
  return el("span", { class: `thumb ${kind}` }, svg);
}

export const when = (ts) => new Date(Number(ts) * 1000);
export const clock = (ts) => when(ts).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

export function day(ts) {
  const date = when(ts);
  const midnight = (value) => new Date(value.getFullYear(), value.getMonth(), value.getDate()).getTime();
  const days = Math.round((midnight(new Date()) - midnight(date)) / 86400000);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  return date.toLocaleDateString([], { weekday: "long", day: "numeric", month: "long" });
}

export const FOCUSABLE = "a[href], button, summary, input, select";

export const seen = (node) => node.checkVisibility({ visibilityProperty: true });

// Other children for a box; the focus stays at its place among them.
export function refill(box, ...nodes) {
  const at = [...box.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
  box.replaceChildren(...nodes);
  if (at >= 0) box.querySelectorAll(FOCUSABLE)[at]?.focus();
}

// A live region announces every text written into it, even the same words again.
export function tell(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

export function toast(text) {
  const shown = el("div", { class: "toast" }, text);
  byId("toasts").append(shown);
  setTimeout(() => shown.remove(), 6000);
}

export function announce(text) {
  byId("announce").textContent = text;
}
