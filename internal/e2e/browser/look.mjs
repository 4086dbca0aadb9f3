// Visits each page in each look, and says what is wrong with it: what it logs, what it
// asks others for, whether it scrolls sideways, what axe finds; and for a first visit how
// many bytes come and when something is to be seen.
import { input, result, withBrowser, looks, Visitor } from './browser.mjs';
import { inaccessible } from './axe.mjs';

const mostBytes = 200 * 1024;

// sideways says what makes the page wider than the window.
const sideways = () => {
  const most = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= most) return [];
  // What is in a box that scrolls by itself does not count.
  const hidden = (e) => { for (e = e.parentElement; e; e = e.parentElement) if (getComputedStyle(e).overflowX !== 'visible') return true; return false; };
  const wide = [...document.body.querySelectorAll('*')].filter((e) => e.getBoundingClientRect().right > most + 1 && !hidden(e)).slice(0, 5);
  return [`it scrolls sideways, ${document.documentElement.scrollWidth} wide in ${most}: ${wide.map((e) => e.tagName + '.' + e.className).join(', ')}`];
};

await withBrowser(async (browser) => {
  for (const [look, settings] of Object.entries(looks)) {
    if (input.looks && !input.looks.includes(look)) continue;
    for (const { name, path } of input.pages) {
      const v = await Visitor.start(browser, input.base, settings);
      const figures = {};
      try {
        if (input.token) await v.login(input.token);
        const bytes = await v.count();
        await v.open(path);
        figures.paint = Math.round(await v.paint());
        figures.bytes = bytes();
        figures.first = Math.round(await v.firstByte());
        if (figures.bytes > mostBytes && !input.token) v.problems.push(`${figures.bytes} bytes come with a first visit, and ${mostBytes} are the most`);
        v.problems.push(...await v.page.evaluate(sideways));
        if (!(await v.page.title())) v.problems.push('it has no title');
        if (await v.page.locator('h1').count() !== 1) v.problems.push(`it has ${await v.page.locator('h1').count()} headings of the first order`);
        if (input.axe !== false) v.problems.push(...await inaccessible(v));
      } catch (e) {
        v.problems.push(String(e.stack ?? e));
      }
      result(`${name}, ${look}`, await v.end(), figures);
    }
  }
});
