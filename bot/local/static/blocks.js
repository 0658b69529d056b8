// Block Kit as DOM. Every html field was made safe by the server.
import { el, toast } from "./dom.js";

const rich = (html, tag = "div") => el(tag, { class: "rich", html });

async function press(node, run) {
  if (node.getAttribute("aria-busy") === "true") return;
  node.setAttribute("aria-busy", "true");
  try {
    await run();
  } catch (failure) {
    toast(failure.message);
  } finally {
    node.removeAttribute("aria-busy");
  }
}

// What the element's `confirm` asks, as a dialog: true once it was agreed to.
export function confirmed(asked) {
  if (!asked) return Promise.resolve(true);
  return new Promise((resolve) => {
    const dialog = el("dialog", { class: "modal", "aria-label": asked.title });
    const choice = (text, answer, tone) => el("button", { type: "button", class: `btn${tone}`, onclick: () => dialog.close(answer) }, text);
    dialog.append(
      el("header", { class: "bar" }, el("div", { class: "bar-text" }, el("h2", {}, asked.title))),
      el("div", { class: "modal-body" }, asked.text),
      el("div", { class: "modal-foot" }, choice(asked.deny || "Cancel", "", ""), choice(asked.confirm || "Yes", "yes", " primary")),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

function button(element, block, click) {
  const tone = element.style === "primary" ? " primary" : element.style === "danger" ? " danger" : "";
  const node = element.url
    ? el("a", { class: `btn${tone}`, href: /^https?:/.test(element.url) ? element.url : null, target: "_blank", rel: "noopener noreferrer" }, element.text)
    : el("button", { type: "button", class: `btn${tone}` }, element.text);
  node.addEventListener("click", () => press(node, async () => (await confirmed(element.confirm)) && click(element, block)));
  return node;
}

function element(given, block, click) {
  if (given.type === "text") return rich(given.html, "span");
  if (given.type === "button") return button(given, block, click);
  return el("span", { class: "muted" }, given.text || given.type);
}

// As Slack says it of an input that may be left empty.
const labelOf = (block) => `${block.label}${block.optional ? " (optional)" : ""}`;

function choices(block, given) {
  const boxes = given.options.map((one) => el("label", { class: "choice" }, el("input", { type: "checkbox", value: one.value }), el("span", {}, one.text)));
  return el("fieldset", { class: "field", "data-block": block.block_id, "data-type": given.type, name: given.action_id }, el("legend", { html: labelOf(block) }), ...boxes);
}

function field(block) {
  const given = block.element;
  const attributes = { name: given.action_id, "data-block": block.block_id, "data-type": given.type, placeholder: given.placeholder, required: !block.optional };
  let control;
  if (given.type === "checkboxes") return choices(block, given);
  if (given.type === "plain_text_input" && given.multiline) control = el("textarea", { ...attributes, rows: 4 }, given.initial);
  else if (given.options) control = el("select", attributes, ...given.options.map((one) => el("option", { value: one.value, selected: one.value === given.initial }, one.text)));
  else control = el("input", { ...attributes, type: given.type === "datepicker" ? "date" : "text", value: given.initial });
  return el("label", { class: "field", "data-block": block.block_id }, el("span", { html: labelOf(block) }), control);
}

function tableBlock(block) {
  const line = (tag, row) => el("tr", {}, ...row.map((html) => el(tag, { class: "rich", html, scope: tag === "th" ? "col" : null })));
  const [head, ...rows] = block.rows;
  return el("div", { class: "table-wrap table-block", tabindex: "0", role: "region", "aria-label": "Table" }, el("table", {}, el("thead", {}, line("th", head)), el("tbody", {}, ...rows.map((row) => line("td", row)))));
}

function withTables(node) {
  for (const table of node.querySelectorAll("table")) {
    const wrap = el("div", { class: "table-wrap", tabindex: "0", role: "region", "aria-label": "Table" });
    table.replaceWith(wrap);
    wrap.append(table);
  }
  return node;
}

export function renderBlock(block, click) {
  switch (block.type) {
    case "header":
      return el("div", { class: "block block-header", role: "heading", "aria-level": "3", html: block.html });
    case "divider":
      return el("hr", { class: "block-divider" });
    case "section":
      return el("div", { class: "block block-section" }, rich(block.html), block.accessory && element(block.accessory, block, click));
    case "context":
      return el("div", { class: "block block-context" }, ...block.elements.map((one) => element(one, block, click)));
    case "actions":
      return el("div", { class: "block block-actions" }, ...block.elements.map((one) => element(one, block, click)));
    case "table":
      return tableBlock(block);
    case "input":
      return field(block);
    case "task_card":
      return el("div", { class: "block plan" }, el("div", { class: `task ${block.status}` }, block.title, el("span", { class: "visually-hidden" }, ` (${block.status.replace("_", " ")})`)));
    default:
      return block.html ? withTables(el("div", { class: "block rich", html: block.html })) : el("span");
  }
}
