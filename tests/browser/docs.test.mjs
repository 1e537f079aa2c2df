// The API reference in a real browser: `.ci/browser` runs these tests.
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { assertAccessible, assertNoFaults, open, signIn, start } from "./browser.mjs";

const address = `127.0.0.1:${await freePort()}`;
const oauth = ["--oauth", "on", "--public-url", `http://${address}`];
const { browser, demo } = await start("--listen", address, "--platform-listen", "127.0.0.1:0", ...oauth);

/** Returns a port that nothing listens on: the address of the service is part of its document. */
async function freePort() {
  const server = createServer();
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Opens the API reference and waits until the document is shown. */
async function openReference(options) {
  // With reduced motion, the viewer shows its first picture in the colours of the other theme.
  const page = await open(browser, demo.url, { reducedMotion: "no-preference", ...options });
  await page.goto(`${demo.url}/docs`);
  await page.getByRole("heading", { name: "Business Operations API" }).waitFor();
  return page;
}

/** Tries an operation out, and returns what the request was authorized with and what the browser keeps. */
async function tryOut(page) {
  await page.getByRole("link", { name: "Check the API key" }).first().click();
  await page.getByRole("button", { name: /Test Request/ }).first().click();
  const [response] = await Promise.all([
    page.waitForResponse((response) => response.url() === `${demo.url}/api/v1/ping`),
    page.getByRole("button", { name: /Send/ }).first().click(),
  ]);
  assert.equal(response.status(), 200);
  const authorization = await response.request().headerValue("authorization");
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  return { authorization, stored };
}

for (const colorScheme of ["light", "dark"]) {
  test(`the document is shown, with its webhooks and examples in four languages, ${colorScheme}`, async () => {
    const page = await openReference({ colorScheme });
    await assertAccessible(page, `/docs, ${colorScheme}`, ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]);
    await page.getByRole("button", { name: "Open Group - Invoice events" }).click();
    await page.getByRole("link", { name: "invoice.paid" }).first().waitFor();
    await page.getByRole("button", { name: "Select from all clients" }).click();
    const clients = await page.getByRole("option").allInnerTexts();
    assert.deepEqual(clients.map((name) => name.trim()).sort(), ["Curl", "Fetch", "Requests", "reqwest"]);
    assertNoFaults(page, `/docs, ${colorScheme}`);
    await page.context().close();
  });
}

test("a request is tried out with a key that stays in the page", async () => {
  const page = await openReference();
  await page.getByPlaceholder("Token").first().fill(demo.key);
  const { authorization, stored } = await tryOut(page);
  assert.equal(authorization, `Bearer ${demo.key}`);
  assert.ok(!stored.includes(demo.key), stored);
  assert.ok(!page.url().includes(demo.key));
  assertNoFaults(page, "/docs");
  await page.reload();
  assert.equal(await page.getByPlaceholder("Token").first().inputValue(), "");
  await page.context().close();
});

test("a search finds an event by its kind first, and its page shows the body before the headers", async () => {
  const page = await openReference();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("invoice.paid");
  const first = page.getByRole("option").first();
  await first.getByText("invoice.paid").waitFor();
  await first.click();
  const event = page.locator("section", { has: page.getByRole("heading", { name: "invoice.paid", exact: true }) }).last();
  const top = async (name) => (await event.getByRole("heading", { name, exact: true }).boundingBox()).y;
  await event.getByRole("heading", { name: "Headers" }).waitFor();
  assert.ok((await top("Body")) < (await top("Headers")) && (await top("Headers")) < (await top("Responses")));
  await page.context().close();
});

