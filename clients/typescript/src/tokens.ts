import { TokensNotStoredError } from "./errors.js";

/** The tokens of an app for one account, as `/oauth/token` gives them for a code. */
export interface Tokens {
  /** The access token, `svc_oat_…`, which lasts an hour. */
  access_token: string;
  /** The refresh token, `svc_ort_…`, which lasts 90 days after its last use. */
  refresh_token: string;
}

/**
 * An app that works on an account (OAuth 2.0). When the service refuses the access token, the client gets another one, once
 * for all calls in flight, stores the new tokens, and makes the calls again. The code `invalid_grant` says that the account
 * has ended the access. Programs that share the tokens of a public app must share one client.
 */
export interface AppCredentials {
  /** The client id, `svcapp_…`. */
  clientId: string;
  /** The secret of a confidential app, `svc_ocs_…`. */
  clientSecret?: string;
  /** The tokens that the app has stored. */
  tokens: Tokens;
  /** Stores new tokens where the app finds them when it is started again. They are used once this has succeeded. */
  store: (tokens: Tokens) => Promise<void> | void;
}

/** The response of the endpoint for tokens. */
export type NewTokens = Pick<Tokens, "access_token"> & Partial<Tokens>;

/** The tokens of an app, which all calls of a client share. */
export class AppTokens {
  #tokens: Tokens;
  #refresh: Promise<Tokens> | undefined;

  /** `ask` sends a form to the endpoint for tokens. */
  constructor(private readonly app: AppCredentials, private readonly ask: (form: URLSearchParams) => Promise<NewTokens>) {
    this.#tokens = app.tokens;
  }

  /** Returns the tokens, once a refresh has ended. Its failure is an error of the calls that wanted it. */
  async current(): Promise<Tokens> {
    await this.#refresh?.catch(() => undefined);
    return this.#tokens;
  }

  /** Returns the tokens after those that the service refused. All calls share one refresh. */
  async after(refused: Tokens): Promise<Tokens> {
    if (this.#tokens === refused) this.#refresh ??= this.#renew().finally(() => (this.#refresh = undefined));
    return this.#refresh ?? this.#tokens;
  }

  async #renew(): Promise<Tokens> {
    const { clientId: client_id, clientSecret } = this.app;
    const { refresh_token } = this.#tokens;
    const form = { grant_type: "refresh_token", refresh_token, client_id, ...(clientSecret && { client_secret: clientSecret }) };
    const tokens = { refresh_token, ...(await this.ask(new URLSearchParams(form))) };
    try {
      await this.app.store(tokens);
    } catch (cause) {
      throw new TokensNotStoredError(`the new tokens of the app could not be stored: ${String(cause)}`, { cause });
    }
    return (this.#tokens = tokens);
  }
}
