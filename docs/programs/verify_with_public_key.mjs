import { createPublicKey, verify as verifySignature } from "node:crypto";

/** Whether svc sent `body` (a Buffer) at most `maxAge` seconds before `now` (Unix seconds). */
export function verifyWithPublicKey(publicKey, headers, body, maxAge = 300, now = Date.now() / 1000) {
  const id = headers["webhook-id"] ?? "";
  const timestamp = headers["webhook-timestamp"] ?? "";
  const encoded = /^whpk_([A-Za-z0-9+/]{43})=$/.exec(publicKey);
  // With a dot in the id, part of the body could be passed off as the timestamp.
  if (!encoded || !/^[A-Za-z0-9_-]+$/.test(id) || !/^[0-9]{1,12}$/.test(timestamp)) return false;
  const age = now - Number(timestamp);
  if (maxAge !== null && !(age >= -60 && age <= maxAge)) return false;
  const x = Buffer.from(encoded[1], "base64").toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  // svc sends two signatures at most. More would only cost time.
  const signatures = (headers["webhook-signature"] ?? "").match(/v1a,[A-Za-z0-9+/]{86}==/g) ?? [];
  return signatures.slice(0, 2).some((signature) =>
    verifySignature(null, signed, key, Buffer.from(signature.slice("v1a,".length), "base64")),
  );
}
