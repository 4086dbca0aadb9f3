// An import with its progress: first of the upload, then of what is kept.

const form = document.getElementById("import");
const file = document.getElementById("file");
const bar = document.getElementById("progress");
const step = document.getElementById("step");
const result = document.getElementById("result");
const going = document.getElementById("going");
const button = form.querySelector("button");

form.addEventListener("submit", (e) => {
  e.preventDefault();
  const chosen = file.files[0];
  if (!chosen) return;
  if (chosen.size > Number(form.dataset.most) * 1024 * 1024) {
    fault("The file is larger than " + form.dataset.most + " MiB.", "Import it with graphiti-proxy memory import.");
    return;
  }
  send(chosen);
});

function send(chosen) {
  const body = new FormData();
  body.append("file", chosen, "upload"); // its name says something of whoever chose it
  const call = new XMLHttpRequest();
  call.open("POST", form.action);
  call.setRequestHeader("Accept", "application/jsonl");
  call.upload.addEventListener("progress", (e) => {
    if (!e.lengthComputable) return;
    bar.value = (100 * e.loaded) / e.total;
    step.textContent = "Sending, " + Math.round(bar.value) + " %";
  });
  call.upload.addEventListener("load", () => {
    bar.removeAttribute("value");
    step.textContent = "Importing";
  });
  let seen = 0;
  const read = () => {
    const end = call.responseText.lastIndexOf("\n") + 1;
    const lines = call.responseText.slice(seen, end).split("\n");
    seen = end;
    for (const line of lines) if (line) said(JSON.parse(line));
  };
  let done = false;
  const said = (s) => {
    if (!s.done) {
      step.textContent = count(s.lines, "message");
      return;
    }
    done = true;
    if (s.error) fault(s.error, s.remedy, s.lines);
    else good(s);
  };
  call.addEventListener("progress", () => call.status === 200 && read());
  call.addEventListener("loadend", () => {
    button.disabled = false;
    going.hidden = true;
    bar.value = 0;
    step.textContent = "";
    try {
      if (call.status === 200) read();
    } catch {
      // what came is no answer of ours
    }
    if (!done) fault(call.status === 403 ? "The proxy rejected the import from this page." : "The import did not finish.", "Reload the page and import the file again: each message is stored once.");
  });
  result.replaceChildren();
  button.disabled = true;
  going.hidden = false;
  step.textContent = "Sending";
  call.send(body);
}

function count(n, one) {
  return n.toLocaleString() + " " + one + (n === 1 ? "" : "s");
}

function paragraph(text, of) {
  const p = document.createElement("p");
  if (of) p.className = of;
  p.textContent = text;
  return p;
}

function good(s) {
  result.replaceChildren(...s.says.map((line) => paragraph(line, "notice")));
  form.reset();
}

function fault(says, remedy, lines) {
  const box = document.createElement("div");
  box.className = "fault";
  box.append(paragraph(says));
  if (remedy) box.append(paragraph("To do: " + remedy, "todo"));
  if (lines) box.append(paragraph(count(lines, "message") + " imported before the failure. Import the file again to continue: each message is stored once."));
  result.replaceChildren(box);
}
