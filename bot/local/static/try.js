// What a visitor tries out: being another person, a tour of four steps.
import { byId, el, seen } from "./dom.js";
import { as } from "./net.js";

const STEPS = [
  ["Ask", "Write a question, or press one that is offered. Orion answers from the documents only."],
  ["Open the source", "Every statement has a number. Press it: the document opens at that passage."],
  ["Why trust this?", "Under each answer you can see every statement next to the words that support it."],
  ["Ask in a channel", "Open #help and write @Orion with a question. In the thread, go on without the mention."],
];

export function drawWho(boot) {
  const select = byId("who");
  select.replaceChildren(...boot.people.map((id) => {
    const one = boot.members.find((member) => member.id === id);
    return el("option", { value: id, selected: id === boot.me ? "selected" : null }, one.name);
  }));
  select.value = boot.me;
}

function show(step) {
  const box = byId("tour");
  box.hidden = step >= STEPS.length;
  localStorage.setItem("tour", String(step));
  if (box.hidden) {
    ["tour-start", "channel-composer", "place-name"].map(byId).find(seen)?.focus();
    return;
  }
  const [title, text] = STEPS[step];
  const last = step === STEPS.length - 1;
  box.replaceChildren(
    el("p", { class: "muted" }, `Step ${step + 1} of ${STEPS.length}`), el("h2", { id: "tour-title", tabindex: "-1" }, title), el("p", {}, text),
    el("div", { class: "tour-row" }, el("button", { type: "button", class: "btn small", onclick: () => show(STEPS.length) }, "End tour"), el("button", { type: "button", class: "btn primary", onclick: () => show(step + 1) }, last ? "Done" : "Next")),
  );
  byId("tour-title").focus();
}

export function watchTry(restart) {
  byId("who").addEventListener("change", (event) => {
    as.user = event.target.value;
    sessionStorage.setItem("user", as.user);
    restart();
  });
  byId("tour-start").addEventListener("click", () => {
    byId("scrim").click(); // on a narrow screen the drawer covers what the tour is about
    show(0);
  });
  byId("tour").addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    show(STEPS.length);
  });
}
