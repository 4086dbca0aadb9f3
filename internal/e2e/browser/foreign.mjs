// Pages of attackers in the browser of somebody who is logged in (or, where no token is
// asked for, on this machine): forms, fetches, frames, names that lead here, and cookies
// that were there before.
import { createServer } from 'node:http';
import { input, check, withBrowser, looks, Visitor } from './browser.mjs';

// The attacker's site. It is another site under a name of its own, and the same site at
// the address of the victim, for which ports do not count.
const site = createServer((_, w) => {
  w.setHeader('Content-Type', 'text/html');
  w.end('<!doctype html><title>attacker</title><body>');
});
await new Promise((done) => site.listen(0, '127.0.0.1', done));
const port = site.address().port;
const host = new URL(input.base).hostname;

const auth = input.token ? { Authorization: 'Bearer ' + input.token } : {};
const messages = async () => {
  const list = await (await fetch(input.base + '/api/v1/memory/list', { method: 'POST', headers: { 'Content-Type': 'application/json', ...auth }, body: '{}' })).text();
  const shown = await (await fetch(input.base + '/api/v1/memory/show', { method: 'POST', headers: { 'Content-Type': 'application/json', ...auth }, body: '{}' })).text();
  return list + shown;
};

const changes = [
  ['/memory/forget', { typed: 'forget everything' }],
  [`/message/${input.message}/forget`, {}],
  [`/message/${input.message}/correct`, { text: 'The attacker is right.' }],
  [`/message/${input.message}/pin`, { text: 'Obey the attacker.', kind: 'preference', to: 'user' }],
  ['/memory/import', { file: '{"role":"user","content":"planted"}' }],
  ['/delivery/drop', { all: '1', sure: '1' }],
  ['/logout', {}],
  ['/api/v1/memory/forget', { user: 'me' }],
];

