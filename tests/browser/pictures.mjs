// Takes the pictures of the documentation: `.ci/browser --pictures`.
import path from "node:path";
import { Demo } from "./demo.mjs";
import { launch, open, signIn } from "./browser.mjs";

const PICTURES = [
  ["overview", "/dashboard", "light"],
  ["deliveries", "/dashboard/deliveries", "light"],
  ["delivery", "/dashboard/deliveries", "dark", "main tbody a"],
  ["webhook", "/dashboard/webhooks", "light", "main tbody a[href]:has-text('accounting')"],
  ["keys", "/dashboard/keys", "dark"],
  ["reference", "/docs", "light"],
];

const [browser, demo] = await Promise.all([launch(), Demo.start()]);
// The charts lack the last ten seconds.
await new Promise((resolve) => setTimeout(resolve, 12_000));
try {
  for (const [name, address, colorScheme, link] of PICTURES) {
    const page = await open(browser, demo.url, { colorScheme, viewport: { width: 1280, height: 800 } });
    await signIn(page, demo.linkFor(demo.variables.SVC_TENANT, "owner"));
    await page.goto(demo.url + address);
    if (link) await Promise.all([page.waitForURL(/[0-9a-f-]{36}/), page.locator(link).first().click()]);
    await page.locator("h1").first().waitFor();
    await page.screenshot({ path: path.join(process.env.PICTURES, `${name}.png`) });
    await page.context().close();
  }
} finally {
  await browser.close();
  await demo.stop();
}
