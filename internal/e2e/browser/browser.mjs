// What all scripts in this folder share: Chromium as it is started here, a visitor who
// notes everything that a page must not do, and how results are printed.
//
// The scripts run in the folder where npm has put the packages (install.sh).
import { createRequire } from 'node:module';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const require = createRequire(join(process.cwd(), 'here'));
const { chromium } = require('playwright-core');

export const input = JSON.parse(readFileSync(0, 'utf8'));

// result prints what one check found. No problems: it passed.
export function result(name, problems, figures = {}) {
  console.log(JSON.stringify({ name, problems, ...figures }));
}

// check runs a check, and makes whatever it throws a problem.
export async function check(name, f) {
  let problems;
  try {
    problems = (await f()) ?? [];
  } catch (e) {
    problems = [String(e.stack ?? e)];
  }
  result(name, problems);
}

const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
  '--disable-dev-shm-usage', '--font-render-hinting=none',
  // Names of other machines that lead here, for attacks by name.
  '--host-resolver-rules=MAP *.invalid 127.0.0.1'];

// withBrowser runs f with a Chromium that has no profile.
export async function withBrowser(f) {
  const profile = mkdtempSync(join(tmpdir(), 'browser-'));
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: flags, env: { ...process.env, HOME: profile, TZ: 'UTC' } });
  try {
    await f(browser);
  } finally {
    await browser.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

// The looks in which each page is looked at.
export const looks = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 740 }, isMobile: true, hasTouch: true, timezoneId: 'America/Los_Angeles' },
  'dark phone': { colorScheme: 'dark', viewport: { width: 390, height: 740 }, isMobile: true, hasTouch: true, timezoneId: 'Asia/Tokyo' },
  'half a screen': { colorScheme: 'light', viewport: { width: 960, height: 800 } },
  'dark tablet': { colorScheme: 'dark', viewport: { width: 768, height: 1024 } },
};

// Visitor is somebody with a browser of their own: cookies, cache, and a note of whatever
// a page does that it must not do.
export class Visitor {
  static async start(browser, base, look = looks.light) {
    const v = new Visitor();
    v.base = base;
    v.origin = new URL(base).origin;
    v.problems = [];
    v.context = await browser.newContext({ timezoneId: 'UTC', ...look, locale: 'en-GB', reducedMotion: 'reduce' });
    v.context.setDefaultTimeout(15000);
    // Not part of the page, so that its policy does not count for it.
    await v.context.addInitScript(() => {
      addEventListener('securitypolicyviolation', (e) => console.error(`the policy refuses ${e.violatedDirective} ${e.blockedURI} ${e.sample}`));
    });
    v.page = await v.context.newPage();
    v.watch(v.page);
    return v;
  }

  watch(page) {
    const note = (what) => this.problems.push(what);
    page.on('console', (m) => {
      if (['error', 'warning'].includes(m.type()) && !this.expected?.(m.text())) note(`console ${m.type()} at ${page.url()}: ${m.text()}`);
    });
    page.on('pageerror', (e) => note(`a script fails at ${page.url()}: ${e.stack ?? e}`));
    page.on('request', (r) => {
      const url = new URL(r.url());
      if (url.origin !== this.origin && !['data:', 'blob:'].includes(url.protocol)) note(`a request to another origin: ${r.url()}`);
    });
    page.on('dialog', async (d) => {
      note(`a dialog opens: ${d.message()}`);
      await d.dismiss().catch(() => {}); // the page has left
    });
  }

  // count counts the bytes that the page receives from now on, heads included.
  async count() {
    const cdp = await this.context.newCDPSession(this.page);
    let bytes = 0;
    await cdp.send('Network.enable');
    cdp.on('Network.loadingFinished', (e) => { bytes += e.encodedDataLength; });
    return () => bytes;
  }

  async open(path) {
    const r = await this.page.goto(new URL(path, this.base).href, { waitUntil: 'load' });
    if (r && r.status() !== 200) this.problems.push(`${path} is answered with ${r.status()}`);
    await this.settled();
    return r;
  }

  // settled waits until what the page asks for itself has come: its scripts run after
  // the page is loaded, and one of them may poll.
  async settled() {
    await this.page.evaluate(() => new Promise((done) => {
      requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)));
    }));
  }

  // paint returns the milliseconds until something was to be seen.
  paint() {
    return this.page.evaluate(() => new Promise((done) => {
      const first = (list) => list.find((e) => e.name === 'first-contentful-paint');
      const is = first(performance.getEntriesByType('paint'));
      if (is) { done(is.startTime); return; }
      new PerformanceObserver((l) => { const e = first(l.getEntries()); if (e) done(e.startTime); }).observe({ type: 'paint', buffered: true });
    }));
  }

  // firstByte returns the milliseconds until the page's first byte.
  firstByte() {
    return this.page.evaluate(() => performance.getEntriesByType('navigation')[0].responseStart);
  }

  // login logs in with the form, where there is one.
  async login(token) {
    await this.open('/login');
    await this.page.locator('[name=token]').fill(token);
    await Promise.all([this.page.waitForURL((u) => u.pathname !== '/login'), this.page.keyboard.press('Enter')]);
  }

  async end() {
    await this.context.close();
    return this.problems;
  }
}
