// Every page of the dashboard at each width, in a real browser: `.ci/browser` runs these tests.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible, assertNoFaults, crawl, open, signIn, start } from "./browser.mjs";

/** The largest page, in bytes of HTML. */
const MAX_BYTES = 150_000;

const { browser, demo } = await start("--oauth", "on", "--public-url", "http://127.0.0.1");

for (const [who, role] of [["an owner", "owner"], ["an operator", "operator"]]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`every page that ${who} can reach is in order, ${colorScheme}`, async () => {
      const page = await open(browser, demo.url, { colorScheme });
      await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, role));
      const kinds = await crawl(page, demo.url, async (path, response) => {
        const bytes = (await response.body()).length;
        assert.ok(bytes <= MAX_BYTES, `${path} has ${bytes} bytes`);
        assert.equal(await page.locator("h1").count(), 1, `${path} has one heading`);
        assert.match(await page.title(), /\S/, path);
        assertNoFaults(page, path);
        for (const width of [1280, 768, 390, 360, 1920]) {
          await page.setViewportSize({ width, height: 900 });
          // At 360 and at 1920 only the width is looked at. In the dark the colours are others, and the rest is the same.
          if (width === 1280 || (colorScheme === "light" && [768, 390].includes(width))) await assertAccessible(page, `${path}, ${colorScheme}, ${width}`);
          const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(overflow <= 0, `${path} is ${overflow} pixels too wide at ${width}`);
        }
        await page.setViewportSize({ width: 1280, height: 900 });
      });
      assert.ok(kinds.size >= 3, [...kinds.keys()].join(" "));
      await page.context().close();
    });
  }
}
