// An answer as it grows. A model's words only ever become text nodes.

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

// A question or an answer in the log: its title, and where its text goes.
export function addTurn(log, title, text = "") {
  const turn = element("article", "turn");
  const body = element("p", "text", text);
  turn.append(element("h3", "", title), body);
  log.append(turn);
  return { turn, body };
}

export class Answer {
  text = "";
  #turn;
  #body;
  #figures = element("p", "figures-line");
  #log;
  #sent = performance.now();
  #first = 0;
  #last = 0;
  #tokens = 0;

  constructor(log, title) {
    const { turn, body } = addTurn(log, title);
    this.#turn = turn;
    this.#body = body;
    this.#log = log;
    turn.setAttribute("aria-busy", "true"); // read out when it is whole
    turn.append(this.#figures);
  }

  take(frame) {
    if (frame.error) return this.#fail(frame.error.message);
    const follow = this.#log.scrollHeight - this.#log.scrollTop - this.#log.clientHeight < 40;
    this.#count(frame.token_ids.length);
    this.#append(frame.text, frame.drafts ?? []);
    this.#showFigures(frame);
    if (frame.usage) this.#turn.removeAttribute("aria-busy");
    if (follow) this.#log.scrollTop = this.#log.scrollHeight;
  }

  // `drafts` are [begin, end) in characters, not in UTF-16 units.
  #append(text, drafts) {
    this.text += text;
    const characters = Array.from(text);
    let at = 0;
    for (const [begin, end] of drafts) {
      this.#grow(characters.slice(at, begin).join(""), false);
      this.#grow(characters.slice(begin, end).join(""), true);
      at = end;
    }
    this.#grow(characters.slice(at).join(""), false);
  }

  #grow(text, drafted) {
    if (!text) return;
    const last = this.#body.lastChild;
    if (last && (last.nodeName === "MARK") === drafted) {
      (drafted ? last.firstChild : last).appendData(text);
    } else {
      this.#body.append(drafted ? element("mark", "draft", text) : document.createTextNode(text));
    }
  }

  #count(tokens) {
    if (tokens === 0) return;
    this.#last = performance.now();
    if (this.#tokens === 0) this.#first = this.#last;
    this.#tokens += tokens;
  }

  #showFigures(frame) {
    const parts = [`${this.#tokens} tokens`];
    if (this.#tokens > 0) parts.push(`first after ${((this.#first - this.#sent) / 1000).toFixed(2)} s`);
    if (this.#last > this.#first) {
      parts.push(`${(((this.#tokens - 1) * 1000) / (this.#last - this.#first)).toFixed(1)} tokens/s`);
    }
    if (frame.timings?.draft_n) parts.push(`${frame.timings.draft_n_accepted} of ${frame.timings.draft_n} drafts accepted`);
    if (frame.usage) parts.push(`ended: ${frame.finish_reason}`);
    this.#figures.textContent = parts.join(" · ");
  }

  #fail(message) {
    this.#turn.removeAttribute("aria-busy");
    this.#turn.append(element("p", "problem", message));
    this.#log.scrollTop = this.#log.scrollHeight;
  }
}
