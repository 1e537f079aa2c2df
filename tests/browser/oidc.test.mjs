// Signing in to the dashboard at a real provider program, in a real browser: `.ci/browser` runs these tests.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { assertAccessible, launch, open } from "./browser.mjs";
import { Demo } from "./demo.mjs";
import { IdentityProvider } from "./provider.mjs";

const provider = await IdentityProvider.listen();
const [browser, demo] = await Promise.all([launch(), Demo.start(...provider.flags)]);
provider.knows(demo.url);
after(async () => {
  await browser.close();
  await demo.stop();
  await provider.stop();
});

const tenant = demo.variables.SVC_TENANT;
const other = JSON.parse(demo.svc("tenant", "create", "--name", "Hill Electric", "--json")).id;
const addMember = (email, role, to = tenant) => demo.svc("member", "add", "--tenant", to, "--email", email, "--role", role);

/** Opens the sign-in page. Of the faults, only the refusals of pages and requests to the provider are expected. */
async function signInPage() {
  const page = await open(browser, demo.url);
  await page.goto(`${demo.url}/dashboard/sign-in`);
  return page;
}

/** Signs in at the provider as a person does, and waits for the page of the dashboard that follows. */
async function signInAs(page, email) {
  await page.getByRole("button", { name: "Sign in with 127.0.0.1" }).click();
  await page.getByLabel("Email").fill(email);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${demo.url}/dashboard/**`);
}

function assertNoOtherFaults(page, ...expected) {
  const known = [`request: ${provider.issuer}/`, ...expected];
  assert.deepEqual(page.faults.filter((fault) => !known.some((start) => fault.startsWith(start))), []);
}

test("a member signs in, does what the role allows, and loses it with the next request", async () => {
  addMember("ada@example.com", "owner");
  const page = await signInPage();
  await assertAccessible(page, "the sign-in page");
  await signInAs(page, "ada@example.com");
  assert.match(await page.locator("header").innerText(), /ada@example\.com/);
  const cookies = await page.context().cookies(demo.url);
  const session = cookies.find(({ name }) => name === "svc_session");
  assert.deepEqual([session.httpOnly, session.sameSite], [true, "Lax"]);
  assert.equal(cookies.some(({ name }) => name === "svc_oidc"), false, "the attempt is forgotten");

  await page.goto(`${demo.url}/dashboard/settings`);
  await page.getByRole("textbox", { name: "Email address" }).fill("bob@example.com");
  await page.getByLabel("Role", { exact: true }).last().selectOption("viewer");
  await page.getByRole("button", { name: "Add member" }).click();
  assert.match(await page.getByLabel("Sign-in link").inputValue(), /\/dashboard\/sign-in\?token=/);
  await assertAccessible(page, "the link of a new member");
  await page.getByRole("link", { name: "I have copied it" }).click();
  await page.getByRole("rowheader", { name: "bob@example.com" }).waitFor();
  await assertAccessible(page, "the settings with members");
  assertNoOtherFaults(page);

  addMember("ada@example.com", "viewer");
  assert.equal((await page.goto(`${demo.url}/dashboard/keys/new`)).status(), 403);
  demo.svc("member", "remove", "--tenant", tenant, "--email", "ada@example.com");
  await page.goto(`${demo.url}/dashboard`);
  assert.match(await page.locator("main").innerText(), /You are signed out/);
  await page.context().close();
});

test("a member of two accounts chooses one", async () => {
  addMember("carol@example.com", "owner");
  addMember("carol@example.com", "viewer", other);
  const page = await signInPage();
  await signInAs(page, "carol@example.com");
  await page.getByRole("heading", { name: "Your accounts" }).waitFor();
  await assertAccessible(page, "the accounts");
  await page.getByRole("button", { name: "Open Hill Electric" }).click();
  await page.waitForURL(`${demo.url}/dashboard/`);
  assert.match(await page.locator("header").innerText(), /Hill Electric/);
  await page.getByRole("link", { name: "Your accounts" }).click();
  assert.equal(await page.getByText("shown now").count(), 1);
  assertNoOtherFaults(page);
  await page.context().close();
});

for (const [email, text] of [
  ["eve@example.com", /eve@example\.com is a member of no account/],
  ["unverified@example.com", /no verified email address/],
]) {
  test(`${email} is told what to do`, async () => {
    addMember("unverified@example.com", "owner");
    const page = await signInPage();
    await signInAs(page, email);
    assert.match(await page.locator("main").innerText(), text);
    await assertAccessible(page, email);
    assertNoOtherFaults(page, "console: Failed to load resource: the server responded with a status of 403");
    await page.context().close();
  });
}

test("who cancels at the provider is told so", async () => {
  const page = await signInPage();
  await page.getByRole("button", { name: "Sign in with 127.0.0.1" }).click();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.waitForURL(`${demo.url}/dashboard/**`);
  assert.match(await page.locator("main").innerText(), /refused \(access_denied\)/);
  await page.context().close();
});

test("an answer of the provider works once", async () => {
  addMember("dave@example.com", "viewer");
  const page = await signInPage();
  let answer;
  page.on("request", (request) => {
    if (request.url().includes("/oidc/callback")) answer = request.url();
  });
  await signInAs(page, "dave@example.com");
  await page.goto(answer);
  assert.match(await page.locator("main").innerText(), /Begin again/);
  const stranger = await open(browser, demo.url);
  await stranger.goto(answer);
  assert.match(await stranger.locator("main").innerText(), /Begin again/);
  await page.context().close();
  await stranger.context().close();
});
