// An import with the progress of its upload. The answer is the page with the result.

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
    fault("The file is larger than " + form.dataset.most + " MiB. Import it with graphiti-proxy memory import.");
    return;
  }
  send(chosen);
});

function send(chosen) {
  const body = new FormData();
  body.append("file", chosen, "upload"); // its name says something of whoever chose it
  const call = new XMLHttpRequest();
  call.open("POST", form.action);
  call.upload.addEventListener("progress", (e) => {
    if (!e.lengthComputable) return;
    bar.value = (100 * e.loaded) / e.total;
    step.textContent = "Sending, " + Math.round(bar.value) + " %";
  });
  call.upload.addEventListener("load", () => {
    bar.removeAttribute("value");
    step.textContent = "Importing";
  });
  call.addEventListener("loadend", () => {
    button.disabled = false;
    going.hidden = true;
    bar.value = 0;
    step.textContent = "";
    const page = new DOMParser().parseFromString(call.responseText, "text/html");
    const says = page.querySelectorAll("#result > *, main > .fault");
    if (says.length) result.replaceChildren(...says);
    else fault("The import did not finish. Reload the page and import the file again: each message is stored once.");
    if (call.status === 200) form.reset();
  });
  result.replaceChildren();
  button.disabled = true;
  going.hidden = false;
  step.textContent = "Sending";
  call.send(body);
}

function fault(says) {
  const p = document.createElement("p");
  p.className = "fault";
  p.textContent = says;
  result.replaceChildren(p);
}
