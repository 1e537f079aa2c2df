// The dashboard in a real browser: `.ci/browser` runs these tests.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible, assertNoFaults, crawl, open, signIn, start } from "./browser.mjs";

const { browser, demo } = await start("--oauth", "on", "--public-url", "http://127.0.0.1");

test("a link signs in once", async () => {
  const link = demo.linkFor(demo.variables.SVC_TENANT, "viewer");
  const first = await open(browser, demo.url);
  await signIn(first, link);
  const second = await open(browser, demo.url);
  await second.goto(link);
  const button = second.getByRole("button").first();
  if (await button.count()) await button.click();
  assert.doesNotMatch(await second.locator("main").innerText(), /Overview/);
  await Promise.all([first.context().close(), second.context().close()]);
});

test("a link of each role opens the pages of that role alone", async () => {
  const [all, developer, owner] = ["/deliveries", "/webhooks/new", "/keys/new"];
  for (const [role, opened, closed] of [
    ["viewer", [all], [developer, owner, "/accounts"]],
    ["developer", [all, developer], [owner, "/accounts"]],
    ["owner", [all, developer, owner], ["/accounts"]],
    ["operator", ["/accounts", "/system"], [owner]],
  ]) {
    const page = await open(browser, demo.url);
    await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, role));
    // An operator who views no account is sent to the list of accounts.
    const opens = async (path) => {
      const response = await page.goto(`${demo.url}/dashboard${path}`);
      return response.ok() && new URL(response.url()).pathname === `/dashboard${path}`;
    };
    for (const path of opened) assert.equal(await opens(path), true, `${role} ${path}`);
    for (const path of closed) assert.equal(await opens(path), false, `${role} ${path}`);
    await page.context().close();
  }
});

test("two accounts side by side see nothing of each other", async () => {
  const other = JSON.parse(demo.svc("tenant", "create", "--name", "Other account", "--json")).id;
  const contact = await demo.api("POST", "contacts", { email: "only@harbour.example" });
  const [own, theirs] = await Promise.all([open(browser, demo.url), open(browser, demo.url)]);
  await signIn(own, demo.linkFor(demo.variables.SVC_TENANT, "owner"));
  await signIn(theirs, demo.linkFor(other, "owner"));
  const paths = [...(await crawl(own, demo.url, async () => {})).values()].flat();
  for (const path of paths) {
    await theirs.goto(demo.url + path);
    const text = await theirs.locator("body").innerText();
    for (const secret of ["only@harbour.example", contact.id]) assert.ok(!text.includes(secret), path);
    if (/[0-9a-f]{8}-[0-9a-f-]{27}/.test(path.replace(/\?.*/, ""))) assert.match(text, /not found|no such/i, path);
  }
  await Promise.all([own.context().close(), theirs.context().close()]);
});

test("hostile names are text", async () => {
  const names = [
    `<script>alert("name")</script><img src=x onerror=alert(1)>`,
    "\u202egnp.exe\u2066 \u05e9\u05dc\u05d5\u05dd",
    "x".repeat(100),
  ];
  for (const first_name of names) await demo.api("POST", "contacts", { email: `hostile${first_name.length}@example.com`, first_name });
  const page = await open(browser, demo.url);
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "owner"));
  await crawl(page, demo.url, async (path) => {
    assertNoFaults(page, path);
    assert.equal(await page.locator("main img[src=x]").count(), 0, path);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `${path} is ${overflow} pixels too wide`);
  });
  await page.context().close();
});

