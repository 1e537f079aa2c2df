// A server that responds by a script, and spoils responses as the script says.
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { once } from "node:events";
import net from "node:net";
import { table } from "./table.js";
import type { Case, Exchange, Reply } from "./table.js";

interface Received { method: string; path: string; query: URLSearchParams; target: string; headers: Map<string, string>; body: string }

export class HostileServer {
  readonly url: string;
  /** How many requests arrived. */
  requests = 0;
  #server: net.Server;
  #sockets = new Set<net.Socket>();
  #left: Exchange[];
  #routes: (Exchange & { count: number; held: (() => void)[]; taken: number })[];
  #names = new Map<string, string>();
  #problems: Error[] = [];
  #secret: string;
  #onRequest: () => void = () => undefined;

  private constructor(server: net.Server, { client, script = [], routes = [] }: Case) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
    this.#secret = client?.signing_secret ?? "";
    this.#left = script.flatMap((exchange) => Array<Exchange>(exchange.repeat ?? 1).fill(exchange));
    this.#routes = routes.map((route) => ({ ...route, count: route.count ?? 0, held: [], taken: 0 }));
    server.on("connection", (socket) => this.#serve(socket));
  }

  static async start(each: Case): Promise<HostileServer> {
    const server = net.createServer();
    await once(server.listen(0, "127.0.0.1"), "listening");
    return new HostileServer(server, each);
  }

  /** Resolves once so many requests have arrived. */
  async received(count: number): Promise<void> {
    while (this.requests < count) await new Promise<void>((done) => (this.#onRequest = done));
  }

  /** Ends the server, and fails if requests were wrong or missing. */
  stop(): void {
    this.#server.close();
    this.#sockets.forEach((socket) => socket.destroy());
    const [problem] = this.#problems;
    if (problem) throw problem;
    assert.deepEqual(this.#left.map((exchange) => exchange.request), [], "requests that did not arrive");
    for (const route of this.#routes) assert.equal(route.taken, route.count, route.request);
  }

  #serve(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket)).on("error", () => undefined);
    let data = "";
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      data += chunk;
      const end = data.indexOf("\r\n\r\n");
      if (end < 0) return;
      const [line = "", ...lines] = data.slice(0, end).split("\r\n");
      const headers = new Map(lines.map((text) => [text.slice(0, text.indexOf(":")).toLowerCase(), text.slice(text.indexOf(":") + 1).trim()]));
      if (data.length - end - 4 < Number(headers.get("content-length") ?? 0)) return;
      const body = Buffer.from(data.slice(end + 4), "latin1").toString();
      data = "";
      const [method = "", target = ""] = line.split(" ");
      const url = new URL(target, this.url);
      this.requests++;
      this.#onRequest();
      try {
        this.#respond(socket, { method, target, path: url.pathname, query: url.searchParams, headers, body });
      } catch (error) {
        this.#problems.push(error as Error);
        socket.destroy();
      }
    });
  }

  #respond(socket: net.Socket, request: Received): void {
    const name = `${request.method} ${request.path}`;
    if (this.#routes.length === 0) {
      const exchange = this.#left.shift();
      assert.ok(exchange, `${name} is one request too many`);
      this.#check(request, exchange);
      return send(socket, exchange.respond);
    }
    const fits = (route: Exchange) => {
      const headers = Object.entries(route.headers ?? {});
      return route.request === name && headers.every(([header, value]) => request.headers.get(header) === value);
    };
    const route = this.#routes.find(fits);
    assert.ok(route && ++route.taken <= route.count, `${name} is one request too many`);
    route.held.push(() => send(socket, route.respond));
    if (!route.barrier || route.taken === route.count) route.held.splice(0).forEach((release) => release());
  }

  #check(request: Received, exchange: Exchange): void {
    assert.equal(`${request.method} ${request.path}`, exchange.request);
    if (exchange.query) assert.deepEqual(Object.fromEntries(request.query), exchange.query, exchange.request);
    if (exchange.form) assert.deepEqual(Object.fromEntries(new URLSearchParams(request.body)), exchange.form);
    if (exchange.text !== undefined) assert.equal(request.body, exchange.text);
    if ("json" in exchange) assert.deepEqual(JSON.parse(request.body), exchange.json);
    for (const [name, expected] of Object.entries(exchange.headers ?? {})) {
      const value = request.headers.get(name) ?? null;
      if (!expected?.startsWith("$")) {
        assert.equal(value, expected, `${exchange.request}: ${name}`);
        continue;
      }
      assert.ok(value, `${exchange.request}: ${name} is missing`);
      for (const [other, taken] of this.#names) assert.equal(taken === value, other === expected, `${name} ${value}: ${other} and ${expected}`);
      this.#names.set(expected, value);
    }
    if (!exchange.signed) return;
    const digest = createHash("sha256").update(request.body).digest("hex");
    const timestamp = request.headers.get("x-svc-timestamp") ?? "";
    const text = [timestamp, request.method, request.target, digest].join("\n");
    const signature = createHmac("sha256", this.#secret).update(text).digest("hex");
    assert.match(timestamp, /^\d+\.\d{6}$/);
    assert.equal(request.headers.get("x-svc-signature"), `sha256=${signature}`, exchange.request);
  }
}

function send(socket: net.Socket, reply: Reply): void {
  const { status = 200, fault } = reply;
  const problem = reply.problem !== undefined ? { error: "It is wrong.", code: reply.problem } : undefined;
  const json = reply.body !== undefined ? table.bodies[reply.body] : (reply.json ?? problem);
  const body = Buffer.from(reply.text ?? (json === undefined ? "" : JSON.stringify(json)));
  const headers: Record<string, string> = {
    "content-type": "application/json", ...(problem && { "x-request-id": "req-7" }), ...reply.headers, connection: "close",
  };
  if (fault !== "flood" && status !== 204 && status !== 304) headers["content-length"] = String(body.length);
  const head = `HTTP/1.1 ${status} Status\r\n${Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  const half = body.subarray(0, body.length / 2);
  switch (fault) {
    case undefined:
      socket.end(Buffer.concat([Buffer.from(head), body]));
      break;
    case "close":
      socket.end();
      break;
    case "truncate":
      socket.end(Buffer.concat([Buffer.from(head), half]));
      break;
    case "hang":
      break;
    case "stall":
      socket.write(Buffer.concat([Buffer.from(head), half]));
      break;
    case "flood": {
      socket.write(head);
      const spaces = Buffer.alloc(1 << 20, " ");
      let left = 64;
      const more = () => {
        while (left-- > 0 && !socket.destroyed) if (!socket.write(spaces)) return void socket.once("drain", more);
        socket.end();
      };
      more();
      break;
    }
    default:
      assert.fail(`unknown fault ${fault}`);
  }
}
