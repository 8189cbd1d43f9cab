// Shows /openapi.json: each endpoint with its fields and answers.

const docs = document.getElementById("docs");

function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function table(caption, titles, rows) {
  const made = element("table");
  made.append(element("caption", caption));
  const head = made.createTHead().insertRow();
  for (const title of titles) head.append(Object.assign(element("th", title), { scope: "col" }));
  const body = made.createTBody();
  for (const cells of rows) {
    const line = body.insertRow();
    cells.forEach((cell, place) => {
      const made = line.insertCell();
      made.append(place === 0 ? element("code", cell) : cell);
    });
  }
  return made;
}

class Description {
  #document;

  constructor(document) {
    this.#document = document;
  }

  show() {
    const { info, paths } = this.#document;
    docs.append(element("p", `${info.title} ${info.version}. ${info.description}`));
    for (const [path, methods] of Object.entries(paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        if (method !== "head") docs.append(this.#operation(path, method, operation));
      }
    }
  }

  #resolve(part) {
    if (!part?.$ref) return part;
    return part.$ref.slice(2).split("/").reduce((at, name) => at[name], this.#document);
  }

  #operation(path, method, operation) {
    const section = element("section");
    const title = element("h2");
    title.append(element("code", `${method.toUpperCase()} ${path}`));
    section.append(title, element("p", operation.summary));
    if (operation.description) section.append(element("p", operation.description));
    const parameters = (operation.parameters ?? []).map((one) => this.#resolve(one));
    if (parameters.length > 0) section.append(this.#parameters(parameters));
    const schema = this.#resolve(operation.requestBody?.content?.["application/json"]?.schema);
    if (schema) section.append(this.#fields(schema, "Fields of the body"));
    for (const [part, caption] of [["x-frames-to-server", "Frames to the server"], ["x-frames-to-client", "Frames to the client"]]) {
      if (operation[part]) section.append(this.#fields(this.#resolve(operation[part]), caption));
    }
    const answers = Object.entries(operation.responses).map(([status, one]) => [status, this.#resolve(one).description]);
    section.append(table("Answers", ["Status", "When"], answers));
    return section;
  }

  #parameters(parameters) {
    const rows = parameters.map((one) => [one.name, one.in, this.#values(one.schema), one.description ?? ""]);
    return table("Beside the body", ["Name", "Where", "Values", "Meaning"], rows);
  }

  #fields(schema, caption) {
    const rows = this.#properties(schema).map(([name, one, required]) => {
      const field = this.#resolve(one);
      return [name, required ? "required" : "", this.#values(field), field.description ?? one.description ?? ""];
    });
    return table(caption, ["Field", "", "Values", "Meaning"], rows);
  }

  #properties(schema) {
    const parts = [schema, ...(schema.allOf ?? [])].map((part) => this.#resolve(part));
    return parts.flatMap((part) => Object.entries(part.properties ?? {})
      .map(([name, one]) => [name, one, (part.required ?? []).includes(name)]));
  }

  #values(schema) {
    const one = this.#resolve(schema);
    const choices = one.oneOf ?? one.anyOf;
    if (choices) return choices.map((choice) => this.#values(choice)).filter((text) => text !== "null").join(" or ");
    if (one.enum) return one.enum.map((value) => JSON.stringify(value)).join(", ");
    if (one.const !== undefined) return JSON.stringify(one.const);
    const type = [one.type ?? "any"].flat().filter((name) => name !== "null").join(" or ");
    if (type === "array") return `list of ${this.#values(one.items ?? {})}`;
    const low = one.minimum ?? (one.exclusiveMinimum !== undefined ? `above ${one.exclusiveMinimum}` : undefined);
    const range = low !== undefined || one.maximum !== undefined ? ` ${low ?? ""} … ${one.maximum ?? ""}` : "";
    return type + range + (one.default !== undefined ? `, else ${JSON.stringify(one.default)}` : "");
  }
}

try {
  const answer = await fetch("/openapi.json");
  new Description(await answer.json()).show();
} catch {
  docs.append(element("p", "The description could not be loaded; reload the page.", "problem"));
}
