// Starts a demo server with programs that are built already, and reads what it prints.
import { spawn, execFileSync } from "node:child_process";
import { createInterface } from "node:readline";
import path from "node:path";

const programs = process.env.SVC_PROGRAMS ?? path.resolve("target/debug");

/** A demo server, the variables that it prints, and the link that signs in to its dashboard. */
export class Demo {
  static async start(...options) {
    const listen = options.includes("--listen") ? [] : ["--listen", "127.0.0.1:0"];
    const child = spawn(path.join(programs, "svc-server"), ["--demo", ...listen, ...options], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const log = [];
    child.stderr.on("data", (text) => log.push(text));
    const variables = {};
    let link, platformUrl;
    for await (const line of createInterface({ input: child.stdout })) {
      for (const [, name, value] of line.matchAll(/(SVC_[A-Z_]+)=(\S+)/g)) variables[name] = value.replace(/^'|'$/g, "");
      if (line.startsWith("platform API on ")) platformUrl = line.slice("platform API on ".length).trim();
      if (line.startsWith("dashboard: ")) link = line.slice("dashboard: ".length).trim();
      if (line.includes("Stop with Ctrl-C")) break;
    }
    if (!variables.SVC_URL || !link) throw new Error(`the demo printed no address or link:\n${log.join("")}`);
    return new Demo(child, variables, link, platformUrl);
  }

  constructor(child, variables, link, platformUrl) {
    this.child = child;
    this.url = variables.SVC_URL;
    this.key = variables.SVC_KEY;
    this.variables = variables;
    this.link = link;
    this.platformUrl = platformUrl;
  }

  /** Runs a command of `svc` on the database of the demo and returns what it prints. */
  svc(...command) {
    const environment = { ...process.env, SVC_DATABASE_URL: this.variables.SVC_DATABASE_URL };
    return execFileSync(path.join(programs, "svc"), command, { encoding: "utf8", env: environment }).trim();
  }

  /** Returns a new link that signs in with a role. */
  linkFor(tenant, role) {
    const of = role === "operator" ? ["--operator"] : ["--tenant", tenant, "--role", role];
    return this.svc("dashboard", "link", ...of, "--url", this.url).match(/https?:\/\/\S+/)[0];
  }

  /** Sends a request to the API with the key of the demo, and returns the `data` of the response. */
  async api(method, resource, body, key = this.key) {
    const response = await fetch(`${this.url}/api/v1/${resource}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body && { "content-type": "application/json" }) },
      body: body && JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${method} ${resource}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? null : (await response.json()).data;
  }

  async stop() {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGTERM");
    await ended;
  }
}
