// A file is imported in the dashboard, with JavaScript and without.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible, assertNoFaults, open, signIn, start } from "./browser.mjs";

const { browser, demo } = await start("--no-rate-limit");

/** Fails if a page is not accessible or too wide at one of the widths that people have. */
async function assertInOrder(page, name, javaScriptEnabled) {
  for (const width of [1280, 768, 390]) {
    await page.setViewportSize({ width, height: 900 });
    if (javaScriptEnabled) await assertAccessible(page, `${name}, ${width}`);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `${name} is ${overflow} pixels too wide at ${width}`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  assertNoFaults(page, name);
}

for (const javaScriptEnabled of [true, false]) {
  test(`a file is uploaded, checked and imported, ${javaScriptEnabled ? "with" : "without"} JavaScript`, async () => {
    const page = await open(browser, demo.url, { javaScriptEnabled });
    await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "developer"));
    await page.goto(`${demo.url}/dashboard/contacts`);
    await page.getByRole("link", { name: "Import", exact: true }).click();
    await assertInOrder(page, "the form", javaScriptEnabled);
    const number = javaScriptEnabled ? 1 : 2;
    const rows = Array.from({ length: 4_200 }, (_, row) => `p${row}@import${number}.example,Perth,${row}`);
    rows[1] = "no address,Perth,1";
    const file = { name: "contacts.csv", mimeType: "text/csv", buffer: Buffer.from(`E-Mail,City,Notes\n${rows.join("\n")}\n`) };
    await page.getByLabel("File", { exact: true }).setInputFiles(file);
    await page.getByRole("button", { name: "Upload" }).click();
    await page.getByLabel("Field of the column 1").selectOption("email");
    await page.getByRole("button", { name: "Save and show again" }).click();
    await assertInOrder(page, "the preview", javaScriptEnabled);
    assert.match(await page.locator("main").innerText(), /The first 20 rows as they are read/);
    for (const [button, done] of [["Check the whole file", "The whole file was checked."], ["Import the contacts", "The whole file was imported."]]) {
      await page.getByRole("button", { name: button }).click();
      if (!javaScriptEnabled) {
        await page.getByText("% of the file is done").waitFor();
        await assertInOrder(page, "a step", javaScriptEnabled);
        await page.getByRole("button", { name: "Continue" }).click();
      }
      await page.getByText(done).waitFor();
      const text = await page.locator("main").innerText();
      assert.match(text, /4,199/);
      await assertInOrder(page, done, javaScriptEnabled);
    }
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Download the refused rows" }).click(),
    ]);
    assert.equal(download.suggestedFilename(), "refused.csv");
    await page.context().close();
  });
}
