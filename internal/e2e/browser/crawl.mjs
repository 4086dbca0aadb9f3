// Visits every page that another one links to, and says what of what was said by
// attackers became more than text.
import { createHash } from 'node:crypto';

// alive runs in a page: it says what of a payload lives. Payloads set __xss when they
// run, and what they make has the attribute data-xss.
const alive = () => {
  const problems = [];
  if (window.__xss !== undefined) problems.push('a payload ran');
  for (const e of document.querySelectorAll('[data-xss], iframe, object, embed, base, meta[http-equiv], style, script:not([src]), link:not([href^="/static/"]):not([rel=icon])')) problems.push(`a payload is an element: ${e.outerHTML.slice(0, 120)}`);
  for (const e of document.querySelectorAll('*')) {
    for (const a of e.attributes) {
      if (/^on/i.test(a.name)) problems.push(`a payload is an attribute: ${e.outerHTML.slice(0, 120)}`);
      if (['href', 'src', 'action', 'formaction', 'xlink:href'].includes(a.name) && new URL(a.value, location).origin !== location.origin && !a.value.startsWith('data:image/')) problems.push(`an address leads elsewhere: ${a.value.slice(0, 120)}`);
      if (a.name === 'style') problems.push('an element has a style of its own');
    }
  }
  const text = document.documentElement.textContent;
  const hidden = text.match(/[\u0000\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/);
  if (hidden) problems.push(`U+${hidden[0].codePointAt(0).toString(16)} stands in the page`);
  return { problems, text };
};

const most = 400000; // bytes of a page that has text of attackers in it

// crawl visits pages from the given ones on, and calls seen with the text of each. Forms
// are not sent. It returns the addresses and the forms that it has met.
export async function crawl(v, from, seen, limit = 120) {
  const queue = [...from], known = new Set(queue), visited = [], forms = new Map();
  const bytes = await v.count();
  while (queue.length && visited.length < limit) {
    const path = queue.shift(), before = bytes();
    await v.page.goto(new URL(path, v.base).href, { waitUntil: 'load' });
    await v.settled();
    await v.page.evaluate(() => { for (const e of document.querySelectorAll('summary')) e.parentElement.open = true; });
    visited.push(path);
    const came = bytes() - before;
    if (came > most) v.problems.push(`${path}: ${came} bytes come`);
    const { problems, text } = await v.page.evaluate(alive);
    v.problems.push(...problems.map((p) => `${path}: ${p}`));
    seen(path, text);
    const found = await v.page.evaluate(() => ({
      links: [...document.querySelectorAll('a[href]')].map((a) => { const u = new URL(a.href); return u.origin === location.origin ? u.pathname + u.search : ''; }),
      forms: [...document.forms].map((f) => ({ action: new URL(f.getAttribute('action'), location).pathname, method: f.method, word: f.querySelector('label[for=typed] .id')?.textContent ?? '', fields: [...new FormData(f)].filter(([, x]) => typeof x === 'string') })),
    }));
    for (const f of found.forms) forms.set(createHash('sha256').update(JSON.stringify(f)).digest('hex'), f);
    for (const link of found.links) {
      const plain = link.replace(/([?&])back=[^&]*/, '$1');
      if (link && !known.has(plain)) {
        known.add(plain);
        queue.push(link);
      }
    }
  }
  return { visited, forms: [...forms.values()] };
}
