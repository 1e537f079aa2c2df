// The guides in a real browser, and the reference on a server without apps: `.ci/browser` runs these tests.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible, assertNoFaults, open, start } from "./browser.mjs";

const { browser, demo } = await start();

/** Returns the guides that the navigation of a page has. */
async function guides(page) {
  await page.goto(`${demo.url}/docs/guides`);
  return page.locator("#pages a").evaluateAll((all) => all.map((link) => link.href));
}

/** Fails if a page is wider than the window: what is wide scrolls by itself. */
async function assertFits(page, where) {
  const [width, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(width <= window, `${where} is ${width} wide`);
}

for (const [index, width] of [390, 768, 1280].entries()) {
  test(`every guide fits ${width} pixels and is accessible in a theme`, async () => {
    const colorScheme = index === 1 ? "dark" : "light";
    const page = await open(browser, demo.url, { viewport: { width, height: 900 }, colorScheme });
    const all = await guides(page);
    assert.ok(all.length > 30, `${all.length} guides`);
    for (const [number, guide] of all.entries()) {
      const response = await page.goto(guide);
      assert.equal(response.status(), 200, guide);
      await assertFits(page, guide);
      const pictures = await page.locator("main img").evaluateAll((all) => all.map((picture) => picture.naturalWidth));
      assert.ok(pictures.every((size) => size > 0), guide);
      // Each page once: a third of them at each width.
      if (number % 3 === index) await assertAccessible(page, guide);
      assertNoFaults(page, guide);
    }
    await page.context().close();
  });
}

test("a guide is reached from the reference, has both themes, and leads back", async () => {
  const page = await open(browser, demo.url, { reducedMotion: "no-preference", colorScheme: "dark" });
  await page.goto(`${demo.url}/docs`);
  await page.getByRole("link", { name: "Guides" }).click();
  await page.getByRole("heading", { name: "Guides", level: 1 }).waitFor();
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await page.emulateMedia({ colorScheme: "light" });
  assert.notEqual(await ground(), dark);
  await page.locator("#pages").getByRole("link", { name: "Install" }).click();
  await page.waitForURL(/\/docs\/operations\/install$/);
  await page.getByRole("link", { name: "the package" }).click();
  assert.match(page.url(), /#debian-and-ubuntu$/);
  await page.getByRole("link", { name: "API reference" }).first().click();
  await page.getByRole("heading", { name: "Business Operations API" }).waitFor();
  assertNoFaults(page, "the guides");
  await page.context().close();
});

test("the samples of all guides have the reader's key, until the tab is closed or the field is empty", async () => {
  const page = await open(browser, demo.url);
  const samples = () => page.locator("pre code").allTextContents().then((texts) => texts.join("\n"));
  await page.goto(`${demo.url}/docs/sync`);
  const written = await samples();
  assert.match(written, /SVC_URL=http:\/\/127\.0\.0\.1:8080 SVC_KEY=svc_live_…/);
  await page.getByLabel("Your API key").fill(" svc_live_$& ");
  assert.ok((await samples()).includes(`SVC_URL=${demo.url} SVC_KEY=svc_live_$&`), await samples());
  await assertAccessible(page, "samples with a key");
  await assertFits(page, "samples with a key");
  await page.goto(`${demo.url}/docs/agents`);
  assert.ok((await samples()).includes(`"${demo.url}/mcp" -H "Authorization: Bearer svc_live_$&"`), await samples());
  await page.goto(`${demo.url}/docs/sync`);
  await page.getByLabel("Your API key").fill("");
  assert.equal(await samples(), written);
  await page.goto(`${demo.url}/docs/limits`);
  assert.equal(await page.getByLabel("Your API key").count(), 0);
  assertNoFaults(page, "samples with a key");
  await page.context().close();
});

test("a search finds a section, and its link leads there", async () => {
  const page = await open(browser, demo.url);
  await page.goto(`${demo.url}/docs/operations/alerts`);
  await page.getByRole("searchbox").fill("idle connections");
  await page.getByRole("searchbox").press("Enter");
  await page.waitForURL(/\/docs\/search\?q=idle/);
  await assertAccessible(page, "the search");
  await assertFits(page, "the search");
  await page.getByRole("link", { name: "TLS and proxies › Idle connections" }).click();
  await page.waitForURL(/\/docs\/operations\/tls#idle-connections$/);
  assert.ok(await page.getByRole("heading", { name: "Idle connections" }).isVisible());
  assertNoFaults(page, "the search");
  await page.context().close();
});

test("a link into the reference shows its operation, also below /docs/", async () => {
  for (const path of ["/docs", "/docs/"]) {
    const page = await open(browser, demo.url, { reducedMotion: "no-preference" });
    await page.goto(`${demo.url}${path}`);
    await page.getByRole("heading", { name: "Business Operations API" }).waitFor();
    const link = page.locator('a[href*="#"]', { hasText: "Create a quote" }).first();
    const hash = (await link.count()) ? new URL(await link.evaluate((a) => a.href)).hash : "#tag/quotes/POST/quotes";
    await page.goto("about:blank");
    await page.goto(`${demo.url}${path}${hash}`);
    const heading = page.getByRole("heading", { name: "Create a quote" }).first();
    await heading.waitFor();
    await page.waitForFunction((text) => [...document.querySelectorAll("h3")].some((h) =>
      h.textContent.includes(text) && h.getBoundingClientRect().top > -200 && h.getBoundingClientRect().top < innerHeight), "Create a quote");
    await page.context().close();
  }
});

test("a server without apps offers no sign-in as an app", async () => {
  const page = await open(browser, demo.url, { reducedMotion: "no-preference" });
  await page.goto(`${demo.url}/docs`);
  await page.getByRole("heading", { name: "Business Operations API" }).waitFor();
  await page.getByPlaceholder("Token").first().waitFor();
  assert.equal(await page.getByRole("button", { name: "Authorize", exact: true }).count(), 0);
  assert.ok(!(await page.locator("body").innerText()).includes("oauth2"));
  assertNoFaults(page, "/docs");
  await page.context().close();
});
