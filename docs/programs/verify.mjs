import { createHmac, timingSafeEqual } from "node:crypto";

/** Whether svc sent `body` (a Buffer) at most `maxAge` seconds before `now` (Unix seconds). */
export function verify(secret, signature, body, maxAge = 300, now = Date.now() / 1000) {
  if (!secret) return false;
  const mac = createHmac("sha256", secret).update(body).digest("hex");
  const expected = Buffer.from(`sha256=${mac}`);
  const given = Buffer.from(signature ?? "");
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return false;
  if (maxAge === null) return true;
  try {
    const age = now - Date.parse(JSON.parse(body.toString()).delivered_at) / 1000;
    return age >= -60 && age <= maxAge;
  } catch {
    return false;
  }
}
