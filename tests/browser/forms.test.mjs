// Every form of the dashboard with no input and with hostile input, with JavaScript and without.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible, assertNoFaults, crawl, open, signIn, start } from "./browser.mjs";

const HOSTILE = `"><img src=x onerror=alert(1)><script>alert(2)</script>'{{7*7}}\u202e\u0000%00`;
/** Forms that end the session, which the other forms need. */
const LAST = /\/(sign-out|sign-out-everywhere|switch\/|sessions\/)/;

const { browser, demo } = await start("--no-rate-limit", "--oauth", "on", "--public-url", "http://127.0.0.1");

/** Returns the forms of a page that change something: their places in the page by their kind, the path without ids. */
async function changes(page) {
  const actions = await page.locator("form").evaluateAll((forms) =>
    forms.map((form) => (form.method === "post" ? new URL(form.action).pathname : "")));
  const kind = (action) => action.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "{id}");
  const forms = actions.map((action, place) => [kind(action), place]).filter(([kind]) => kind && !LAST.test(kind));
  return new Map(forms);
}

/** Fills all fields that a person types into, and sends the form. Returns the response and the names of these fields. */
async function send(page, place, text) {
  const form = page.locator("form").nth(place);
  const names = await form.evaluate((form, text) => {
    const typed = [...form.elements].filter((field) =>
      field.name && field.type !== "hidden" && !field.readOnly &&
      (field.tagName === "TEXTAREA" || ["text", "email", "search", "tel", "url"].includes(field.type)));
    for (const field of typed) field.value = text;
    return typed.map((field) => field.name);
  }, text);
  const answered = page.waitForResponse((response) => response.request().method() === "POST");
  const loaded = page.waitForEvent("load");
  // Past what the browser itself would refuse.
  await form.evaluate((form) => HTMLFormElement.prototype.submit.call(form));
  const [response] = await Promise.all([answered, loaded]);
  return { response, names };
}

for (const role of ["owner", "operator"]) {
  for (const javaScriptEnabled of [true, false]) {
    test(`no form that an ${role} sends fails, ${javaScriptEnabled ? "with" : "without"} JavaScript`, async () => {
      const page = await open(browser, demo.url, { javaScriptEnabled });
      await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, role));
      const pages = await crawl(page, demo.url, async () => {});
      const tried = new Set();
      for (const path of [...pages.values()].flat()) {
        for (const [what, text] of [["nothing", ""], ["hostile input", HOSTILE]]) {
          const response = await page.goto(demo.url + path);
          if (!response.ok()) continue;
          for (const kind of (await changes(page)).keys()) {
            const name = `${kind} with ${what}`;
            if (tried.has(name)) continue;
            tried.add(name);
            await page.goto(demo.url + path);
            const place = (await changes(page)).get(kind);
            // A form that was sent before it may have taken it away.
            if (place === undefined) continue;
            const { response, names } = await send(page, place, text);
            assert.ok(response.status() < 500, `${name}: ${response.status()}`);
            // The response is there before the page is.
            await page.locator("h1").first().waitFor();
            assert.equal(await page.locator("h1").count(), 1, name);
            assert.equal(await page.locator("img[src=x]").count(), 0, name);
            if (response.status() === 422 && names.length > 0) {
              const said = await page.locator(".error, [role=alert]").allInnerTexts();
              assert.ok(said.some((text) => text.trim().length > 10), `${name} says what is wrong`);
            }
            if (javaScriptEnabled) await assertAccessible(page, name);
            assertNoFaults(page, name, /status of 4\d\d/);
          }
        }
      }
      assert.ok(tried.size >= 6, [...tried].join("\n"));
      await page.context().close();
    });
  }
}
