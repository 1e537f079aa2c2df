// Receives webhooks in Express.
//
//     SVC_WEBHOOK_SECRET=whsec_… node webhook-express.ts
import { pathToFileURL } from "node:url";
import express from "express";
import { Verifier, VerifyError } from "svc-client/webhooks";
import type { WebhookEvent } from "svc-client/webhooks";

/** Returns an application that gives each event to `handle`, which should put it in a queue: the service waits 10 seconds. */
export function receiver(secrets: string[], handle: (event: WebhookEvent, deliveryId: string) => Promise<void>): express.Express {
  const verifier = new Verifier({ secrets });
  const app = express();
  // The bytes as they were received: what express.json() makes of them has no signature.
  app.post("/webhooks", express.raw({ type: () => true, limit: "2mb" }), async (request, response) => {
    try {
      const event = await verifier.verify(request.headers, request.body as Uint8Array);
      // A delivery can arrive more than once, always under the same id.
      await handle(event, request.get("webhook-id") ?? "");
      response.sendStatus(204);
    } catch (error) {
      if (!(error instanceof VerifyError)) throw error;
      response.status(401).send(error.message);
    }
  });
  return app;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const show = async (event: WebhookEvent) => {
    if (event.event === "invoice.paid") console.log(`${event.data.invoice_number}: ${event.data.total} ${event.data.currency}`);
    else console.log(event.event);
  };
  receiver([process.env["SVC_WEBHOOK_SECRET"] ?? ""], show).listen(9000);
}
