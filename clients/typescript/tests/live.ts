// svc-server with the sample data of its demo, and a proxy that loses responses.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import net from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const folder = process.env["SVC_PROGRAMS"] ?? fileURLToPath(new URL("../../../../target/debug", import.meta.url));

/** Why the tests with a server are skipped, or false. In CI nothing is skipped. */
export const skipped = ((): string | false => {
  if (existsSync(`${folder}/svc-server`) && existsSync(`${folder}/svc`)) return false;
  const reason = `there are no svc-server and svc in ${folder}: build them, or name their folder in SVC_PROGRAMS`;
  assert.ok(!process.env["CI"], reason);
  console.error(`SKIPPED: ${reason}`);
  return reason;
})();

export interface LiveServer {
  url: string;
  key: string;
  /** The link that signs an owner in to the dashboard. */
  signInUrl: string;
  /** Runs `svc` beside the database, and returns what it prints. */
  svc(...args: string[]): Promise<string>;
  /** Makes a key that signs. */
  signedKey(): Promise<{ key: string; signingSecret: string }>;
  stop(): Promise<void>;
}

export async function startServer(...extra: string[]): Promise<LiveServer> {
  const address = extra.includes("--listen") ? [] : ["--listen", "127.0.0.1:0"];
  const args = ["--demo", "--extensions", "on", ...address, ...extra];
  const server = spawn(`${folder}/svc-server`, args, { stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(server, "close");
  let text = "";
  for await (const chunk of server.stdout) {
    text += String(chunk);
    if (text.includes("Stop with Ctrl-C")) break;
  }
  const exported = (name: string) => new RegExp(`export ${name}=(.*)`).exec(text)?.[1] ?? assert.fail(`no ${name} in ${text}`);
  const svc = async (...args: string[]) => {
    const env = { ...process.env, SVC_DATABASE_URL: exported("SVC_DATABASE_URL"), SVC_TENANT: exported("SVC_TENANT") };
    return (await promisify(execFile)(`${folder}/svc`, args, { env })).stdout;
  };
  return {
    url: exported("SVC_URL"),
    key: exported("SVC_KEY"),
    signInUrl: /dashboard: (\S+)/.exec(text)?.[1] ?? assert.fail(text),
    svc,
    async signedKey() {
      const created = await svc("key", "create", "--scopes", "read,write", "--signed", "--json");
      const { key, signing_secret } = JSON.parse(created) as { key: string; signing_secret: string };
      return { key, signingSecret: signing_secret };
    },
    async stop() {
      server.kill("SIGTERM");
      await ended;
    },
  };
}

/** Forwards connections to a server, and closes so many of them in place of the first response. */
export async function losing(target: string, count: number): Promise<{ url: string; left(): number; stop(): void }> {
  const { hostname, port } = new URL(target);
  let left = count;
  const proxy = net.createServer((client) => {
    const server = net.connect(Number(port), hostname);
    const end = () => [client, server].forEach((socket) => socket.destroy());
    client.on("error", end).on("close", end).pipe(server);
    server.on("error", end).on("close", end).on("data", (chunk) => {
      if (left-- > 0) end();
      else client.write(chunk);
    });
  });
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  return { url: `http://127.0.0.1:${(proxy.address() as net.AddressInfo).port}`, left: () => left, stop: () => void proxy.close() };
}
