// The list of requests follows while somebody looks at it.

import { localTimes } from "./page.js";

const rows = document.getElementById("rows");
const news = document.getElementById("news");
const pause = document.getElementById("pause");
const most = Number(rows.dataset.most);
const every = 1500; // ms
const patience = 15000; // ms, after failures

let last = Number(rows.dataset.last);
let paused = false;
let wait = every;
let timer = 0;

async function look() {
  timer = 0;
  if (paused || document.hidden) return;
  try {
    const answer = await fetch("/live/rows?after=" + last, { headers: { Accept: "text/html" } });
    if (answer.redirected || answer.status === 401 || answer.status === 403) {
      news.textContent = "You are logged out. Reload the page to log in.";
      return;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    add(Number(answer.headers.get("X-Last")), await answer.text());
    wait = every;
  } catch {
    news.textContent = "The proxy does not answer. Retrying.";
    wait = Math.min(2 * wait, patience);
  }
  timer = setTimeout(look, wait);
}

function add(to, html) {
  const restarted = to < last; // it counts anew
  last = to;
  if (restarted) {
    last = 0;
    return;
  }
  const fresh = new DOMParser().parseFromString(html, "text/html").body;
  const n = fresh.childElementCount;
  if (n === 0) {
    if (news.dataset.quiet !== "1") news.textContent = "";
    news.dataset.quiet = "1";
    return;
  }
  for (const row of fresh.children) row.classList.add("new");
  localTimes(fresh);
  document.getElementById("none")?.remove();
  rows.prepend(...fresh.children);
  while (rows.childElementCount > most) rows.lastElementChild.remove();
  news.textContent = n === 1 ? "1 new request." : n + " new requests.";
  news.dataset.quiet = "";
}

function follow() {
  if (timer === 0) look();
}

pause.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  pause.textContent = paused ? "Resume" : "Pause";
  news.textContent = paused ? "Paused." : "";
  clearTimeout(timer);
  timer = 0;
  follow();
});
document.addEventListener("visibilitychange", follow);
timer = setTimeout(look, every);
