// An identity provider (OpenID Connect) with a form that takes any email address as the name of a person.
import { createServer } from "node:http";
import { once } from "node:events";
import { Provider } from "oidc-provider";

const CLIENT = { client_id: "svc", client_secret: "the secret of the client" };

export class IdentityProvider {
  /** Listens, so that the issuer is known. It serves nothing until `knows` says who may send people here. */
  static async listen() {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new IdentityProvider(server, `http://127.0.0.1:${server.address().port}`);
  }

  constructor(server, issuer) {
    this.server = server;
    this.issuer = issuer;
  }

  /** The flags of a server whose members sign in here. */
  get flags() {
    const { client_id, client_secret } = CLIENT;
    return ["--oidc-issuer", this.issuer, "--oidc-client-id", client_id, "--oidc-client-secret", client_secret];
  }

  /** Serves people who come from the dashboard at `url`. Addresses that begin with `unverified` are not verified. */
  knows(url) {
    const provider = new Provider(this.issuer, {
      clients: [{ ...CLIENT, redirect_uris: [`${url}/dashboard/oidc/callback`] }],
      pkce: { required: () => true },
      claims: { openid: ["sub"], email: ["email", "email_verified"] },
      cookies: { keys: ["for tests only"] },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      findAccount: (_, sub) => ({
        accountId: sub,
        claims: () => ({ sub, email: sub, email_verified: !sub.startsWith("unverified") }),
      }),
      // Nobody is asked for consent.
      loadExistingGrant: async ({ oidc }) => {
        const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
        grant.addOIDCScope("openid email");
        await grant.save();
        return grant;
      },
    });
    const serve = provider.callback();
    this.server.on("request", async (request, response) => {
      if (!request.url.startsWith("/interaction/")) return serve(request, response);
      if (request.method !== "POST") {
        const form = `<form method="post"><input name="email" aria-label="Email"><button name="go">Sign in</button>`;
        const cancel = `<button name="cancel" value="yes">Cancel</button></form>`;
        response.setHeader("content-type", "text/html");
        return response.end(`<!doctype html><title>Provider</title><link rel="icon" href="data:,">${form}${cancel}`);
      }
      let body = "";
      for await (const part of request) body += part;
      const fields = new URLSearchParams(body);
      const result = fields.has("cancel")
        ? { error: "access_denied", error_description: "The person cancelled." }
        : { login: { accountId: fields.get("email") } };
      await provider.interactionFinished(request, response, result);
    });
  }

  async stop() {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, "close");
  }
}
