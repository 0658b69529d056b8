// The page's side of /ui: requests, and a socket that comes back after every break and misses nothing.

const REFUSALS = {
  timeout: "Orion did not answer in time.",
  http_timeout: "Orion did not answer in time.",
  connection_failed: "Orion is not connected at the moment.",
  http_error: "Orion answered with an error.",
  cant_update_message: "Only your own messages can be changed.",
  invalid_file: "This file could not be read.",
};

// Who this tab is; nobody means the visitor.
export const as = { user: sessionStorage.getItem("user") ?? "" };

function asked(path) {
  return as.user ? `${path}${path.includes("?") ? "&" : "?"}user=${as.user}` : path;
}

export async function get(path) {
  const answer = await fetch(asked(path), { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer.json();
}

export async function act(name, body) {
  let answer;
  try {
    answer = await fetch(`/ui/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ...body, user: as.user }),
    });
  } catch {
    throw new Error("The workspace cannot be reached. Is it still running?");
  }
  const result = await answer.json().catch(() => ({ ok: false, error: "bad_answer" }));
  if (!result.ok) throw new Error(REFUSALS[result.error] ?? `That did not work (${result.error}).`);
  return result;
}

export class Live {
  constructor({ onUpdate, onReset, onState }) {
    this.onUpdate = onUpdate;
    this.onReset = onReset;
    this.onState = onState;
    this.run = "";
    this.seq = 0;
    this.tries = 0;
  }

  start(run, seq) {
    this.run = run;
    this.seq = seq;
    this.connect();
  }

  connect() {
    clearTimeout(this.timer);
    this.socket?.close();
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(asked(`${scheme}://${location.host}/ui/live?run=${this.run}&since=${this.seq}`));
    this.socket = socket;
    socket.addEventListener("open", () => {
      this.tries = 0;
      this.onState(true);
    });
    socket.addEventListener("message", (event) => this.receive(JSON.parse(event.data)));
    socket.addEventListener("close", () => {
      if (socket !== this.socket) return;
      this.onState(false);
      this.tries += 1;
      this.timer = setTimeout(() => this.connect(), Math.min(5000, 150 * 2 ** Math.min(this.tries, 5)));
    });
  }

  receive(update) {
    if (update.type === "reset") {
      this.onReset();
      return;
    }
    if (update.seq <= this.seq) return;
    this.seq = update.seq;
    this.onUpdate(update);
  }
}