test("the dashboard makes a key for trying, which reads, and which the tab keeps for the guides", async () => {
  const page = await openReference();
  await page.getByRole("link", { name: "let the dashboard make one" }).click();
  await page.getByText("You are signed out").waitFor();
  assertNoFaults(page, "signed out", /401/);
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "developer"));
  await page.goto(`${demo.url}/docs`);
  await page.getByRole("link", { name: "let the dashboard make one" }).click();
  await assertAccessible(page, "/dashboard/reference");
  await page.getByRole("button", { name: "Open the reference with a key" }).click();
  await page.getByRole("heading", { name: "Business Operations API" }).waitFor();
  await assertAccessible(page, "the reference with a key", ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]);
  const { authorization, stored } = await tryOut(page);
  const key = authorization.replace("Bearer ", "");
  assert.equal(stored.split("svc_live_").length, 2, "the tab has it once, for the guides");
  await page.goto(`${demo.url}/docs/sync`);
  assert.ok((await page.locator("pre code").allTextContents()).join().includes(`SVC_KEY=${key}`));
  assertNoFaults(page, "the reference with a key");
  await page.context().close();
});

test("a reader signs in as an app that an owner connects", async () => {
  const app = ["--name", "Reference", "--public", "--redirect-uri", `${demo.url}/docs`, "--scopes", "read,write"];
  const { client_id: clientId } = JSON.parse(demo.svc("app", "create", ...app, "--json"));
  const page = await openReference();
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "owner"));
  await page.goto(`${demo.url}/docs`);
  await page.getByText("Selected Auth Type").click();
  await page.getByRole("option", { name: "oauth2" }).click();
  await page.getByRole("option", { name: "bearer" }).click();
  await page.keyboard.press("Escape");
  await page.getByLabel("Client ID").first().fill(clientId);
  await page.getByRole("button", { name: "Select All" }).first().click();
  const [popup] = await Promise.all([
    page.waitForEvent("popup"),
    page.getByRole("button", { name: "Authorize", exact: true }).first().click(),
  ]);
  const [given] = await Promise.all([
    page.waitForResponse((response) => response.url() === `${demo.url}/oauth/token`),
    popup.getByRole("button", { name: "Allow" }).click(),
  ]);
  assert.equal(given.status(), 200);
  const { authorization, stored } = await tryOut(page);
  assert.match(authorization, /^Bearer svc_oat_/);
  assert.ok(!/svc_o[ar]/.test(stored), stored);
  assertNoFaults(page, "the reference as an app");
  await page.context().close();
});

test("the policy of the page refuses requests to other hosts", async () => {
  const page = await openReference();
  const refused = await page.evaluate(() => fetch("https://example.com/").then(() => false, () => true));
  assert.ok(refused);
  assertNoFaults(page, "/docs", /example\.com/, /Content Security Policy/);
  await page.context().close();
});

test("the listener of the platform API shows its document, and a request is tried out with a platform key", async () => {
  const page = await open(browser, demo.platformUrl);
  await page.goto(`${demo.platformUrl}/docs`);
  await page.getByRole("heading", { name: "Platform API" }).first().waitFor();
  const { key } = JSON.parse(demo.svc("platform-key", "create", "--scopes", "accounts:read", "--json"));
  await page.getByPlaceholder("Token").first().fill(key);
  await page.getByRole("link", { name: "List accounts" }).first().click();
  await page.getByRole("button", { name: /Test Request.*get \/accounts\)/s }).click();
  const [response] = await Promise.all([
    page.waitForResponse((response) => response.url().startsWith(`${demo.platformUrl}/platform/v1/accounts`)),
    page.getByRole("button", { name: /Send/ }).first().click(),
  ]);
  assert.equal(response.status(), 200);
  assert.equal(await response.request().headerValue("authorization"), `Bearer ${key}`);
  assertNoFaults(page, "/docs of the platform API");
  await page.context().close();
  // Each listener has its own document alone.
  assert.equal((await fetch(`${demo.url}/platform/v1/openapi.json`)).status, 404);
  assert.equal((await fetch(`${demo.platformUrl}/api/v1/openapi.json`)).status, 404);
  assert.ok(!(await (await fetch(`${demo.url}/docs`)).text()).includes("/platform/"));
});
