// A web app that owners connect to their account (OAuth 2.0). It keeps the tokens of one account in a file.
//
//     SVC_URL=… SVC_CLIENT_ID=svcapp_… SVC_CLIENT_SECRET=svc_ocs_… node oauth-app.ts
import { createHash, randomBytes } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { Server } from "node:http";
import { pathToFileURL } from "node:url";
import { ApiError, Client } from "svc-client";
import type { Tokens } from "svc-client";

export interface Settings {
  url: string;
  clientId: string;
  clientSecret: string;
  /** The registered address of this app to which the browser returns. */
  redirectUri: string;
  /** The file of the tokens. */
  file: string;
}

const random = () => randomBytes(32).toString("base64url");

/** Stores tokens. The file is replaced as a whole, so that no crash loses them. */
async function store(file: string, { access_token, refresh_token }: Tokens): Promise<void> {
  await writeFile(`${file}.new`, JSON.stringify({ access_token, refresh_token }), { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/** Returns the app: `/connect` asks an owner, `/callback` gets the tokens, and `/` lists the newest contacts. */
export function app({ url, clientId, clientSecret, redirectUri, file }: Settings): Server {
  /** The verifier of each attempt to connect, under the state in the cookie of its browser. */
  const attempts = new Map<string, string>();
  let client: Client | undefined;

  /** Returns the client, which all requests share: so tokens are refreshed once. */
  const connected = async () => {
    const tokens = JSON.parse(await readFile(file, "utf8")) as Tokens;
    return (client ??= new Client({ url, app: { clientId, clientSecret, tokens, store: (changed) => store(file, changed) } }));
  };

  const exchange = async (code: string, verifier: string) => {
    const body = new URLSearchParams({
      grant_type: "authorization_code", code, code_verifier: verifier, redirect_uri: redirectUri, client_id: clientId, client_secret: clientSecret,
    });
    const response = await fetch(`${url}/oauth/token`, { method: "POST", body });
    if (!response.ok) throw new Error(`the service gave no tokens: ${await response.text()}`);
    await store(file, (await response.json()) as Tokens);
    client = undefined;
  };

  return createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", redirectUri);
    const redirect = (location: string, cookie: string) => response.writeHead(302, { location, "set-cookie": `${cookie}; HttpOnly; Path=/` }).end();
    try {
      if (pathname === "/connect") {
        const [state, verifier] = [random(), random()];
        attempts.set(state, verifier);
        const query = new URLSearchParams({
          response_type: "code", client_id: clientId, redirect_uri: redirectUri, scope: "read", state,
          code_challenge: createHash("sha256").update(verifier).digest("base64url"), code_challenge_method: "S256",
        });
        return void redirect(`${url}/oauth/authorize?${query}`, `state=${state}`);
      }
      if (pathname === "/callback") {
        const state = searchParams.get("state") ?? "";
        const verifier = attempts.get(state);
        attempts.delete(state);
        // The browser must be the one that began, and the service the one that was asked.
        const isOurs = request.headers.cookie?.split("; ").includes(`state=${state}`) && searchParams.get("iss") === url;
        const code = searchParams.get("code");
        if (!verifier || !isOurs || !code) return void response.writeHead(400).end("The account was not connected.");
        await exchange(code, verifier);
        return void redirect("/", "state=; Max-Age=0");
      }
      const { data } = await (await connected()).contacts.list({ limit: 5 }).page();
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(data.map(({ email }) => email)));
    } catch (error) {
      const ended = (error instanceof ApiError && error.is("invalid_grant")) || (error as { code?: string }).code === "ENOENT";
      response.writeHead(ended ? 403 : 502, { "content-type": "text/plain" });
      response.end(ended ? "No account is connected: go to /connect." : String(error));
    }
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { SVC_URL: url = "", SVC_CLIENT_ID: clientId = "", SVC_CLIENT_SECRET: clientSecret = "" } = process.env;
  app({ url, clientId, clientSecret, redirectUri: "http://127.0.0.1:3000/callback", file: "tokens.json" }).listen(3000);
}
