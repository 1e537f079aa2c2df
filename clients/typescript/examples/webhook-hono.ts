// Receives webhooks in Hono, which runs on Node, Deno, Bun and Workers.
//
//     SVC_WEBHOOK_SECRET=whsec_… node webhook-hono.ts
import { pathToFileURL } from "node:url";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { Verifier, VerifyError } from "svc-client/webhooks";
import type { WebhookEvent } from "svc-client/webhooks";

/** Returns an application that gives each event to `handle`, which should put it in a queue: the service waits 10 seconds. */
export function receiver(secrets: string[], handle: (event: WebhookEvent, deliveryId: string) => Promise<void>): Hono {
  const verifier = new Verifier({ secrets });
  const app = new Hono();
  app.post("/webhooks", async (context) => {
    try {
      const { headers } = context.req.raw;
      const event = await verifier.verify(headers, await context.req.arrayBuffer());
      // A delivery can arrive more than once, always under the same id.
      await handle(event, headers.get("webhook-id") ?? "");
      return context.body(null, 204);
    } catch (error) {
      if (!(error instanceof VerifyError)) throw error;
      return context.text(error.message, 401);
    }
  });
  return app;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const show = async (event: WebhookEvent) => console.log(event.event, event.data.id);
  serve({ fetch: receiver([process.env["SVC_WEBHOOK_SECRET"] ?? ""], show).fetch, port: 9000 });
}