test("deliveries and requests appear without a reload, and the list can be paused", async () => {
  const page = await open(browser, demo.url);
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "developer"));
  await page.goto(`${demo.url}/dashboard/deliveries`);
  const status = page.getByRole("status").filter({ hasText: /Live|Paused|Connecting/ });
  await page.getByText("Live", { exact: true }).waitFor();
  const selected = page.locator("tbody input").nth(1);
  const [id] = [await selected.getAttribute("value"), await selected.check()];
  const newest = await page.locator("tbody tr").first().getAttribute("data-row");
  const first = page.locator("tbody tr").first();
  const rows = await page.locator("tbody tr").count();
  const job = await demo.api("POST", "jobs", { title: "Appears by itself" });
  await page.waitForFunction((before) => document.querySelector("tbody tr").dataset.row > before, newest);
  await first.getByText(/job.created/).waitFor();
  await page.locator("tbody tr", { hasText: "job.created" }).first().getByText("delivered").waitFor();
  assert.ok((await page.locator("tbody tr").count()) > rows || rows === 50);
  assert.ok(await page.locator(`tbody input[value="${id}"]`).isChecked(), "a selection stays");
  await page.getByRole("button", { name: "Pause" }).click();
  assert.equal(await status.innerText(), "Paused");
  assertNoFaults(page, "/dashboard/deliveries");
  await assertAccessible(page, "a live list");

  await page.goto(`${demo.url}/dashboard/requests?path=jobs`);
  await page.getByText("Live", { exact: true }).waitFor();
  await Promise.all([demo.api("GET", `jobs/${job.id}`), demo.api("GET", "contacts")]);
  await page.getByText(`GET /api/v1/jobs/…${job.id.slice(-12)}`).waitFor();
  assert.equal(await page.getByText("/api/v1/contacts").count(), 0, "the filter hides it");
  // Whoever may no longer look sees no more.
  await page.context().clearCookies();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("Not live").waitFor();
  assertNoFaults(page, "/dashboard/requests", /401/);
  await page.context().close();
});

test("on a small screen rows are cards, with their status, and the pages are in a menu", async () => {
  const page = await open(browser, demo.url, { viewport: { width: 390, height: 844 } });
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "owner"));
  for (const path of ["/deliveries", "/webhooks", "/keys", "/invoices"]) {
    await page.goto(`${demo.url}/dashboard${path}`);
    const hidden = await page.locator("tbody .badge").evaluateAll((all) => all.filter((badge) => {
      const { left, right } = badge.getBoundingClientRect();
      return left < 0 || right > innerWidth || right === left;
    }).length);
    assert.equal(hidden, 0, path);
    assert.ok((await page.locator("tbody .badge").count()) > 0, path);
    // A record's amount, contact and status need no heading.
    const [label, content] = path === "/invoices" ? ["Due", '"Due"'] : ["Status", '"Status"'];
    const shown = await page.locator(`tbody td[data-label=${label}]`).first()
      .evaluate((cell) => getComputedStyle(cell, "::before").content);
    assert.equal(shown, content, path);
  }
  const [filters, selection] = [page.getByLabel("Filters"), page.getByRole("button", { name: "Apply to the selected" })];
  assert.equal(await page.getByLabel("Until").isVisible(), false);
  await filters.check();
  assert.equal(await page.getByLabel("Until").isVisible(), true);
  assert.equal(await selection.isVisible(), false);
  await page.locator("td.select input").first().check();
  assert.equal(await selection.isVisible(), true, "what can be done shows once a record is ticked");
  const link = page.getByRole("link", { name: "Contacts" });
  assert.equal(await link.isVisible(), false);
  await page.getByLabel("Menu").check();
  await link.click();
  await page.getByRole("heading", { name: "Contacts", exact: true }).waitFor();
  assertNoFaults(page, "a small screen");
  await page.context().close();
});

test("lists are gone through by keys, which a dialog lists and turns off", async () => {
  const page = await open(browser, demo.url);
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "viewer"));
  await page.goto(`${demo.url}/dashboard/events`);
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("href"));
  const hrefs = await page.locator("tbody th a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  for (const [key, row] of [["j", 0], ["j", 1], ["j", 2], ["k", 1]]) {
    await page.keyboard.press(key);
    assert.equal(await focused(), hrefs[row], `${key} ${row}`);
  }
  await page.keyboard.press("?");
  const dialog = page.getByRole("dialog", { name: "Keys" });
  for (const key of ["j", "k", "Enter", "/ or Ctrl-K"]) await dialog.getByText(key, { exact: true }).waitFor();
  await assertAccessible(page, "the list of keys");
  await dialog.getByLabel("Use the keys of one letter").uncheck();
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  assert.equal(await focused(), hrefs[1], "they are off");
  await page.keyboard.press("?");
  await dialog.getByLabel("Use the keys of one letter").check();
  await page.keyboard.press("Escape");
  await Promise.all([page.waitForURL(`${demo.url}${hrefs[1]}`), page.keyboard.press("Enter")]);
  assertNoFaults(page, "keys");
  await page.context().close();
});

