// The live view of the batch, from GET /v1/batch: asked now and then while the page can be seen.
import { headers } from "/page/connection.js";

const PERIOD_MS = 500;
const byId = (id) => document.getElementById(id);

// Of one step: by method, how many sequences drafted, the mean k, and how many of the drafts were accepted.
function byMethod(step) {
  const methods = new Map();
  for (const one of step.sequences) {
    const sum = methods.get(one.method) ?? { sequences: 0, k: 0, drafted: 0, accepted: 0 };
    sum.sequences += 1;
    sum.k += one.k;
    sum.drafted += one.draft_n;
    sum.accepted += one.draft_n_accepted;
    methods.set(one.method, sum);
  }
  const rows = [...methods].map(([method, sum]) => [method, sum.sequences, (sum.k / sum.sequences).toFixed(1),
    `${sum.accepted} of ${sum.drafted}`]);
  if (step.undrafted > 0) rows.push(["none", step.undrafted, "0", "–"]);
  return rows;
}

function row(cells) {
  const made = document.createElement("tr");
  made.append(...cells.map((cell) => Object.assign(document.createElement("td"), { textContent: cell })));
  return made;
}

// A filled square is an accepted draft, an empty one a draft that was not, a dot a place that nobody filled.
function sequenceItem(one) {
  const item = document.createElement("li");
  const accepted = document.createElement("b");
  accepted.textContent = "■".repeat(one.draft_n_accepted);
  item.append(accepted, "□".repeat(one.draft_n - one.draft_n_accepted) + "·".repeat(Math.max(0, one.k - one.draft_n)));
  item.title = `${one.method}, k ${one.k}: ${one.draft_n_accepted} of ${one.draft_n} drafts accepted`;
  item.setAttribute("aria-label", item.title);
  return item;
}

export class BatchView {
  #keyOf;
  #onMethods;
  #before = null; // { at, tokens } of the last look

  constructor(keyOf, onMethods) {
    this.#keyOf = keyOf;
    this.#onMethods = onMethods;
  }

  async watch() {
    for (;;) {
      if (document.visibilityState === "visible") await this.#look();
      await new Promise((wake) => setTimeout(wake, PERIOD_MS));
    }
  }

  async #look() {
    try {
      const answer = await fetch("/v1/batch", { headers: headers(this.#keyOf()) });
      const body = await answer.json();
      if (!answer.ok) return this.#say(body.error.message);
      this.#say("Ready");
      this.#show(body);
    } catch {
      this.#say("The server cannot be reached.");
    }
  }

  #say(text) {
    if (byId("status").textContent !== text) byId("status").textContent = text;
  }

  #show(batch) {
    this.#onMethods(batch.methods, batch.max_speculative_tokens);
    byId("running").textContent = batch.running;
    byId("waiting").textContent = batch.waiting;
    byId("rate").textContent = this.#rate(batch.totals.generation_tokens);
    byId("rows").textContent = batch.last_step?.rows ?? "–";
    const { used, total } = batch.kv_blocks;
    byId("kv-text").textContent = `${used} of ${total} in use`;
    byId("kv").max = total;
    byId("kv").value = used;
    const step = batch.last_step;
    byId("methods").tBodies[0].replaceChildren(...(step ? byMethod(step).map(row) : []));
    byId("sequences").replaceChildren(...(step ? step.sequences.map(sequenceItem) : []));
  }

  #rate(tokens) {
    const at = performance.now();
    const before = this.#before;
    this.#before = { at, tokens };
    if (!before || tokens < before.tokens) return "–";
    return (((tokens - before.tokens) * 1000) / (at - before.at)).toFixed(1);
  }
}
