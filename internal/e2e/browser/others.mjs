// Two people of one proxy: each gets their own memory, whatever address or form of the
// other one they know.
import { input, check, withBrowser, looks, Visitor } from './browser.mjs';
import { crawl } from './crawl.mjs';

await withBrowser(async (browser) => {
  const of = {};
  for (const [who, { token, secret, other }] of Object.entries(input.people)) {
    await check(`${who} sees their own memory and nobody else's`, async () => {
      const v = await Visitor.start(browser, input.base, looks.light);
      await v.login(token);
      let own = 0;
      const met = await crawl(v, ['/', '/conversations', '/memory', '/memory/show', '/search?kind=fact', '/search', '/memory/import'], (path, text) => {
        if (text.includes(other)) v.problems.push(`${path} shows what the other one said`);
        if (text.includes(secret)) own++;
      }, 30);
      for (const name of ['Delivery', 'People']) if (await v.page.getByRole('link', { name, exact: true }).count()) v.problems.push(`there is a link to ${name}`);
      if (own < 3) v.problems.push(`their own words are on ${own} pages`);
      of[who] = { ...met, v };
      return v.problems.splice(0);
    });
  }

  for (const [who, { other, otherName }] of Object.entries(input.people)) {
    const { v } = of[who];
    v.expected = (text) => /status of 4\d\d|status of 5\d\d/.test(text);
    const theirs = of[otherName];

    await check(`${who} opens every address of ${otherName}, and sees nothing`, async () => {
      const named = ['/memory/show', '/memory', '/conversations', '/changes', '/memory/forget', '/search'].flatMap((p) => [`${p}?user=${otherName}`, `${p}?credential=sha256:${input.people[otherName].credential}`]);
      for (const path of [...theirs.visited, ...named, '/live', '/live/rows', '/delivery', '/delivery?text=1', '/people']) {
        await v.page.goto(new URL(path, input.base).href);
        if ((await v.page.content()).includes(other)) v.problems.push(`${path} shows what the other one said`);
      }
      return v.problems.splice(0);
    });

    await check(`${who} sends every form of ${otherName}, and nothing of theirs changes`, async () => {
      await v.open('/');
      for (const f of theirs.forms.filter((f) => f.method === 'post' && f.action !== '/logout' && f.word !== 'forget everything')) {
        const fields = { ...Object.fromEntries(f.fields), text: 'The attacker is right.', typed: f.word, query: 'What did they say of the secret?', sure: '1', all: '1' };
        for (const more of [{}, { user: otherName }]) {
          const text = await v.page.evaluate(async ([to, fields]) => {
            for (;;) {
              const r = await fetch(to, { method: 'POST', body: new URLSearchParams(fields) });
              if (r.status !== 429) return r.text();
              await new Promise((done) => setTimeout(done, 200));
            }
          }, [f.action, { ...fields, ...more }]);
          if (text.includes(other)) v.problems.push(`${f.action} answers with what the other one said`);
        }
      }
      return v.problems.splice(0);
    });
    await check(`${otherName} has everything still`, async () => {
      const t = theirs.v;
      const missing = [];
      await t.open('/memory/show');
      if (!(await t.page.locator('main').textContent()).includes(input.people[otherName].secret)) missing.push('what they said is gone');
      return [...missing, ...t.problems.splice(0)];
    });
  }
});
