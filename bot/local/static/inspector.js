// How an answer was made: attempts with repairs and violations, timings, sources, usage.
import { el } from "./dom.js";

const OUTCOMES = {
  answered: ["ok", "Answered"], partial: ["warn", "Partly answered"], unsourced: ["warn", "Not from documents"], asked: ["", "Asked back"],
  refused: ["warn", "Refused"], failed: ["bad", "Failed verification"], out_of_budget: ["bad", "Out of budget"], cancelled: ["", "Cancelled"],
};

const plain = (name) => String(name).replaceAll("_", " ");
const ms = (value) => (value >= 1000 ? `${(value / 1000).toFixed(2)} s` : `${value < 10 ? Number(value).toFixed(1) : Math.round(value)} ms`);

function violation(one) {
  return el(
    "div", { class: `violation ${one.severity}` },
    el("p", {}, el("code", {}, one.rule), ` ${one.severity}`),
    one.words && el("p", {}, el("q", {}, one.words)),
    one.detail && el("p", {}, one.detail),
    one.remedy && el("p", { class: "remedy" }, one.remedy),
  );
}

function attempt(one, last) {
  const inside = el("div", { class: "inside" });
  if (one.repairs?.length) inside.append(el("div", { class: "chips", "aria-label": "Repairs" }, ...one.repairs.map((repair) => el("span", { class: "chip" }, `repaired ${plain(repair.kind)}${repair.count > 1 ? ` × ${repair.count}` : ""}`))));
  inside.append(...(one.violations ?? []).map(violation));
  if (!one.repairs?.length && !one.violations?.length) inside.append(el("div", { class: "muted" }, "Nothing to repair, nothing to object to."));
  if (one.draft) inside.append(el("details", { open: !one.passed || !last }, el("summary", {}, "Draft as it was written"), el("div", { class: "draft" }, one.draft)));
  return el(
    "section", { class: "attempt", "aria-label": `Attempt ${one.attempt}` },
    el("header", {}, `Attempt ${one.attempt}`, el("span", { class: `pill ${one.passed ? "ok" : "bad"}` }, one.passed ? "passed" : "failed"), el("span", { class: "ms" }, one.ms === undefined ? "" : ms(one.ms))),
    inside,
  );
}

function timings(values) {
  const entries = Object.entries(values ?? {}).filter(([, value]) => typeof value === "number");
  const most = Math.max(1, ...entries.map(([, value]) => value));
  const grid = el("div", { class: "bars" });
  for (const [name, value] of entries) {
    const bar = el("i");
    bar.style.width = `${(100 * value) / most}%`;
    grid.append(el("span", {}, plain(name)), el("span", { class: "track", "aria-hidden": "true" }, bar), el("span", {}, ms(value)));
  }
  return grid;
}

function source(one) {
  const title = one.title || one.url || `Source ${one.id}`;
  const link = /^(https?:\/\/|\/)/.test(one.url ?? "") ? el("a", { href: one.url, target: "_blank", rel: "noopener noreferrer" }, title) : title;
  const age = one.updated_at ? new Date(one.updated_at) : null;
  return el("li", { value: String(one.id) }, link, age && !Number.isNaN(age.getTime()) && el("span", { class: "muted" }, ` updated ${age.toLocaleDateString()}`));
}

function usage(values, model) {
  const facts = [["model", model], ...Object.entries(values ?? {}).map(([name, value]) => [plain(name), typeof value === "number" ? value.toLocaleString() : String(value)])];
  const list = el("dl", { class: "facts" });
  for (const [name, value] of facts) if (value !== undefined && value !== "") list.append(el("dt", {}, name), el("dd", {}, value));
  return list;
}

// The same order as in "Why trust this?": one claim that was not checked a second time decides.
function checked(record) {
  const checkers = new Set((record.claims ?? []).map((claim) => claim.settled_by));
  if (!record.verified) return ["", "Not verified"];
  if (checkers.has("nobody")) return ["warn", "Checked by rules only"];
  if (!record.sources?.length) return ["", "No claims"];
  return ["ok", record.usage?.model_calls ? "Verified" : "Quoted"];
}

function attemptsTitle(count) {
  if (count === 0) return "No draft";
  return count === 1 ? "1 attempt" : `${count} attempts`;
}

export function renderRecord(record) {
  const [tone, outcome] = OUTCOMES[record.outcome] ?? ["", plain(record.outcome ?? "unknown")];
  const [mark, verdict] = checked(record);
  const parts = [
    el("div", { class: "verdict" }, el("span", { class: `pill ${tone}` }, outcome), el("span", { class: `pill ${mark}` }, verdict)),
    record.question && el("p", { class: "question" }, record.question),
    el("h2", {}, attemptsTitle(record.attempts?.length ?? 0)),
    !record.attempts?.length && el("p", { class: "muted" }, "This turn ended before an answer was drafted."),
    ...(record.attempts ?? []).map((one, index, all) => attempt(one, index === all.length - 1)),
    el("h2", {}, "Time"), timings(record.timings_ms),
  ];
  if (record.sources?.length) parts.push(el("h2", {}, "Sources"), el("ol", { class: "sources" }, ...record.sources.map(source)));
  parts.push(el("h2", {}, "Usage"), usage(record.usage, record.usage?.model_calls ? record.model : "none: passages are quoted"));
  return parts.filter(Boolean);
}