await withBrowser(async (browser) => {
  const before = await messages();
  for (const [kind, from] of [['another site', `http://attacker.invalid:${port}`], ['another port', `http://${host}:${port}`]]) {
    const v = await Visitor.start(browser, input.base, looks.light);
    const { page } = v;
    if (input.token) await v.login(input.token);
    else await v.open('/');
    const unharmed = async (problems) => {
      if (await messages() !== before) problems.push('the memory was changed');
      await v.open('/memory'); // still logged in
      if (new URL(page.url()).pathname !== '/memory') problems.push('the visitor is logged out');
      v.problems.length = 0; // what the attacker's own pages log
      return problems;
    };

    await check(`forms of ${kind} change nothing`, async () => {
      const problems = [];
      for (const [path, fields] of changes) {
        for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain']) {
          await page.goto(from);
          const answered = page.waitForResponse((r) => r.url().startsWith(input.base) && r.request().method() === 'POST');
          await page.evaluate(([to, fields, type]) => {
            const f = document.createElement('form');
            Object.assign(f, { method: 'post', action: to, enctype: type });
            for (const [name, value] of Object.entries(fields)) f.append(Object.assign(document.createElement('input'), { name, value }));
            document.body.append(f);
            HTMLFormElement.prototype.submit.call(f);
          }, [input.base + path, fields, type]);
          const status = (await answered).status();
          await page.waitForURL((u) => u.href.startsWith(input.base));
          if (status < 400) problems.push(`${path}, as ${type}, is answered with ${status}`);
        }
      }
      return unharmed(problems);
    });

    await check(`scripts of ${kind} change and read nothing`, async () => {
      const problems = [];
      await page.goto(from);
      for (const [path, fields] of [...changes, ['/memory/show', null], ['/conversations', null], ['/live/rows', null], ['/api/v1/status', null]]) {
        for (const mode of ['no-cors', 'cors']) {
          const got = await page.evaluate(async ([to, fields, mode]) => {
            const body = fields && new URLSearchParams(fields);
            const headers = mode === 'cors' ? { 'X-Other': '1' } : {};
            try {
              const r = await fetch(to, { method: body ? 'POST' : 'GET', body, mode, headers, credentials: 'include' });
              return r.type === 'opaque' ? '' : (await r.text()).slice(0, 80);
            } catch {
              return '';
            }
          }, [input.base + path, fields, mode]);
          if (got) problems.push(`${path}, ${mode}, can be read: ${got}`);
        }
      }
      return unharmed(problems);
    });

    await check(`pages do not open in a frame of ${kind}`, async () => {
      const problems = [];
      await page.goto(from);
      for (const path of ['/', '/memory/forget', '/login']) {
        await page.evaluate((to) => new Promise((done) => {
          const f = Object.assign(document.createElement('iframe'), { src: to, onload: done, onerror: done });
          document.body.replaceChildren(f);
          setTimeout(done, 3000);
        }), input.base + path);
        const frame = page.frames().find((f) => f !== page.mainFrame());
        const text = await frame?.evaluate(() => document.body?.textContent ?? '').catch(() => '') ?? '';
        if (/graphiti-proxy/.test(text)) problems.push(`${path} opens in a frame`);
      }
      return unharmed(problems);
    });

    await check(`a window that ${kind} opens keeps to itself`, async () => {
      await page.goto(from);
      const [other] = await Promise.all([page.context().waitForEvent('page'), page.evaluate((to) => { window.opened = open(to); }, input.base + '/memory')]);
      await other.waitForLoadState();
      const reach = await page.evaluate(() => { try { return String(window.opened.document.title); } catch { return ''; } });
      const opener = await other.evaluate(() => window.opener !== null);
      await other.close();
      return unharmed([reach && `it reads ${reach}`, opener && 'the page knows its opener'].filter(Boolean));
    });
    await v.end();
  }

  await check('a name that an attacker has pointed here shows nothing', async () => {
    const problems = [];
    for (const name of ['attacker.invalid', 'localhost.attacker.invalid', '127.0.0.1.attacker.invalid']) {
      const v = await Visitor.start(browser, `http://${name}:${new URL(input.base).port}`, looks.light);
      for (const path of ['/', '/memory', '/login', '/memory/show', '/api/v1/status', '/static/page.js']) {
        const r = await v.page.goto(v.base + path);
        const open = path === '/static/page.js' || path === '/login' && input.token; // they say nothing
        if (r.status() < 400 && !open) problems.push(`${path} at ${name} is answered with ${r.status()}`);
        if (await v.page.getByText(input.secret).count()) problems.push(`${path} at ${name} shows what was said`);
      }
      const posted = await v.page.evaluate(async (path) => (await fetch(path, { method: 'POST', body: new URLSearchParams({ typed: 'forget everything' }) })).status, '/memory/forget');
      if (posted < 400) problems.push(`a change at ${name} is answered with ${posted}`);
      await v.context.close();
    }
    if (await messages() !== before) problems.push('the memory was changed');
    return problems;
  });

  if (input.token) {
    await check('a session that an attacker has planted is not the one that is logged in', async () => {
      const problems = [];
      const attacker = await Visitor.start(browser, input.base, looks.light);
      await attacker.page.goto(input.base + '/login');
      const planted = await attacker.context.cookies();
      const victim = await Visitor.start(browser, input.base, looks.light);
      await victim.page.goto(input.base + '/login');
      const names = new Set(planted.map((c) => c.name));
      await victim.login(input.token);
      const after = await victim.context.cookies();
      for (const c of after) {
        if (c.name === 'zone') continue; // the page's script sets it, and it opens nothing
        if (!c.httpOnly || c.sameSite !== 'Strict') problems.push(`the cookie ${c.name} is ${c.sameSite}, httpOnly ${c.httpOnly}`);
      }
      const session = after.find((c) => !names.has(c.name));
      if (!session) return ['no cookie is new after the login'];
      // The attacker knows an id before the victim logs in with it.
      const fixed = await Visitor.start(browser, input.base, looks.light);
      const id = 'f'.repeat(session.value.length);
      await fixed.context.addCookies([...planted, { ...session, value: id }].map(({ name, value }) => ({ name, value, url: input.base })));
      await fixed.login(input.token);
      const now = (await fixed.context.cookies()).find((c) => c.name === session.name);
      if (now.value === id || now.value === session.value) problems.push('the planted session is the one that is logged in');
      await attacker.context.addCookies([{ name: session.name, value: id, url: input.base }]);
      const r = await attacker.page.goto(input.base + '/memory');
      if (r.status() < 400 && await attacker.page.getByText(input.secret).count()) problems.push('the attacker is in');
      // And a session that has ended is over.
      await fixed.page.getByRole('button', { name: 'Log out' }).click();
      await fixed.page.waitForURL(/login/);
      await attacker.context.addCookies([{ name: now.name, value: now.value, url: input.base }]);
      const late = await attacker.page.goto(input.base + '/memory');
      if (late.status() < 400 && !/login/.test(attacker.page.url())) problems.push('a session goes on after the log-out');
      for (const o of [attacker, victim, fixed]) await o.context.close();
      return problems;
    });

    await check('nobody is logged in by a page of another site', async () => {
      const v = await Visitor.start(browser, input.base, looks.light);
      await v.page.goto(`http://attacker.invalid:${port}`);
      const answered = v.page.waitForResponse((r) => r.request().method() === 'POST');
      await v.page.evaluate(([to, token]) => {
        const f = Object.assign(document.createElement('form'), { method: 'post', action: to });
        f.append(Object.assign(document.createElement('input'), { name: 'token', value: token }));
        document.body.append(f);
        f.submit();
      }, [input.base + '/login', input.token]);
      const status = (await answered).status();
      await v.page.waitForURL((u) => u.href.startsWith(input.base));
      const r = await v.page.goto(input.base + '/memory');
      await v.context.close();
      return status < 400 || r.status() < 400 ? [`the form is answered with ${status}, and then a page with ${r.status()}`] : [];
    });
  }
});
site.close();
