// The request as a command for a shell. The key is named, never written out.

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

export function curlCommand(mode, fields, hasKey) {
  const path = mode === "chat" ? "/v1/chat/completions" : "/v1/completions";
  const lines = [`curl -N ${location.origin}${path} -H 'Content-Type: application/json'`];
  if (hasKey) lines.push(`  -H "Authorization: Bearer $TANDEM_API_KEY"`);
  lines.push(`  -d ${quoted(JSON.stringify({ ...fields, stream: true }))}`);
  return lines.join(" \\\n") + "\n";
}

// A page that did not come over TLS or from this machine may not write to the clipboard: then the text is there to copy.
export async function showCommand(dialog, command) {
  const text = dialog.querySelector("textarea");
  const status = dialog.querySelector("[role=status]");
  text.value = command;
  status.textContent = "";
  dialog.showModal();
  text.select();
  try {
    await navigator.clipboard.writeText(command);
    status.textContent = "Copied.";
  } catch {
    status.textContent = "Press Ctrl+C to copy.";
  }
}
