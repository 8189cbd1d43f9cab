// What the controls of the page do.
import { Answer, addTurn } from "/page/answer.js";
import { BatchView } from "/page/batch.js";
import { Connection, headers } from "/page/connection.js";
import { curlCommand, showCommand } from "/page/curl.js";
import { Parameters } from "/page/parameters.js";

const byId = (id) => document.getElementById(id);
const log = byId("log");
const input = byId("input");
const parameters = new Parameters(byId("parameters"));
const connection = new Connection();

let messages = []; // of the chat so far
let cancel = null; // of the answer under way

const mode = () => document.querySelector("input[name=mode]:checked").value;
const key = () => byId("key").value;

function requestFields(text) {
  if (mode() === "completion") return { prompt: text, ...parameters.fields() };
  const system = parameters.system ? [{ role: "system", content: parameters.system }] : [];
  return { messages: [...system, ...messages, { role: "user", content: text }], ...parameters.fields() };
}

function setRunning(running) {
  byId("send").disabled = running;
  byId("stop").disabled = !running;
}

function finish(chat, question, answer) {
  cancel = null;
  setRunning(false);
  if (chat && answer.text) messages.push({ role: "user", content: question }, { role: "assistant", content: answer.text });
}

function send() {
  const text = input.value;
  if (cancel || !text || !parameters.check()) return;
  const chat = mode() === "chat";
  const fields = requestFields(text);
  addTurn(log, chat ? "You" : "Prompt", text);
  const answer = new Answer(log, chat ? "Model" : "Completion");
  log.scrollTop = log.scrollHeight;
  setRunning(true);
  cancel = connection.request({ ...fields, include_drafts: true, include_timings: true }, (frame) => {
    answer.take(frame);
    if (frame.usage || frame.error) finish(chat, text, answer);
  });
  if (chat) input.value = "";
}

function startAgain() {
  cancel?.();
  messages = [];
  log.replaceChildren();
  input.focus();
}

async function loadModels() {
  try {
    const answer = await fetch("/v1/models", { headers: headers(key()) });
    if (!answer.ok) return false;
    const names = (await answer.json()).data.map((model) => model.id);
    parameters.offerModels(names);
    byId("model").textContent = names[0];
    return true;
  } catch {
    return false;
  }
}

function showTheme() {
  const set = document.documentElement.dataset.theme;
  const dark = set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  byId("theme").textContent = dark ? "Light" : "Dark";
  return dark;
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
input.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !byId("curl-dialog").open) cancel?.();
});
byId("stop").addEventListener("click", () => cancel?.());
byId("clear").addEventListener("click", startAgain);
byId("curl").addEventListener("click", () => {
  showCommand(byId("curl-dialog"), curlCommand(mode(), requestFields(input.value), key() !== ""));
});
byId("parameters").addEventListener("submit", (event) => event.preventDefault());
byId("key").addEventListener("change", () => {
  connection.key = key();
  loadModels();
});
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = showTheme() ? "light" : "dark";
  showTheme();
});

let methodsOffered = false;
const batch = new BatchView(key, (names, most) => {
  if (methodsOffered) return;
  methodsOffered = true;
  parameters.offerMethods(names, most);
  loadModels();
});
showTheme();
loadModels();
batch.watch();
