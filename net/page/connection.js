// One WebSocket for all requests of the page, opened when the first one is sent. The server cannot be told a key in a
// header by a page, so it travels as a subprotocol.

const SUBPROTOCOL = "tandem";
const KEY_SUBPROTOCOL = "api-key.";

function base64url(text) {
  const bytes = new TextEncoder().encode(text);
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function headers(key) {
  return key ? { Authorization: `Bearer ${key}` } : {};
}

// Why the server did not take a connection: a browser does not say.
async function reason(key) {
  try {
    const answer = await fetch("/v1/models", { headers: headers(key) });
    if (answer.ok) return "The connection to the server was lost; send it again.";
    return (await answer.json()).error.message;
  } catch {
    return "The server cannot be reached.";
  }
}

export class Connection {
  #socket = null;
  #running = new Map(); // id → what hears of its frames
  #lastId = 0;
  #key = "";

  set key(key) {
    if (key === this.#key) return;
    this.#key = key;
    this.#socket?.close();
  }

  // `hear` gets each frame, the last one with `usage` or `error`. Returns what cancels the request.
  request(fields, hear) {
    const id = String(++this.#lastId);
    this.#running.set(id, hear);
    this.#send({ id, ...fields });
    return () => this.#running.has(id) && this.#send({ id, cancel: true });
  }

  #send(frame) {
    const socket = this.#open();
    const text = JSON.stringify(frame);
    if (socket.readyState === WebSocket.OPEN) socket.send(text);
    else socket.addEventListener("open", () => socket.send(text), { once: true });
  }

  #open() {
    if (this.#socket) return this.#socket;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const protocols = [SUBPROTOCOL];
    if (this.#key) protocols.push(KEY_SUBPROTOCOL + base64url(this.#key));
    const socket = new WebSocket(`${scheme}//${location.host}/ws`, protocols);
    socket.addEventListener("message", (event) => this.#hear(JSON.parse(event.data)));
    socket.addEventListener("close", () => this.#lose(socket));
    this.#socket = socket;
    return socket;
  }

  #hear(frame) {
    const hear = this.#running.get(String(frame.id));
    if (frame.usage || frame.error) this.#running.delete(String(frame.id));
    hear?.(frame);
  }

  async #lose(socket) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    const lost = [...this.#running.values()];
    this.#running.clear();
    if (lost.length === 0) return;
    const message = await reason(this.#key);
    for (const hear of lost) hear({ error: { message } });
  }
}