for (const javaScriptEnabled of [true, false]) {
  test(`an endpoint is tried, added, changed and deleted ${javaScriptEnabled ? "with" : "without"} JavaScript`, async () => {
    const page = await open(browser, demo.url, { javaScriptEnabled });
    await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "developer"));
    await page.goto(`${demo.url}/dashboard/webhooks/new`);
    const kind = page.getByLabel("invoice.paid");
    assert.equal(await kind.isVisible(), false, "all events are chosen");
    await page.getByLabel("These kinds alone:").check();
    await kind.check();
    // The demo allows private hosts. It takes no webhooks itself.
    const url = `${demo.url}/no?<b>&"='${javaScriptEnabled}`;
    await page.getByLabel("URL").fill(url);
    await page.getByLabel("Description").fill("<i>hostile</i>");
    assert.equal(await submit(page, "Try it"), 200);
    await page.getByText("Your server has nothing at this path (404).").waitFor();
    assert.equal(await page.getByLabel("URL").inputValue(), url);
    assert.ok(await kind.isChecked());
    if (javaScriptEnabled) await assertAccessible(page, "an endpoint that was tried");
    assert.equal(await submit(page, "Add endpoint"), 200);
    await page.getByRole("link", { name: "I have stored it" }).click();
    await page.getByRole("link", { name: "Edit" }).click();
    await page.getByLabel("URL").fill("ftp://<b>");
    assert.equal(await submit(page, "Save"), 422);
    assert.equal(await page.getByLabel("URL").inputValue(), "ftp://<b>");
    await page.getByLabel("URL").fill(`${demo.url}/changed`);
    assert.equal(await submit(page, "Save"), 303);
    await page.getByRole("heading", { name: `${demo.url}/changed` }).waitFor();
    await page.locator("summary", { hasText: "Delete" }).click();
    await page.getByText(`${demo.url}/changed is deleted with its secret, for good.`).waitFor();
    assert.equal(await submit(page, "Delete endpoint"), 303);
    await page.getByText("The endpoint was deleted.").waitFor();
    assertNoFaults(page, "an endpoint", /422/);
    await page.context().close();
  });
}

test("a contact is suggested by a part of the name, created in the form, and pages are found by Ctrl-K", async () => {
  const page = await open(browser, demo.url);
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "owner"));
  await demo.api("POST", "contacts", { email: "picked@example.com", first_name: "Wilhelmina", last_name: "Picked" });
  await page.goto(`${demo.url}/dashboard/invoices/new`);
  const field = page.getByRole("combobox", { name: "Contact" });
  await field.pressSequentially("helmina pick");
  const list = page.getByRole("listbox", { name: "Suggestions" });
  await list.getByRole("option", { name: "Wilhelmina Picked picked@example.com" }).first().waitFor();
  await assertAccessible(page, "a form with suggestions");
  await field.press("ArrowDown");
  await field.press("Enter");
  assert.equal(await field.inputValue(), "Wilhelmina Picked");
  assert.ok(await list.isHidden());
  await page.getByLabel("Total").fill("12.50");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("link", { name: "Wilhelmina Picked" }).first().waitFor();

  await page.goto(`${demo.url}/dashboard/quotes/new`);
  await page.getByLabel("Total").fill("7");
  await field.pressSequentially("Nobody Yet");
  await list.getByRole("option", { name: "New contact" }).click();
  const dialog = page.getByRole("dialog", { name: "New contact" });
  // It is left by a button too, as there is no key for it on a phone.
  await dialog.getByRole("link", { name: "Cancel" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.equal(await field.inputValue(), "Nobody Yet");
  await field.fill("");
  await field.pressSequentially("Nobody Yet");
  await list.getByRole("option", { name: "New contact" }).click();
  assert.equal(await dialog.getByLabel("Last name").inputValue(), "Yet");
  await assertAccessible(page, "the dialog of a new contact");
  await dialog.getByLabel("Email").fill("not an address");
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.locator("[aria-invalid=true]").waitFor();
  await dialog.getByLabel("Email").fill("nobody.yet@example.com");
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual([await field.inputValue(), await page.getByLabel("Total").inputValue()], ["Nobody Yet", "7"]);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("link", { name: "Nobody Yet" }).first().waitFor();

  await page.keyboard.press("Control+k");
  await page.keyboard.type("audit");
  await page.getByRole("option", { name: "Audit log" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/audit$/);
  assertNoFaults(page, "suggestions", /422/);
  await page.context().close();
});

test("deliveries are ticked all at once, attempts compared, and what matches replayed with its progress", async () => {
  const page = await open(browser, demo.url);
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "developer"));
  await page.goto(`${demo.url}/dashboard/deliveries?status=failed`);
  await page.getByRole("link", { name: "Select all" }).click();
  const boxes = await page.locator("tbody input").count();
  assert.equal(await page.locator("tbody input:checked").count(), boxes);
  await page.locator("tbody th a").first().click();
  await page.waitForURL(/deliveries\/0/);
  const before = await page.locator(".timeline li").count();
  assert.equal(await submit(page, /^(Send again|Enable it and send)$/), 303);
  // The next attempt appears by itself.
  await page.locator(".timeline li").nth(before).waitFor();
  const ticks = page.getByRole("checkbox", { name: /Compare attempt/ });
  await ticks.nth(0).check();
  await ticks.nth(1).check();
  await page.getByRole("button", { name: "Compare the two ticked attempts" }).click();
  await page.getByRole("heading", { name: "Comparison" }).waitFor();
  await assertAccessible(page, "a comparison");
  await page.getByRole("link", { name: "Back to one attempt" }).click();
  await page.getByRole("heading", { name: "As curl" }).waitFor();

  const endpoint = (await demo.api("GET", "webhooks")).find((endpoint) => endpoint.enabled).id;
  await page.goto(`${demo.url}/dashboard/deliveries?endpoint=${endpoint}&within=24h`);
  await page.getByRole("link", { name: "Replay all that match" }).click();
  await page.getByRole("heading", { name: /^[0-9,]+ deliveries$/ }).waitFor();
  await assertAccessible(page, "the question before a replay");
  assert.equal(await submit(page, /^Send .* again$/), 303);
  await page.locator("#progress").getByText("finished").waitFor();
  assertNoFaults(page, "replays");
  await page.context().close();
});

