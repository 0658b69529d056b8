// Marks the cited part: a heading with all up to the next heading, or lines L3 to L9 of a plain text.
const HEADING = /^H[1-6]$/;

function section(heading) {
  const parts = [heading];
  for (let next = heading.nextElementSibling; next && !HEADING.test(next.tagName); next = next.nextElementSibling) parts.push(next);
  return parts;
}

function lines(first, last) {
  const rows = [];
  for (let number = first; number <= last; number += 1) {
    const row = document.getElementById(`L${number}`);
    if (row) rows.push(row);
  }
  return rows;
}

function cited() {
  const anchor = decodeURIComponent(location.hash.slice(1));
  const range = /^L(\d+)(?:-L?(\d+))?$/.exec(anchor);
  if (range) return lines(Number(range[1]), Math.min(Number(range[2] ?? range[1]), Number(range[1]) + 5000));
  const target = anchor && document.getElementById(anchor);
  if (!target) return [];
  const heading = target.closest("h1,h2,h3,h4,h5,h6");
  return heading ? section(heading) : [target];
}

function unmark() {
  for (const old of document.querySelectorAll(".cited")) old.replaceWith(...old.childNodes);
}

function mark() {
  unmark();
  const parts = cited();
  if (!parts.length) return;
  const frame = document.createElement("div");
  frame.className = "cited";
  parts[0].before(frame);
  frame.append(...parts);
  frame.scrollIntoView({ block: "start" });
}

// A table or code that is wider than the page scrolls: by keyboard, too.
for (const node of document.querySelectorAll("main table, main pre:not(.plain)")) {
  const wrap = document.createElement("div");
  Object.assign(wrap, { className: "table-wrap", tabIndex: 0, role: "region", ariaLabel: node.matches("pre") ? "Code" : "Table" });
  node.replaceWith(wrap);
  wrap.append(node);
}
addEventListener("hashchange", mark);
mark();
