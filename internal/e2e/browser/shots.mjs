// Takes pictures of pages, each in light and dark, and of some as a phone shows them.
import { input, check, withBrowser, Visitor } from './browser.mjs';
import { join } from 'node:path';

const screens = {
  desk: { viewport: { width: 1280, height: 900 } },
  phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 },
};

await withBrowser(async (browser) => {
  for (const colorScheme of ['light', 'dark']) {
    for (const shot of input.shots) {
      for (const screen of shot.phone ? ['desk', ...(colorScheme === 'light' ? ['phone'] : [])] : ['desk']) {
        await check(`${shot.name}, ${colorScheme}, ${screen}`, async () => {
          const v = await Visitor.start(browser, input.base, { ...screens[screen], colorScheme });
          const { page } = v;
          if (input.token && shot.path !== '/login') await v.login(input.token);
          await v.open(shot.path);
          for (const name of shot.follow ?? []) {
            await Promise.all([page.waitForEvent('load'), page.getByRole('main').getByRole('link', { name }).first().click()]);
          }
          if (shot.query) {
            await page.locator('#query').fill(shot.query);
            if (shot.place) {
              await page.getByText('Filters and order').click();
              await page.locator('#project').selectOption({ label: shot.place });
            }
            await Promise.all([page.waitForEvent('load'), page.getByRole('button', { name: 'Search' }).click()]);
          }
          if (shot.open) await page.locator(shot.open).first().click();
          if (shot.scroll) await page.locator(shot.scroll).first().evaluate((e) => e.scrollIntoView());
          await v.settled();
          await page.evaluate(() => document.activeElement?.blur());
          await page.screenshot({ path: join(input.dir, `${shot.name}-${screen === 'phone' ? 'phone' : colorScheme}.png`) });
          return v.end();
        });
      }
    }
  }
});
