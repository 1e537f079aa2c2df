// Apps in the dashboard: an owner makes one, lets it work on the account, and ends its access.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { assertAccessible, assertNoFaults, open, signIn, start } from "./browser.mjs";

// The app, on this device, at whose address any port is right. It also publishes what it is.
const app = createServer((request, response) => {
  if (request.url !== "/client.json") {
    return response.setHeader("content-type", "text/html").end("<link rel=icon href=data:,><h1>App</h1>");
  }
  const client_id = `http://${request.headers.host}/client.json`;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ client_id, client_name: "Desktop <b>Helper", redirect_uris: [REGISTERED] }));
});
await new Promise((listening) => app.listen(0, "127.0.0.1", listening));
after(() => app.close());
const RETURN = `http://127.0.0.1:${app.address().port}/callback`;
const REGISTERED = "http://127.0.0.1/callback";

const oauth = ["--oauth", "on", "--oauth-clients", "metadata", "--public-url", "http://127.0.0.1"];
const { browser, demo } = await start(...oauth);

/** Looks at a page at each width, in both themes. */
async function look(page, where) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const width of [390, 768, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      const name = `${where}, ${colorScheme}, ${width}`;
      await assertAccessible(page, name);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${name} is ${overflow} pixels too wide`);
      assert.equal(await page.locator("h1").count(), 1, name);
    }
  }
}

/** Presses a button, and returns the status of the response. */
async function submit(page, name) {
  const response = page.waitForResponse((response) => response.request().method() === "POST");
  await page.getByRole("button", { name }).click();
  const sent = await response;
  await page.waitForLoadState();
  return sent.status();
}

/** Makes an app, and returns the address to which it sends the browser. */
async function createApp(page, name) {
  await page.goto(`${demo.url}/dashboard/developer-apps/new`);
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Website").fill("https://www.planner.example/");
  await page.getByLabel("Redirect URIs").fill(`${REGISTERED}\n`);
  await page.getByLabel("Scopes").selectOption("write");
  assert.equal(await submit(page, "Create app"), 200);
  assert.match(await page.getByLabel("Client secret").inputValue(), /^svc_ocs_/);
  return requestOf(await page.getByLabel("Client id").inputValue());
}

/** Returns the address to which an app sends the browser. */
function requestOf(client_id) {
  const query = new URLSearchParams({
    response_type: "code",
    client_id,
    redirect_uri: RETURN,
    scope: "read write",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
  });
  return `${demo.url}/oauth/authorize?${query}`;
}

for (const javaScriptEnabled of [true, false]) {
  test(`an app is made, connected and disconnected ${javaScriptEnabled ? "with" : "without"} JavaScript`, async () => {
    const page = await open(browser, demo.url, { javaScriptEnabled });
    const inspect = async (where) => javaScriptEnabled && look(page, where);
    await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "owner"));
    await page.getByRole("link", { name: "Developer apps" }).click();
    await page.getByRole("heading", { name: "No apps yet" }).or(page.getByRole("table")).waitFor();
    await inspect("no developer apps");
    await page.goto(`${demo.url}/dashboard/developer-apps/new`);
    await page.getByLabel("Redirect URIs").fill("http://<b>");
    assert.equal(await submit(page, "Create app"), 422);
    await inspect("a refused app");
    const name = `Route <b>Planner ${javaScriptEnabled}`;
    const request = await createApp(page, name);
    await inspect("the secret of an app");
    await page.getByRole("link", { name: "I have stored it" }).click();
    await page.getByRole("heading", { name }).waitFor();
    await inspect("an app");

    await page.goto(request);
    await inspect("the page of consent");
    if (javaScriptEnabled) {
      // Nothing has the focus, and Allow comes before Deny.
      await page.goto(request);
      const order = [];
      for (const _ of [1, 2]) {
        await page.keyboard.press("Tab");
        order.push(await page.evaluate(() => document.activeElement.textContent));
      }
      assert.deepEqual(order, ["Allow", "Deny"]);
      await page.keyboard.press("Enter");
    } else {
      await page.getByRole("button", { name: "Deny" }).click();
    }
    await page.waitForURL((url) => url.href.startsWith(`${RETURN}?error=access_denied&`));
    await page.goto(request);
    await page.getByRole("button", { name: "Allow" }).click();
    await page.waitForURL((url) => url.href.startsWith(`${RETURN}?code=svc_oac_`));
    // It is not asked again.
    await page.goto(request);
    assert.ok(page.url().startsWith(`${RETURN}?code=svc_oac_`), page.url());

    await page.goto(`${demo.url}/dashboard/apps`);
    const row = page.locator("tbody tr", { hasText: name });
    await row.getByText("www.planner.example").waitFor();
    await inspect("connected apps");
    await row.locator("summary").click();
    if (javaScriptEnabled) {
      await page.setViewportSize({ width: 390, height: 900 });
      const box = await row.getByRole("button").boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= 390, "the confirmation fits");
      await assertAccessible(page, "the confirmation");
    }
    assert.equal(await submit(page, `Disconnect ${name}`), 303);
    await page.getByText("The app was disconnected.").waitFor();
    assertNoFaults(page, "apps", /422/, /^request: .*\/callback\?/);
    await page.context().close();
  });
}

test("who is not signed in comes back to the app by a link", async () => {
  const owner = await open(browser, demo.url);
  await signIn(owner, demo.linkFor(demo.variables.SVC_TENANT, "owner"));
  const request = await createApp(owner, "Desk");
  await owner.context().clearCookies();
  await owner.goto(request);
  await owner.getByText("Desk asks for access to an account.").waitFor();
  await look(owner, "the sign-in page with an app that waits");
  await owner.goto(demo.linkFor(demo.variables.SVC_TENANT, "owner"));
  await owner.getByRole("button", { name: "Sign in" }).click();
  await owner.waitForURL(request);
  await owner.getByRole("heading", { name: "Connect an app" }).waitFor();
  assertNoFaults(owner, "signing in");
  await owner.context().close();
});

test("an app that nobody has registered is not verified, and is asked for each time", async () => {
  const page = await open(browser, demo.url);
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "owner"));
  const request = requestOf(RETURN.replace("/callback", "/client.json"));
  for (const _ of [1, 2]) {
    await page.goto(request);
    await page.getByText("Desktop <b>Helper").waitFor();
    await page.getByText("not verified").waitFor();
    await look(page, "the page of consent of an app that nobody has registered");
    await page.getByRole("button", { name: "Allow" }).click();
    await page.waitForURL((url) => url.href.startsWith(`${RETURN}?code=svc_oac_`));
  }
  await page.goto(requestOf(RETURN.replace("/callback", "/none.json")));
  await page.getByRole("heading", { name: "This app cannot be connected" }).waitFor();
  assertNoFaults(page, "an app that nobody has registered", /status of 400/, /^request: .*\/callback\?/);
  await page.context().close();
});

test("who owns no account is told, and so is who comes from an app that is not known", async () => {
  const page = await open(browser, demo.url);
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "owner"));
  const request = await createApp(page, "Board");
  await page.context().clearCookies();
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "operator"));
  await page.goto(request);
  await page.getByRole("heading", { name: "You cannot connect this app" }).waitFor();
  await look(page, "an operator");
  await page.goto(`${demo.url}/oauth/authorize?client_id=svcapp_none`);
  await page.getByRole("heading", { name: "This app cannot be connected" }).waitFor();
  await look(page, "an unknown app");
  assertNoFaults(page, "refusals", /status of 400/);
  await page.context().close();
});
