// A browser whose pages record what must not happen: errors in the console, requests to other hosts, dialogs.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import assert from "node:assert/strict";
import { after } from "node:test";
import { chromium } from "playwright-core";
import { Demo } from "./demo.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function launch() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-background-networking"] });
}

/** Starts a browser and a demo server with these options for the tests of a file, which end with them. */
export async function start(...options) {
  const [browser, demo] = await Promise.all([launch(), Demo.start(...options)]);
  after(async () => {
    await browser.close();
    await demo.stop();
  });
  return { browser, demo };
}

/** Opens a page in a context of its own, so with cookies of its own. */
export async function open(browser, origin, options = {}) {
  // Without transitions, so that a page is looked at in its final colours.
  const still = { viewport: { width: 1280, height: 900 }, reducedMotion: "reduce" };
  const context = await browser.newContext({ ...still, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && !["data:", "blob:"].includes(url.protocol)) faults.push(`request: ${url}`);
  });
  page.faults = faults;
  return page;
}

/** Signs in with a link, as a person does who follows it. */
export async function signIn(page, link) {
  await page.goto(link);
  await Promise.all([page.waitForURL(/\/dashboard(?!\/link|\/sign-in)/), page.getByRole("button").first().click()]);
}

/** Pages of one kind that are looked at, such as the details of a delivery. */
const EACH_KIND = 2;

/** Follows all links of the dashboard from its first page, and returns the pages by their kind: the path without ids. */
export async function crawl(page, origin, look) {
  const seen = new Map();
  const queue = ["/dashboard"];
  const queued = new Set(queue);
  for (let path; (path = queue.shift()) !== undefined; ) {
    const kind = path.replace(/\?.*/, "").replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "{id}");
    const visited = seen.get(kind) ?? [];
    if (visited.length >= EACH_KIND) continue;
    seen.set(kind, [...visited, path]);
    const response = await page.goto(origin + path);
    // Events lead to the contact that they tell of, and the audit log to endpoints, which may have been deleted since.
    if (response.status() === 404 && /^\/dashboard\/(contacts|webhooks)\/\{id\}$/.test(kind)) continue;
    assert.equal(response.status(), 200, path);
    await look(path, response);
    const hrefs = await page.locator("a[href]:not([download])").evaluateAll((all) => all.map((a) => a.href));
    for (const href of hrefs) {
      const url = new URL(href);
      const next = url.pathname + url.search;
      if (url.origin === origin && url.pathname.startsWith("/dashboard") && !queued.has(next)) {
        queued.add(next);
        queue.push(next);
      }
    }
  }
  return seen;
}

/** Fails if anything happened that must not, and forgets it. `expected` are patterns of faults that the test causes. */
export function assertNoFaults(page, where, ...expected) {
  const faults = page.faults.splice(0).filter((fault) => !expected.some((pattern) => pattern.test(fault)));
  assert.deepEqual(faults, [], where);
}

const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** Fails if a page breaks a rule of WCAG 2.2 A or AA that axe-core can check, or one of its best practices. */
export async function assertAccessible(page, where, tags = RULES) {
  // By the protocol of the browser, so past the content security policy.
  const session = await page.context().newCDPSession(page);
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    assert.equal(exceptionDetails, undefined, where);
    return result.value;
  };
  await evaluate(`${axe}; 0`);
  const found = await evaluate(`axe.run(document, { runOnly: ${JSON.stringify(tags)} }).then((results) =>
    results.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.target + " " + n.failureSummary).join("; ")))`);
  await session.detach();
  assert.deepEqual(found, [], where);
}