/** Presses the button of a form, and returns the response. */
async function submit(page, name) {
  const response = page.waitForResponse((response) => response.request().method() === "POST");
  await page.locator("main").getByRole("button", { name }).click();
  const sent = await response;
  await page.waitForLoadState();
  return sent.status();
}

test("each form shows bad input again, with what is wrong", async () => {
  const tenant = demo.variables.SVC_TENANT;
  const long = `<b>"'&${"x".repeat(400)}`;
  const forms = [
    ["owner", "/keys/new", "Create key", { Name: long }, /at most 300 characters/],
    ["owner", "/webhooks/new", "Add endpoint", { URL: "ftp://example.com/<b>" }, /https/],
    ["owner", "/settings", "Save", { Name: "", "Time zone": "Mars/<b>" }, /must not be empty/],
    ["developer", "/contacts/new", "Create", { "First name": long, Email: "<b>" }, /at most 300 characters/],
    ["developer", "/invoices/new", "Create", { Total: "1,50" }, /with a point/],
    ["developer", "/quotes/new", "Create", { Contact: "<b>nobody", Total: "1" }, /No contact has this text/],
    ["developer", "/bookings/new", "Create", { Contact: "<b>@example.com", Service: long }, /No contact has this text/],
    ["developer", "/jobs/new", "Create", { Title: long }, /at most 255 characters/],
    ["operator", `/accounts/${tenant}`, "Save limits", { "All requests": "<b>" }, /number|from 1/i],
  ];
  for (const [role, path, button, fields, error] of forms) {
    const page = await open(browser, demo.url);
    await signIn(page, demo.linkFor(tenant, role));
    await page.goto(`${demo.url}/dashboard${path}`);
    for (const [label, value] of Object.entries(fields)) await page.locator("main").getByLabel(label, { exact: true }).fill(value);
    assert.equal(await submit(page, button), 422, path);
    const invalid = page.locator("[aria-invalid=true]").first();
    assert.equal(await invalid.inputValue(), Object.values(fields)[0], path);
    const about = await invalid.getAttribute("aria-describedby");
    assert.match(await page.locator(`#${about}`).innerText(), error, path);
    assertNoFaults(page, path, /422/);
    await assertAccessible(page, `${path} with bad input`);
    await page.context().close();
  }
});

