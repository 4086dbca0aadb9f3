// What an operator of several people does with the keyboard: delivery, and confirming a person.
import { input, check, withBrowser, looks, Visitor } from './browser.mjs';

// press presses Tab until an element has the focus, and then Enter.
async function press(page, locator) {
  const wanted = await locator.elementHandle();
  for (let i = 0; i < 400 && !await wanted.evaluate((e) => e === document.activeElement); i++) await page.keyboard.press('Tab');
  if (!await wanted.evaluate((e) => e === document.activeElement)) throw new Error(`Tab does not reach ${locator}`);
  await page.keyboard.press('Enter');
}

await withBrowser(async (browser) => {
  const v = await Visitor.start(browser, input.base, looks.phone);
  const { page } = v;
  await v.login(input.token);
  const told = (what) => page.getByRole('status').filter({ hasText: what }).waitFor();

  await check('a person is confirmed', async () => {
    await v.open('/people');
    const box = page.getByLabel('The existing memory belongs to this person');
    await box.focus();
    await page.keyboard.press('Space');
    await press(page, page.getByRole('button', { name: 'Confirm josh' }));
    await told(/Confirmed/);
    return await page.getByRole('button', { name: 'Confirm josh' }).count() ? ['josh still waits'] : [];
  });

  await check('a dead letter is delivered again, and the other one deleted', async () => {
    await v.open('/delivery');
    await page.locator('.pick input').first().focus();
    await page.keyboard.press('Space');
    await press(page, page.getByRole('button', { name: 'Deliver selected again' }));
    await told(/delivered again/);
    if (await page.locator('.pick input').count() !== 1) return ['the other one is gone, too'];
    await press(page, page.locator('summary').filter({ hasText: 'Delete for good' }));
    await press(page, page.getByRole('button', { name: 'Delete all' }));
    await told(/deleted/);
    return await page.locator('.pick input').count() ? ['it is still there'] : [];
  });

  await check('nothing went wrong meanwhile', async () => v.end());
});
