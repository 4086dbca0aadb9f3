// Stored and reflected scripts: every page of a memory into which attackers wrote, in
// every field that they reach.
import { input, check, withBrowser, looks, Visitor } from './browser.mjs';
import { crawl } from './crawl.mjs';

await withBrowser(async (browser) => {
  const v = await Visitor.start(browser, input.base, looks.light);
  v.expected = (text) => /status of [45]\d\d/.test(text); // pages that do not exist
  const found = new Set();
  const seen = (path, text) => { for (const m of text.matchAll(/MARK-([a-z]+)/gi)) found.add('MARK-' + m[1].toLowerCase()); };
  await check('nothing of an attacker becomes more than text', async () => {
    if (input.token) await v.login(input.token);
    const { visited } = await crawl(v, input.from, seen, input.limit);
    console.error(`${visited.length} pages: ${[...found].sort().join(' ')}`);
    return v.problems.splice(0);
  });
  await check('what a search finds is text', async () => {
    for (const query of input.searches ?? []) {
      await v.open('/search' + (input.whose ?? ''));
      await v.page.locator('#query').fill(query);
      await Promise.all([v.page.waitForEvent('load'), v.page.getByRole('button', { name: 'Search' }).click()]);
      const at = v.page.url();
      seen(at, await v.page.locator('main').textContent());
      if (await v.page.evaluate(() => window.__xss !== undefined || document.querySelector('[data-xss]'))) v.problems.push('a payload lives in the answer of a search');
    }
    return v.problems.splice(0);
  });
  await check('what an address says is text', async () => {
    const short = (input.payloads ?? []).filter((p) => p.length < 1000);
    // Together in one address, and the other way round: an open quote or comment of one
    // must not hide another.
    for (const payload of [short.join(' '), short.toReversed().join(' ')]) {
      const p = encodeURIComponent(payload.replaceAll('\0', ''));
      for (const path of [`/?done=${p}`, `/live/rows?after=${p}`, `/conversation/${p}`, `/message/${p}?back=${p}`, `/memory/show?group=${p}&user=${p}`, `/memory/forget?group=${p}&session=${p}`, `/search?q=${p}`, `/${p}`]) {
        await v.page.goto(new URL(path, v.base).href).catch((e) => { if (!/ERR_INVALID|ERR_ABORTED|HTTP_RESPONSE_CODE_FAILURE/.test(e)) throw e; });
        if (await v.page.evaluate(() => window.__xss !== undefined || document.querySelector('[data-xss]') !== null)) v.problems.push(`a payload lives at ${path}`);
      }
    }
    return v.problems.splice(0);
  });
  await check('every field was looked at', async () => input.marks.filter((m) => !found.has(m)).map((m) => `${m} was on no page`));
  await check('nothing went wrong meanwhile', async () => v.end());
});