for (const javaScriptEnabled of [true, false]) {
  test(`records are created, edited and worked with, ${javaScriptEnabled ? "with" : "without"} JavaScript`, async () => {
    const page = await open(browser, demo.url, { javaScriptEnabled });
    await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "developer"));
    const main = page.locator("main");
    const fill = async (fields) => {
      for (const [label, value] of Object.entries(fields)) await main.getByLabel(label, { exact: true }).fill(value);
    };
    const visit = async (path) => assert.equal((await page.goto(`${demo.url}/dashboard${path}`)).status(), 200, path);
    const name = `Wanda ${javaScriptEnabled ? "With" : "Without"}`;
    const email = `${name.toLowerCase().replace(" ", ".")}@example.com`;

    await visit("/contacts");
    await main.getByRole("link", { name: "New contact" }).click();
    await fill({ "First name": name, Email: "<b>" });
    assert.equal(await submit(page, "Create"), 422);
    assert.equal(await main.getByLabel("First name").inputValue(), name, "what was typed stays");
    if (javaScriptEnabled) await assertAccessible(page, "a refused contact");
    await fill({ Email: email });
    assert.equal(await submit(page, "Create"), 303);
    await main.getByRole("heading", { name }).waitFor();
    const contact = new URL(page.url()).pathname;

    await main.locator("summary", { hasText: "New" }).click();
    await main.getByRole("link", { name: "New invoice" }).click();
    assert.equal(await main.getByLabel("Contact").inputValue(), name);
    await fill({ Total: "100", Due: "2030-01-31" });
    assert.equal(await submit(page, "Create"), 303);
    const number = (await main.getByRole("heading", { level: 1 }).innerText()).trim();
    const invoice = new URL(page.url()).pathname;
    assert.equal(await submit(page, "Mark as sent and make a link"), 303);
    const pay = async (amount) => {
      const form = main.locator("details", { has: page.locator("#amount-primary") });
      if ((await form.getAttribute("open")) === null) await form.locator("summary").click();
      await page.locator("#amount-primary").fill(amount);
      return submit(page, "Record the payment");
    };
    assert.equal(await pay("100.01"), 422);
    assert.equal(await page.locator("#amount-primary").inputValue(), "100.01");
    if (javaScriptEnabled) {
      await assertAccessible(page, "a refused payment");
      for (const width of [390, 768, 1280]) {
        await page.setViewportSize({ width, height: 900 });
        const box = await main.getByRole("button", { name: "Record the payment" }).boundingBox();
        assert.ok(box.x >= 0 && box.x + box.width <= width, `the form of a payment fits ${width}`);
      }
    }
    assert.equal(await pay("50"), 303);
    await main.getByText("partial", { exact: true }).first().waitFor();
    assert.equal(await main.locator("summary", { hasText: "Void" }).count(), 0, "nobody voids what was paid on");

    await visit(`/invoices/new?contact=${contact.split("/").pop()}`);
    await fill({ Total: "9860.50" });
    await submit(page, "Create");
    await main.locator("summary", { hasText: "Void" }).click();
    await main.getByText(`AUD 9,860.50, of ${name}? It cannot be undone.`).waitFor();
    assert.equal(await submit(page, "Void"), 303);
    await main.getByText("cancelled", { exact: true }).first().waitFor();

    await page.goto(demo.url + contact);
    await main.getByRole("link", { name: "Edit" }).click();
    await fill({ Company: "Wanda & Sons" });
    assert.equal(await submit(page, "Save"), 303);
    await main.getByText("Wanda & Sons").first().waitFor();
    await page.goto(demo.url + invoice);
    assert.match(await main.innerText(), new RegExp(`${number}[^]*Partial`));
    assertNoFaults(page, "records", /422/);
    await page.context().close();
  });
}

test("a form of a session that has ended, and one without its token, change nothing", async () => {
  const tenant = demo.variables.SVC_TENANT;
  const page = await open(browser, demo.url);
  await signIn(page, demo.linkFor(tenant, "owner"));
  const fill = async () => {
    await page.goto(`${demo.url}/dashboard/keys/new`);
    await page.getByLabel("Name").fill("Never made");
  };
  await fill();
  await page.locator("main input[name=csrf]").evaluate((field) => field.remove());
  assert.equal(await submit(page, "Create key"), 403);
  await page.getByRole("heading", { name: "The form was not accepted" }).waitFor();
  await assertAccessible(page, "a form without its token");
  await fill();
  await page.context().clearCookies();
  assert.equal(await submit(page, "Create key"), 401);
  await page.getByRole("heading", { name: "You are signed out" }).waitFor();
  await assertAccessible(page, "a session that has ended");
  assertNoFaults(page, "refused forms", /40[13]/);
  assert.doesNotMatch(demo.svc("key", "list", "--tenant", tenant), /Never made/);
  await page.context().close();
});

test("the reference of the API asks no other host", async () => {
  const page = await open(browser, demo.url);
  await page.goto(`${demo.url}/docs`);
  await page.getByText("Contacts").first().waitFor();
  assertNoFaults(page, "/docs");
  await page.context().close();
});
