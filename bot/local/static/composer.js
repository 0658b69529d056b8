// The message box: Enter sends, Shift+Enter breaks the line, @ offers people, # offers channels.
import { announce, avatar, el } from "./dom.js";

let serial = 0;

export class Composer {
  constructor(slot, { id, label, candidates, send, editLast, upload }) {
    this.upload = upload;
    this.files = [];
    this.candidates = candidates;
    this.send = send;
    this.editLast = editLast;
    this.drafts = new Map();
    this.place = "";
    serial += 1;
    this.list = el("ul", { class: "suggest", id: `suggest-${serial}`, role: "listbox", "aria-label": "People and channels", hidden: true });
    this.input = el("textarea", {
      id, rows: "1", "aria-label": label, placeholder: label, autocomplete: "off", spellcheck: "true",
      "aria-autocomplete": "list", "aria-controls": this.list.id,
    });
    this.button = el("button", { type: "submit", class: "send", "aria-label": "Send", disabled: true }, "➤");
    this.picker = el("input", { type: "file", multiple: true, hidden: true, "aria-hidden": "true", tabindex: "-1", onchange: () => this.attach() });
    const attach = el("button", { type: "button", class: "attach", "aria-label": "Attach a file", onclick: () => this.picker.click() }, "+");
    const form = el("form", { class: "composer" }, attach, this.input, this.button, this.picker);
    this.shelf = el("ul", { class: "attached", "aria-label": "Attached files", hidden: true });
    slot.append(this.list, this.shelf, form, el("p", { class: "hint" }, "Enter to send, Shift + Enter for a new line"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.input.addEventListener("input", () => this.changed());
    this.input.addEventListener("click", () => this.suggest());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.hide(), 120));
    this.matches = [];
    this.chosen = 0;
  }

  show(place, label) {
    if (this.place !== place) {
      this.drafts.set(this.place, this.input.value);
      this.input.value = this.drafts.get(place) ?? "";
      this.place = place;
    }
    this.input.placeholder = label;
    this.input.setAttribute("aria-label", label);
    this.hide();
    this.fit();
  }

  insert(text) {
    this.input.value = text;
    this.changed();
    this.input.focus();
  }

  async attach() {
    for (const file of this.picker.files) {
      try {
        this.files.push({ id: await this.upload(file), name: file.name });
        announce(`${file.name} is attached`);
      } catch (failure) {
        dispatchEvent(new CustomEvent("failure", { detail: failure }));
      }
    }
    this.picker.value = "";
    this.showFiles();
    this.input.focus();
  }

  showFiles() {
    const drop = (file) => {
      this.files = this.files.filter((one) => one !== file);
      this.showFiles();
    };
    this.shelf.hidden = !this.files.length;
    this.shelf.replaceChildren(...this.files.map((file) => el("li", {}, file.name, el("button", { type: "button", "aria-label": `Remove ${file.name}`, onclick: () => drop(file) }, "✕"))));
    this.fit();
  }

  async submit() {
    const text = this.input.value.trim();
    const files = this.files;
    if (!(text || files.length)) return;
    this.input.value = "";
    this.files = [];
    this.showFiles();
    this.changed();
    try {
      await this.send(text, files.map((one) => one.id));
    } catch (failure) {
      this.input.value = [text, this.input.value].filter(Boolean).join("\n"); // with what was written meanwhile
      this.files = [...files, ...this.files];
      this.showFiles();
      this.changed();
      throw failure;
    }
  }

  changed() {
    this.fit();
    this.suggest();
  }

  fit() {
    this.input.style.height = "auto";
    this.input.style.height = `${this.input.scrollHeight}px`;
    this.button.disabled = !(this.input.value.trim() || this.files.length);
  }

  word() {
    const before = this.input.value.slice(0, this.input.selectionStart);
    return /(?:^|[\s(])([@#])([^\s@#][^@#\n]{0,30}|)$/.exec(before);
  }

  suggest() {
    const found = this.word();
    const wanted = found?.[2].toLowerCase() ?? "";
    this.matches = found ? this.candidates(found[1]).filter((one) => one.name.toLowerCase().startsWith(wanted) && one.name.toLowerCase() !== wanted) : [];
    if (!this.matches.length) {
      this.hide();
      return;
    }
    this.sign = found[1];
    this.choose(0);
    this.list.hidden = false;
  }

  choose(index) {
    this.chosen = (index + this.matches.length) % this.matches.length;
    this.list.replaceChildren(
      ...this.matches.map((one, number) =>
        el(
          "li",
          { role: "option", id: `${this.list.id}-${number}`, "aria-selected": String(number === this.chosen), onmousedown: (event) => {
            event.preventDefault();
            this.take(one);
          } },
          this.sign === "@" ? avatar(one) : el("span", {}, "#"), one.name, one.title && el("span", { class: "muted" }, one.title),
        ),
      ),
    );
    this.input.setAttribute("aria-activedescendant", `${this.list.id}-${this.chosen}`);
  }

  take(one) {
    const found = this.word();
    if (!found) return;
    const caret = this.input.selectionStart;
    const start = caret - found[2].length;
    this.input.setRangeText(`${one.name} `, start, caret, "end");
    this.hide();
    this.fit();
    this.input.focus();
  }

  hide() {
    this.list.hidden = true;
    this.input.removeAttribute("aria-activedescendant");
  }

  key(event) {
    if (event.isComposing) return;
    if (!this.list.hidden && this.listKey(event)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit().catch((failure) => dispatchEvent(new CustomEvent("failure", { detail: failure })));
    } else if (event.key === "ArrowUp" && !this.input.value) {
      event.preventDefault();
      this.editLast();
    }
  }

  listKey(event) {
    switch (event.key) {
      case "ArrowDown":
        this.choose(this.chosen + 1);
        return true;
      case "ArrowUp":
        this.choose(this.chosen - 1);
        return true;
      case "Enter":
      case "Tab":
        this.take(this.matches[this.chosen]);
        return true;
      case "Escape":
        this.hide();
        return true;
      default:
        return false;
    }
  }
}
