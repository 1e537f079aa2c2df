// The examples, with svc-server.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { Server } from "node:http";
import net from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { serve } from "@hono/node-server";
import { Client } from "svc-client";
import type { WebhookEvent } from "svc-client/webhooks";
import { run } from "../examples/nightly-sync.js";
import { app } from "../examples/oauth-app.js";
import { receiver as express } from "../examples/webhook-express.js";
import { receiver as hono } from "../examples/webhook-hono.js";
import { skipped, startServer } from "./live.js";

const options = { skip: skipped, timeout: 120_000 };

async function listening(server: Server): Promise<string> {
  if (!server.listening) await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("nightly-sync keeps a copy and reads what changed", options, async () => {
  const server = await startServer("--no-rate-limit");
  const folder = await mkdtemp(`${tmpdir()}/svc-`);
  try {
    const client = new Client({ url: server.url, key: server.key });
    const ids = async () => Object.keys((JSON.parse(await readFile(`${folder}/contacts.json`, "utf8")) as { records: object }).records);
    const first = await run(client, folder);
    assert.ok(first > 30, `${first} records`);
    const ada = await client.contacts.create({ email: "ada@example.com" });
    // The last record of each copy is read again.
    assert.equal(await run(client, folder), 3);
    assert.ok((await ids()).includes(ada.id));
    await client.contacts.delete(ada);
    await run(client, folder);
    assert.ok(!(await ids()).includes(ada.id));
    let count = 0;
    for await (const _ of client.contacts.list()) count++;
    assert.equal((await ids()).length, count);
  } finally {
    await rm(folder, { recursive: true });
    await server.stop();
  }
});

type Receiver = (secrets: string[], handle: (event: WebhookEvent, id: string) => Promise<void>) => Server;
const receivers: { [name: string]: Receiver } = {
  express: (secrets, handle) => express(secrets, handle).listen(0, "127.0.0.1"),
  hono: (secrets, handle) => serve({ fetch: hono(secrets, handle).fetch, port: 0, hostname: "127.0.0.1" }) as Server,
};

for (const [name, start] of Object.entries(receivers)) {
  test(`the receiver in ${name} takes what is signed, and nothing else`, options, async () => {
    const server = await startServer();
    let arrived: (event: WebhookEvent) => void = () => undefined;
    const event = new Promise<WebhookEvent>((done) => (arrived = done));
    const secrets: string[] = [`whsec_${Buffer.alloc(32).toString("base64")}`];
    const probe = start(secrets, async () => assert.fail("it took what is not signed"));
    try {
      const headers = { "x-svc-signature": `sha256=${"0".repeat(64)}` };
      const refused = await fetch(`${await listening(probe)}/webhooks`, { method: "POST", headers, body: "{}" });
      assert.equal(refused.status, 401);
      assert.match(await refused.text(), /does not match/);

      // The secret is known after the address: the receiver starts with the secret at a port that is free.
      const port = (probe.address() as AddressInfo).port;
      probe.close();
      const client = new Client({ url: server.url, key: server.key });
      const webhook = await client.webhooks.create({ url: `http://127.0.0.1:${port}/webhooks`, events: ["contact.created"] });
      const proxy = start([webhook.secret], async (event) => arrived(event));
      const url = await listening(proxy);
      await client.webhooks.update(webhook.id, { url: `${url}/webhooks` });
      await client.contacts.create({ email: "ada@example.com" });
      const delivered = await event;
      assert.ok(delivered.event === "contact.created" && delivered.data.email === "ada@example.com");
      proxy.close();
    } finally {
      probe.close();
      await server.stop();
    }
  });
}

test("an owner connects the OAuth app, and disconnects it", options, async () => {
  const port = await new Promise<number>((done) => {
    const free = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = free.address() as AddressInfo;
      free.close(() => done(port));
    });
  });
  const issuer = `http://127.0.0.1:${port}`;
  const server = await startServer("--oauth", "on", "--public-url", issuer, "--listen", `127.0.0.1:${port}`);
  const folder = await mkdtemp(`${tmpdir()}/svc-`);
  const registered = await server.svc("app", "create", "--name", "Planner", "--redirect-uri", "http://127.0.0.1/callback", "--json");
  const { client_id: clientId, client_secret: clientSecret } = JSON.parse(registered) as { client_id: string; client_secret: string };
  const settings = { url: issuer, clientId, clientSecret, redirectUri: "", file: `${folder}/tokens.json` };
  const web = app(settings).listen(0, "127.0.0.1");
  const address = await listening(web);
  const ours = app({ ...settings, redirectUri: `${address}/callback` });
  web.removeAllListeners("request").on("request", (request, response) => ours.emit("request", request, response));
  try {
    assert.equal((await fetch(address)).status, 403);
    // The owner signs in at the service, follows the app there, allows it, and returns.
    const body = new URLSearchParams({ token: new URL(server.signInUrl).searchParams.get("token") ?? "" });
    const signedIn = await fetch(`${issuer}/dashboard/sign-in`, { method: "POST", headers: { origin: issuer }, body, redirect: "manual" });
    const owner = signedIn.headers.getSetCookie().map((text) => text.split(";")[0]).join("; ");
    const begun = await fetch(`${address}/connect`, { redirect: "manual" });
    const [asked, state] = [begun.headers.get("location") ?? "", begun.headers.get("set-cookie")?.split(";")[0] ?? ""];
    const html = await (await fetch(asked, { headers: { cookie: owner } })).text();
    const field = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? assert.fail(`no ${name} in ${html}`);
    const decision = new URLSearchParams({ csrf: field("csrf"), account: field("account"), decision: "allow" });
    const allowed = await fetch(asked, { method: "POST", headers: { cookie: owner, origin: issuer }, body: decision, redirect: "manual" });
    const returned = allowed.headers.get("location") ?? assert.fail(await allowed.text());
    assert.equal((await fetch(returned, { redirect: "manual" })).status, 400, "another browser is not connected");
    const again = await fetch(`${address}/connect`, { redirect: "manual" });
    const cookie = again.headers.get("set-cookie")?.split(";")[0] ?? "";
    assert.notEqual(cookie, state);
    const granted = await fetch(again.headers.get("location") ?? "", { headers: { cookie: owner }, redirect: "manual" });
    const connected = await fetch(granted.headers.get("location") ?? "", { headers: { cookie }, redirect: "manual" });
    assert.equal(connected.status, 302, await connected.text());
    const emails = (await (await fetch(address)).json()) as string[];
    assert.equal(emails.length, 5);
    await server.svc("grant", "revoke", "Planner");
    assert.equal((await fetch(address)).status, 403);
  } finally {
    web.close();
    web.closeAllConnections();
    await rm(folder, { recursive: true });
    await server.stop();
  }
});
