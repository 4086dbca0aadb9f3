// What every page has: times in the zone of who looks, and Esc closes what is open.

const here = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

// Days on a page are those of the browser: the first page is loaded again, once its zone is known.
const zone = `zone=${here.resolvedOptions().timeZone}`;
const known = document.cookie.split("; ").includes(zone);
document.cookie = `${zone}; path=/; samesite=strict; max-age=31536000`;
if (!known && document.cookie.includes(zone)) location.reload();

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const today = new Date().toDateString();

export function localTimes(root) {
  for (const t of root.querySelectorAll("time[datetime]")) {
    const at = new Date(t.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    t.title = t.textContent;
    t.textContent = (t.closest(".when") && at.toDateString() === today ? clock : here).format(at);
  }
}

localTimes(document);
for (const part of document.querySelectorAll(".scripted")) part.hidden = false;

document.addEventListener("keydown", (e) => {
  if (e.key !== "Escape" || e.defaultPrevented) return;
  const open = document.activeElement?.closest("details[open]");
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});

// One key decides on the line with the focus, else on the first one of the page.
document.addEventListener("keydown", (e) => {
  if (e.defaultPrevented || e.repeat || e.ctrlKey || e.altKey || e.metaKey || e.target.closest("input, textarea, select")) return;
  if (!["a", "r", "u"].includes(e.key)) return;
  const button = `[data-key="${e.key}"]`;
  (e.target.closest("li")?.querySelector(button) ?? document.querySelector(button))?.click();
});

// The key /, and Ctrl or Cmd with K, select the search field.
document.addEventListener("keydown", (e) => {
  const k = e.key === "k" && (e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey;
  const slash = e.key === "/" && !e.ctrlKey && !e.altKey && !e.metaKey && !e.target.closest("input, textarea, select");
  if (e.defaultPrevented || !(k || slash)) return;
  e.preventDefault();
  document.querySelector(".find input")?.focus();
});

// Of two versions of a text, the words that the other one lacks are marked. The valid one, which has
// the words of a search marked, is only compared.
for (const hit of document.querySelectorAll(".hit")) {
  const versions = [...hit.querySelectorAll("[data-version]")];
  const words = [...versions, ...hit.querySelectorAll(".said")].map((v) => v.textContent.trim().split(/\s+/));
  versions.forEach((v, i) => {
    const other = words[i + 1] ?? words[i - 1];
    if (other) v.replaceChildren(...words[i].flatMap((w) => [other.includes(w) ? w : Object.assign(document.createElement("mark"), { textContent: w }), " "]));
  });
}

// A text that was typed, but not stored, is back when its page is loaded again: after a restart, a
// login or a mistake.
const draft = (t) => `${location.pathname} ${t.form?.action} ${t.name}`;
for (const t of document.querySelectorAll("main textarea")) {
  t.value = sessionStorage.getItem(draft(t)) ?? t.value;
  t.addEventListener("input", () => sessionStorage.setItem(draft(t), t.value));
}
if (new URLSearchParams(location.search).has("done")) sessionStorage.clear();

// A form is sent once: what it asks for may take a while.
document.addEventListener("submit", (e) => {
  if (e.defaultPrevented || e.target.action.endsWith("/memory/export") || e.submitter?.value === "export") return;
  if (e.target.dataset.sent) {
    e.preventDefault();
    return;
  }
  e.target.dataset.sent = "1";
  e.target.setAttribute("aria-busy", "true");
});
window.addEventListener("pageshow", () => {
  for (const f of document.forms) delete f.dataset.sent;
});

// With Shift, a click selects all results since the last one.
const ticks = [...document.querySelectorAll(".hit .tick input")];
let last = 0;
for (const [i, tick] of ticks.entries()) {
  tick.addEventListener("click", (e) => {
    if (e.shiftKey) for (const t of ticks.slice(Math.min(i, last), Math.max(i, last))) t.checked = tick.checked;
    last = i;
  });
}
