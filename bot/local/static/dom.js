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
  if (member?.is_bot && member.name === "Orion") {
    return el("span", { class: "avatar", "aria-hidden": "true" }, el("img", { src: "/static/icon.svg", alt: "" }));
  }
  const name = member?.name ?? "?";
  let sum = 0;
  for (const character of member?.id ?? name) sum = (sum * 31 + character.codePointAt(0)) % 6;
  return el("span", { class: `avatar tint${sum}`, "aria-hidden": "true" }, initials(name));
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

export function toast(text) {
  const shown = el("div", { class: "toast" }, text);
  byId("toasts").append(shown);
  setTimeout(() => shown.remove(), 6000);
}

export function announce(text) {
  byId("announce").textContent = text;
}
