// The message box: Enter sends, Shift+Enter breaks the line, @ offers people, # offers channels.
import { avatar, el } from "./dom.js";

let serial = 0;

export class Composer {
  constructor(slot, { id, label, candidates, send, editLast }) {
    this.candidates = candidates;
    this.send = send;
    this.editLast = editLast;
    this.drafts = new Map();
    this.place = "";
    serial += 1;
    this.list = el("ul", { class: "suggest", id: `suggest-${serial}`, role: "listbox", "aria-label": "People and channels", hidden: true });
    this.input = el("textarea", {
      id, rows: "1", "aria-label": label, placeholder: label, role: "combobox", autocomplete: "off", spellcheck: "true",
      "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": this.list.id,
    });
    this.button = el("button", { type: "submit", class: "send", "aria-label": "Send", disabled: true }, "➤");
    const form = el("form", { class: "composer" }, this.input, this.button);
    slot.append(this.list, form, el("p", { class: "hint" }, "Enter to send, Shift + Enter for a new line"));
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

  async submit() {
    const text = this.input.value.trim();
    if (!text || this.sending) return;
    this.sending = true;
    this.input.value = "";
    this.changed();
    try {
      await this.send(text);
    } catch (failure) {
      this.input.value = text;
      this.changed();
      throw failure;
    } finally {
      this.sending = false;
    }
  }

  changed() {
    this.button.disabled = !this.input.value.trim();
    this.fit();
    this.suggest();
  }

  fit() {
    this.input.style.height = "auto";
    this.input.style.height = `${this.input.scrollHeight}px`;
    this.button.disabled = !this.input.value.trim();
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
    this.input.setAttribute("aria-expanded", "true");
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
    this.input.setAttribute("aria-expanded", "false");
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
