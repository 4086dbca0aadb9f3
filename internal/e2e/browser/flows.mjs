// What people do on the pages, and what the next turn through the proxy shows of it.
import { input, check, withBrowser, looks, Visitor } from './browser.mjs';
import { readFileSync } from 'node:fs';

// kept is how many turns have been kept.
async function kept() {
  return (await (await fetch(input.base + '/api/v1/queue')).json()).delivered;
}

// say says a text in a conversation of its own, waits until it is kept, and returns the
// block that the model saw.
async function say(text) {
  const before = await kept();
  const r = await fetch(input.proxy + '/v1/chat/completions', {
    method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: 'Bearer sk-test' },
    body: JSON.stringify({ model: 'stand-in', messages: [{ role: 'user', content: text }] }),
  });
  if (!r.ok) throw new Error(`the proxy answers ${r.status}`);
  await r.text();
  for (const end = Date.now() + 10000; await kept() === before;) {
    if (Date.now() > end) throw new Error('the turn is not kept');
    await new Promise((done) => setTimeout(done, 50));
  }
  const seen = await (await fetch(input.saw)).text(); // what the model got last
  return seen.match(/<graphiti_memory>[^]*?<\/graphiti_memory>/)?.[0] ?? '';
}

// tabTo presses Tab until an element has the focus.
async function tabTo(page, locator) {
  const wanted = await locator.elementHandle();
  for (let i = 0; i < 400; i++) {
    if (await wanted.evaluate((e) => e === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not reach ${locator}`);
}

// open opens the conversation that begins with a text, as somebody does who has no mouse.
async function openConversation(v, begins) {
  await v.open('/conversations');
  await tabTo(v.page, v.page.getByRole('link', { name: begins }).first());
  await Promise.all([v.page.waitForURL(/\/conversation\//), v.page.keyboard.press('Enter')]);
}

// piece is the piece of a block that shows what a person said.
const piece = (page, text) => page.locator('.block .piece').filter({ hasText: new RegExp(`user, [0-9-]+: “${text}`) }).first();

// enter presses Enter where the focus is, and waits for the page that it leads to.
async function enter(v) {
  await Promise.all([v.page.waitForEvent('load'), v.page.keyboard.press('Enter')]);
}

// undoNewest undoes the newest change on its page.
async function undoNewest(v) {
  await v.open('/changes');
  await tabTo(v.page, v.page.locator('.hit').first().getByRole('button', { name: /^Undo/ }));
  await Promise.all([v.page.waitForURL(/done=/, { timeout: 120000 }), v.page.keyboard.press('Enter')]);
  await told(v, /Undone/);
}

const told = (v, what) => v.page.getByRole('status').filter({ hasText: what }).waitFor();

await withBrowser(async (browser) => {
  const v = await Visitor.start(browser, input.base, looks.light);
  const { page } = v;

  await check('the conversation page shows the block in its place, with its sources', async () => {
    await say('My cat is called Miso.');
    await say('The staging machine runs in the attic on port 4100.');
    const block = await say('What is my cat called?');
    if (!block.includes('Miso')) return [`the model saw ${block}`];
    await openConversation(v, 'What is my cat called?');
    const shown = page.locator('.block');
    await shown.getByText('My cat is called Miso.').first().waitFor();
    const below = await page.evaluate(() => {
      const at = (s) => document.querySelector(s).getBoundingClientRect().top;
      return at('.block') < at('.spoken.user');
    });
    return below ? [] : ['the block does not stand before the message'];
  });

  await check('Tab reaches every action of the conversation page, and Esc closes what is open', async () => {
    const problems = [];
    const actions = () => page.evaluate(() => [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')]
      .filter((e) => e.checkVisibility() && !e.disabled).map((e, i) => { e.dataset.action = i; return e.textContent.trim().slice(0, 40); }));
    for (const s of await page.locator('main summary').all()) { // closed ones hide what is in them
      await tabTo(page, s);
      await page.keyboard.press('Enter');
      if (!await s.evaluate((e) => e.parentElement.open)) problems.push(`Enter does not open ${await s.textContent()}`);
      await page.keyboard.press('Escape');
      if (await s.evaluate((e) => e.parentElement.open)) problems.push(`Esc does not close ${await s.textContent()}`);
      if (!await s.evaluate((e) => e === document.activeElement)) problems.push('Esc takes the focus away');
      await page.keyboard.press('Enter');
    }
    const all = await actions();
    await page.evaluate(() => document.activeElement.blur());
    const reached = new Set();
    for (let i = 0; i < 2 * all.length; i++) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate(() => {
        const e = document.activeElement, s = getComputedStyle(e);
        return { action: e.dataset.action, marked: s.outlineStyle !== 'none' || s.boxShadow !== 'none' };
      });
      if (at.action === undefined) continue;
      if (!at.marked) problems.push(`nothing shows that the focus is at ${all[at.action]}`);
      reached.add(Number(at.action));
    }
    all.forEach((name, i) => { if (!reached.has(i)) problems.push(`Tab does not reach "${name}"`); });
    return problems;
  });

  await check('a piece is corrected with the keyboard, and the next turn has the correction only', async () => {
    await openConversation(v, 'What is my cat called?');
    await tabTo(page, piece(page, 'My cat is called Miso.').getByRole('link', { name: 'Correct' }));
    await enter(v);
    await tabTo(page, page.getByLabel('New statement'));
    await page.keyboard.press('Control+A');
    await page.keyboard.type('My cat is called Pepper.');
    await page.keyboard.press('Tab');
    await enter(v);
    await told(v, /./);
    const block = await say('What is my cat called, then?');
    return block.includes('Pepper') && !block.includes('Miso') ? [] : [`the model saw ${block}`];
  });

  await check('the words that the correction replaced are marked', async () => {
    await v.open('/search?kind=fact&state=valid&q=cat');
    const marked = await page.locator('.hit [data-version] mark').allTextContents();
    return marked.join() === 'Miso.' ? [] : [`marked: ${marked}`];
  });

  await check('a piece is pinned to the card, and a new conversation begins with it', async () => {
    await openConversation(v, 'What is my cat called, then?');
    await tabTo(page, piece(page, 'My cat is called Pepper.').getByRole('link', { name: 'Pin' }));
    await enter(v);
    await tabTo(page, page.locator('#pin').getByRole('button'));
    await enter(v);
    await told(v, /./);
    const block = await say('Write a poem about autumn leaves in the harbour?');
    return block.includes('Pepper') ? [] : [`the model saw ${block || 'no block'}`];
  });

  await check('a piece is forgotten, and the next turn does not have it', async () => {
    await say('On which port does the staging machine run?'); // a correction empties earlier blocks
    await openConversation(v, 'On which port does the staging machine run?');
    await tabTo(page, piece(page, 'The staging machine runs in the attic on port 4100.').getByRole('link', { name: 'Forget this' }));
    await enter(v);
    await tabTo(page, page.locator('#forget').getByRole('button', { name: 'Forget, with Undo' }));
    await enter(v);
    await told(v, /One copy stays for Undo/);
    const block = await say('Which port does the staging machine have in the attic?');
    return block.includes('4100') ? [`the model saw ${block}`] : [];
  });

  await check('the Undo of the forgotten piece brings it back, and then it is deleted for good', async () => {
    await undoNewest(v);
    const block = await say('What port was the staging machine on, in the attic?');
    if (!block.includes('4100')) return [`the model saw ${block || 'no block'}`];
    await v.open('/search?q=staging+attic');
    await tabTo(page, page.locator('.hit').filter({ hasText: 'runs in the attic on port 4100' }).getByRole('link', { name: 'End or forget…' }).first());
    await enter(v);
    await tabTo(page, page.locator('#forget').getByRole('button', { name: 'Delete now, for good' }));
    await enter(v);
    await told(v, /Deleted for good/);
    await v.open('/changes');
    const row = await page.locator('.hit').first().textContent();
    return row.includes('Deleted for good') && !row.includes('Undo') ? [] : [`the newest change is ${row}`];
  });

  await check('a held message is stored with the keyboard', async () => {
    const messages = [];
    // A person types after pauses; the last message follows at once, as a program's does.
    for (const [text, pause] of [['The buoy is blue.', 0], ['The pier is green.', 2100], ['The lock is old.', 2100], ['The gangway creaks at low tide.', 0]]) {
      await new Promise((done) => setTimeout(done, pause));
      messages.push({ role: 'user', content: text });
      const r = await fetch(input.proxy + '/v1/chat/completions', {
        method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: 'Bearer sk-test' }, body: JSON.stringify({ model: 'stand-in', messages }),
      });
      messages.push((await r.json()).choices[0].message);
    }
    const store = page.getByRole('button', { name: 'Store The gangway creaks' });
    const until = Date.now() + 15000; // it is held a moment after its answer
    do await v.open('/memory/show'); while (!await store.count() && Date.now() < until);
    await tabTo(page, store);
    await enter(v);
    await told(v, /Stored/);
    await v.open('/memory/show');
    return await store.count() || !await page.locator('.day').getByText('The gangway creaks').count() ? ['it is not stored'] : [];
  });

  await check('the live page shows a request as it passes, without what was said', async () => {
    await v.open('/live');
    await say('The password of the aquarium is written on the blue buoy.');
    const row = page.locator('#rows .request').first();
    await page.locator('#rows .request.new').first().waitFor();
    const text = await row.textContent();
    const problems = text.includes('stand-in') ? [] : [`the newest row is ${text}`];
    if ((await page.content()).includes('blue buoy')) problems.push('it shows what was said');
    return problems;
  });

  await check('the import of a file is undone with the keyboard', async () => {
    await v.open('/memory/import');
    await tabTo(page, page.locator('#file'));
    await page.locator('#file').setInputFiles({ name: 'one.jsonl', mimeType: 'application/jsonl', buffer: Buffer.from('{"role":"user","content":"The ferry leaves at noon.","session":"ferry"}') });
    await tabTo(page, page.getByRole('button', { name: 'Import' }));
    await page.keyboard.press('Enter');
    await tabTo(page, page.getByRole('button', { name: 'Undo' }));
    await enter(v);
    await told(v, /Undone/);
    await v.open('/search?q=ferry+noon');
    return await page.locator('.hit').filter({ hasText: 'ferry leaves' }).count() ? ['the message is still there'] : [];
  });

  const many = 30000;
  await check('a file is imported with the progress of its upload', async () => {
    await v.open('/memory/import');
    const lines = Array.from({ length: many }, (_, i) => JSON.stringify({ role: i % 2 ? 'assistant' : 'user', content: `Invented line ${i} of the lighthouse log.`, session: `log-${i >> 5}`, scope: 'workspace', workspace: 'lighthouse' }));
    await page.evaluate(() => {
      window.steps = [];
      new MutationObserver(() => window.steps.push(document.getElementById('step').textContent)).observe(document.getElementById('step'), { childList: true, characterData: true, subtree: true });
    });
    await page.locator('#file').setInputFiles({ name: 'log.jsonl', mimeType: 'application/jsonl', buffer: Buffer.from(lines.join('\n')) });
    await tabTo(page, page.getByRole('button', { name: 'Import' }));
    await page.keyboard.press('Enter');
    await page.locator('#result').getByText(/imported/).waitFor({ timeout: 60000 });
    const result = await page.locator('#result').textContent();
    const problems = result.includes('30000 messages imported') ? [] : [`it says ${result}`];
    const steps = await page.evaluate(() => window.steps);
    if (!steps.includes('Importing')) problems.push(`no progress was to be seen: ${steps}`);
    return problems;
  });

  await check('a memory is exported as a file', async () => {
    await v.open('/memory');
    const row = page.getByRole('row').filter({ hasText: 'lighthouse' });
    const [download] = await Promise.all([page.waitForEvent('download'), row.getByRole('button', { name: /Export/ }).click()]);
    const lines = readFileSync(await download.path(), 'utf8').trim().split('\n').map((l) => JSON.parse(l));
    return lines.length === many ? [] : [`${lines.length} lines come`];
  });

  await check('a memory is forgotten and brought back with the keyboard', async () => {
    const row = page.getByRole('row').filter({ hasText: 'lighthouse' });
    await v.open('/memory');
    await tabTo(page, row.getByRole('link', { name: /Forget/ }));
    await enter(v);
    await tabTo(page, page.getByRole('button', { name: 'Forget, with Undo' }));
    await enter(v);
    await told(v, /One copy stays for Undo/);
    if (await row.count()) return ['it is still there'];
    await undoNewest(v);
    await v.open('/memory');
    return (await row.textContent()).includes('30,000') ? [] : ['it is not whole'];
  });

  await check('a memory is deleted for good only when its name is typed', async () => {
    await v.open('/memory');
    await page.getByRole('row').filter({ hasText: 'lighthouse' }).getByRole('link', { name: /Forget/ }).click();
    v.expected = (text) => text.includes('400'); // the answer to what is wrong
    await page.locator('#typed').fill('lighthous');
    await Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')]);
    v.expected = undefined;
    await page.getByRole('alert').waitFor();
    await v.open('/memory');
    const row = page.getByRole('row').filter({ hasText: 'lighthouse' });
    if (!(await row.textContent()).includes('30,000')) return ['something was deleted already'];
    await row.getByRole('link', { name: /Forget/ }).click();
    await page.locator('#typed').fill('lighthouse');
    await Promise.all([page.waitForURL(/done=/), page.keyboard.press('Enter')]);
    return await page.getByRole('row').filter({ hasText: 'lighthouse' }).count() ? ['it is still there'] : [];
  });

  await check('nothing went wrong meanwhile', async () => v.end());
});
