// A modal view in a <dialog>: the browser keeps the focus inside and closes it on Esc.
import { renderBlock } from "./blocks.js";
import { byId, el, toast } from "./dom.js";
import { act, get } from "./net.js";

// The field in which Slack sends what was chosen in an input of this type.
const CHOSEN = { users_select: "selected_user", conversations_select: "selected_conversation", datepicker: "selected_date" };

let shown = "";
let stack = [];

function values(form) {
  const state = {};
  for (const control of form.querySelectorAll("[data-type]")) {
    if (control.tagName === "FIELDSET") {
      const chosen = [...control.querySelectorAll("input:checked")].map((one) => ({ value: one.value, text: { type: "plain_text", text: one.parentElement.textContent } }));
      (state[control.dataset.block] ??= {})[control.name] = { type: control.dataset.type, selected_options: chosen };
      continue;
    }
    const value = control.dataset.type in CHOSEN
      ? { type: control.dataset.type, [CHOSEN[control.dataset.type]]: control.value || null }
      : control.tagName === "SELECT"
      ? { type: control.dataset.type, selected_option: { value: control.value, text: { type: "plain_text", text: control.selectedOptions[0]?.text ?? "" } } }
      : { type: control.dataset.type, value: control.value || null };
    (state[control.dataset.block] ??= {})[control.name] = value;
  }
  return state;
}

function showErrors(form, errors) {
  for (const old of form.querySelectorAll(".error")) old.remove();
  for (const [block, text] of Object.entries(errors)) {
    const label = [...form.querySelectorAll(".field")].find((one) => one.dataset.block === block);
    label?.append(el("p", { class: "error", role: "alert" }, text));
  }
  form.querySelector(".error")?.parentElement.querySelector("input,textarea,select")?.focus();
}

async function submit(event, view) {
  event.preventDefault();
  const form = event.currentTarget;
  try {
    const { errors } = await act("submit", { view_id: view.id, values: values(form) });
    showErrors(form, errors);
  } catch (failure) {
    toast(failure.message);
  }
}

export async function openView(id) {
  let view;
  try {
    ({ view } = await get(`/ui/view?id=${encodeURIComponent(id)}`));
  } catch {
    return; // closed again in the meantime
  }
  const dialog = byId("modal");
  const click = (element, block) => act("click", { view_id: id, action_id: element.action_id, block_id: block.block_id });
  const close = el("button", { type: "button", class: "icon-button", "aria-label": "Close", onclick: () => dismiss() }, "✕");
  const form = el(
    "form", { class: "modal-body", id: "modal-form", tabindex: "-1", onsubmit: (event) => submit(event, view) },
    ...view.blocks.map((block) => renderBlock(block, click)),
  );
  const foot = el("div", { class: "modal-foot" }, el("button", { type: "button", class: "btn", onclick: () => dismiss() }, view.close || (view.submit ? "Cancel" : "Close")));
  if (view.submit) foot.append(el("button", { type: "submit", class: "btn primary", form: "modal-form" }, view.submit));
  dialog.replaceChildren(el("header", { class: "bar" }, el("div", { class: "bar-text" }, el("h2", { id: "modal-title" }, view.title)), close), form, foot);
  if (shown !== id) {
    stack = [...stack.filter((one) => one !== id), id];
    shown = id;
  }
  if (!dialog.open) dialog.showModal();
  (form.querySelector("input, textarea, select") ?? form).focus();
}

export function viewClosed(id) {
  stack = stack.filter((one) => one !== id);
  if (shown !== id) return;
  shown = stack.at(-1) ?? "";
  if (shown) openView(shown);
  else byId("modal").close();
}

function dismiss() {
  const id = shown;
  viewClosed(id);
  if (id) act("dismiss", { view_id: id }).catch((failure) => toast(failure.message));
}

export function forgetViews() {
  stack = [];
  shown = "";
  if (byId("modal").open) byId("modal").close();
}

export function watchModal() {
  const dialog = byId("modal");
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    dismiss();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dismiss();
  });
}
