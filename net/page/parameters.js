// The form of parameters → fields of a request. What is empty is left out.

const WHOLE = ["max_tokens", "top_k", "seed"];
const REAL = ["temperature", "top_p", "min_p", "repetition_penalty"];

export class Parameters {
  #form;

  constructor(form) {
    this.#form = form;
  }

  get system() {
    return this.#value("system");
  }

  fields() {
    const fields = {};
    if (this.#value("model")) fields.model = this.#value("model");
    for (const name of [...WHOLE, ...REAL]) {
      const value = this.#value(name);
      if (value !== "") fields[name] = Number(value);
    }
    if (this.#value("stop")) fields.stop = this.#value("stop");
    const speculative = this.#speculative();
    if (speculative) fields.speculative = speculative;
    return fields;
  }

  // False, with the browser's own message, while a field holds what the server would refuse.
  check() {
    return this.#form.reportValidity();
  }

  offerModels(names) {
    this.#offer("model", names.map((name) => [name, name]));
  }

  offerMethods(names, most) {
    this.#offer("method", [["", "the server's default"], ...names.map((name) => [name, name])]);
    this.#form.elements.num_speculative_tokens.max = most;
  }

  #speculative() {
    const method = this.#value("method");
    const number = this.#value("num_speculative_tokens");
    if (!method && number === "") return null;
    const speculative = {};
    if (method) speculative.method = method;
    if (number !== "") speculative.num_speculative_tokens = Number(number);
    return speculative;
  }

  #value(name) {
    return this.#form.elements[name].value;
  }

  #offer(name, choices) {
    const select = this.#form.elements[name];
    const chosen = select.value;
    select.replaceChildren(...choices.map(([value, text]) => new Option(text, value)));
    if (choices.some(([value]) => value === chosen)) select.value = chosen;
  }
}
