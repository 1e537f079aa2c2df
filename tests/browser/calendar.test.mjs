// The calendar in a real browser: `.ci/browser` runs these tests.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible, assertNoFaults, open, signIn, start } from "./browser.mjs";

const { browser, demo } = await start();

/** The bookings of one day, of which a month does not show all. */
const contact = await demo.api("POST", "contacts", { email: "calendar@example.com", first_name: "Ada", last_name: "Lovelace" });
const bookings = [];
for (let minute = 0; minute < 8; minute++) {
  bookings.push(await demo.api("POST", "bookings", {
    contact_id: contact.id,
    service_name: minute ? `Visit ${minute} of a long name that has no place in a day of a month` : "First",
    start_time: `2031-03-19T02:0${minute}:00Z`,
  }));
}
await demo.api("PATCH", `bookings/${bookings[1].id}`, { status: "cancelled" });

const url = (view) => `${demo.url}/dashboard/calendar?view=${view}&date=2031-03-19`;

for (const colorScheme of ["light", "dark"]) {
  test(`each view of the calendar is in order, ${colorScheme}`, async () => {
    const page = await open(browser, demo.url, { colorScheme });
    await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "owner"));
    for (const view of ["month", "week", "day"]) {
      await page.goto(url(view));
      await page.getByRole("link", { name: /First/ }).waitFor();
      for (const width of [1280, 768, 390]) {
        await page.setViewportSize({ width, height: 900 });
        await assertAccessible(page, `${view}, ${colorScheme}, ${width}`);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${view} is ${overflow} pixels too wide at ${width}`);
      }
      assertNoFaults(page, view);
    }
    await page.context().close();
  });
}

test("on a small screen a month is the list of the days that have entries", async () => {
  const page = await open(browser, demo.url, { viewport: { width: 390, height: 844 } });
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "viewer"));
  await page.goto(url("month"));
  assert.equal(await page.locator(".calendar td:visible").count(), 1);
  await page.getByRole("link", { name: /Wednesday, 19 Mar 2031/ }).waitFor();
  await page.getByRole("link", { name: /and 4 more/ }).click();
  await page.getByRole("heading", { name: "Wednesday, 19 Mar 2031" }).waitFor();
  await page.context().close();
});

test("an entry opens its record, and a free day or hour the form of a booking with its start", async () => {
  const page = await open(browser, demo.url);
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "developer"));
  await page.goto(url("month"));
  await page.getByRole("link", { name: /First/ }).click();
  await page.waitForURL(`${demo.url}/dashboard/bookings/${bookings[0].id}`);
  await page.goto(url("month"));
  // Anywhere in the cell.
  const cell = page.locator(".calendar td", { has: page.locator("time[datetime='2031-03-12']") });
  const { height } = await cell.boundingBox();
  await cell.click({ position: { x: 12, y: height - 12 } });
  await page.waitForURL(/bookings\/new/);
  assert.equal(await page.getByLabel("Starts", { exact: false }).first().inputValue(), "2031-03-12T09:00");
  await page.goto(url("day"));
  await page.getByRole("link", { name: "New booking at 14:00" }).click();
  await page.waitForURL(/bookings\/new/);
  assert.equal(await page.getByLabel("Starts", { exact: false }).first().inputValue(), "2031-03-19T14:00");
  // Anywhere in the rows of an entry.
  await page.goto(url("day"));
  const block = page.locator(".hours .block").first();
  const size = await block.boundingBox();
  await block.click({ position: { x: size.width - 8, y: size.height - 8 } });
  await page.waitForURL(/bookings\/[0-9a-f-]{36}$/);
  // In a week, an entry is beside its hours, and what is beside it makes a booking. Clocks there show 13:00, eleven hours later.
  await page.goto(url("week"));
  const [first, hour] = await Promise.all([
    page.locator(".timed li", { hasText: "First" }).boundingBox(),
    page.locator(".clock li", { hasText: "13:00" }).boundingBox(),
  ]);
  assert.ok(Math.abs(first.y - hour.y) < 12, `the entry is at ${first.y}, its hour at ${hour.y}`);
  assert.equal(await page.locator("[data-hours] tr:nth-child(3) .timed li").count(), 2, "the others are above");
  const thursday = page.locator("[data-hours] tr:nth-child(4) .timed");
  const box = await thursday.boundingBox();
  const rows = 2 * Number(await page.locator("[data-hours]").getAttribute("data-hours"));
  await thursday.click({ position: { x: box.width / 2, y: (box.height * 5.5) / rows } });
  await page.waitForURL(/bookings\/new/);
  assert.equal(await page.getByLabel("Starts", { exact: false }).first().inputValue(), "2031-03-20T09:30");
  assertNoFaults(page, "the calendar");
  await page.context().close();
});

test("a booking that is moved keeps its length, until its end is typed", async () => {
  const page = await open(browser, demo.url);
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "developer"));
  await page.goto(`${demo.url}/dashboard/bookings/${bookings[2].id}/edit`);
  const [starts, ends] = ["start_time", "end_time"].map((name) => page.locator(`input[name=${name}]`));
  assert.deepEqual([await starts.inputValue(), await ends.inputValue()], ["2031-03-19T13:02", "2031-03-19T14:02"]);
  await starts.fill("2031-03-21T23:30");
  assert.equal(await ends.inputValue(), "2031-03-22T00:30");
  await ends.fill("2031-03-22T02:00");
  await starts.fill("2031-03-21T09:00");
  assert.equal(await ends.inputValue(), "2031-03-22T02:00");
  assertNoFaults(page, "the form of a booking");
  await page.context().close();
});

test("a calendar program reads the address that an owner creates, until it is revoked", async () => {
  const page = await open(browser, demo.url);
  await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "owner"));
  await page.goto(`${demo.url}/dashboard/calendar`);
  await page.locator("summary", { hasText: "Subscribe in another calendar" }).click();
  await page.getByRole("button", { name: "Create address" }).click();
  const address = await page.getByLabel("Address", { exact: true }).inputValue();
  assert.ok(address.startsWith(`${demo.url}/dashboard/calendar.ics?secret=`), address);
  await assertAccessible(page, "the address of the calendar");
  const file = await fetch(address);
  assert.equal(file.headers.get("content-type"), "text/calendar; charset=utf-8");
  assert.match(await file.text(), /^BEGIN:VCALENDAR\r\n[^]*END:VCALENDAR\r\n$/);
  await page.goto(`${demo.url}/dashboard/calendar`);
  await page.locator("summary", { hasText: "Revoke address" }).click();
  await assertAccessible(page, "the question");
  await page.getByRole("button", { name: "Revoke address" }).click();
  await page.getByText("The address of the calendar was revoked.").waitFor();
  assert.equal((await fetch(address)).status, 404);
  assertNoFaults(page, "the address of the calendar");
  await page.context().close();
});
