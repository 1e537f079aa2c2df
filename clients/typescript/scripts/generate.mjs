// Writes src/generated from the OpenAPI documents of the service. With --check it writes nothing, and fails if a file differs.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const root = new URL("../../../svc-server/openapi/", import.meta.url);
const read = async (name) => JSON.parse(await readFile(new URL(name, root), "utf8"));
const types = (schema) => [schema.type ?? []].flat().filter((type) => type !== "null");
const isAmount = (schema) => types(schema).length === 1 && types(schema)[0] === "number";

/** Calls `visit` with each property of each schema in a part of a document. */
function walk(part, visit) {
  if (part === null || typeof part !== "object") return;
  for (const [name, schema] of Object.entries(part.properties ?? {})) visit(name, schema);
  for (const value of Object.values(part)) walk(value, visit);
}

/** Returns the names of the properties that are amounts of money: the service has no other number with a fraction. */
function amounts(document) {
  const [names, integers] = [new Set(), new Set()];
  walk(document, (name, schema) => {
    if (isAmount(schema)) names.add(name);
    else if (types(schema).includes("integer")) integers.add(name);
  });
  for (const name of names) {
    if (integers.has(name)) throw new Error(`${name} is both an amount and an integer: src/json.ts tells them apart by name`);
  }
  return [...names].sort();
}

/** Returns the types of a document, in which amounts are decimal strings. */
async function typesOf(document) {
  const string = ts.factory.createKeywordTypeNode(ts.SyntaxKind.StringKeyword);
  const nothing = ts.factory.createLiteralTypeNode(ts.factory.createNull());
  const transform = (schema) => {
    if (!isAmount(schema)) return undefined;
    return [schema.type].flat().includes("null") ? ts.factory.createUnionTypeNode([string, nothing]) : string;
  };
  return astToString(await openapiTS(document, { transform }));
}

/** Returns the document of the operations that a service with `--extensions on` adds, from that of the platform API. */
function extensionsOf(platform) {
  const account = "/accounts/{account_id}";
  const operations = [
    "/events", "/events/{id}", "/deliveries/{id}", "/deliveries/{id}/attempts", "/deliveries/{id}/replay", "/replays/{id}",
    "/webhooks/{id}/test", "/webhooks/{id}/rotate-secret",
  ];
  const paths = Object.fromEntries(operations.map((path) => [path, platform.paths[account + path]]));
  delete paths["/events"].post;
  // An account names the subscription in the path, and the platform in the query or the body.
  const { since, until, statuses, missed } = platform.components.schemas.ReplayCreate.properties;
  const selection = { since, until, statuses, missed };
  const filters = platform.paths[`${account}/deliveries`].get.parameters.filter(({ name }) =>
    ["limit", "cursor", "status", "kind", "since", "until"].includes(name),
  );
  paths["/webhooks/{id}/deliveries"] = { get: { ...platform.paths[`${account}/deliveries`].get, parameters: filters } };
  const components = { schemas: { ReplaySelection: { type: "object", properties: selection, required: ["since"] } } };
  const document = { openapi: platform.openapi, info: platform.info, paths, components };
  const text = () => JSON.stringify(document);
  for (let found = true; found; ) {
    found = false;
    for (const [, kind, name] of text().matchAll(/"#\/components\/([^/"]+)\/([^/"]+)"/g)) {
      components[kind] ??= {};
      if (components[kind][name]) continue;
      components[kind][name] = platform.components[kind]?.[name];
      if (!components[kind][name]) throw new Error(`the document of the platform API has no ${kind} ${name}`);
      found = true;
    }
  }
  return document;
}

/** Returns the name of the schema that a response of success, or the body of a request, has. */
function schemaOf({ content }, document) {
  const name = (schema) => schema.$ref?.replace(/^.*\//, "");
  const found = name(content["application/json"].schema);
  const data = document.components.schemas[found]?.properties?.data;
  return (data && name(data)) ?? found;
}

/** Returns the class with the collections: each path that has a list, and records by their id. */
function collectionsOf(document) {
  const success = ({ responses }) => Object.entries(responses).find(([status]) => status.startsWith("2"))[1];
  const fields = Object.entries(document.paths).flatMap(([path, { get, post }]) => {
    const one = document.paths[`${path}/{id}`];
    if (!one) return [];
    const [name, schema] = [path.slice(1), (part) => `Schemas["${schemaOf(part, document)}"]`];
    const [record, parameters] = [schema(success(one.get)), get.parameters.map((parameter) => parameter.name)];
    const types = [`Readable<${record}, Filter<"${path}">>`];
    const copied = parameters.includes("include_deleted") ? `${record} & { deleted_at?: string }` : record;
    const { properties } = document.components.schemas[schemaOf(success(one.get), document)];
    if (parameters.includes("updated_since") && properties.updated_at) types.push(`Syncable<${copied}>`);
    if (post) types.push(`Creatable<${schema(success(post))}, ${schema(post.requestBody)}>`);
    if (one.patch) types.push(`Updatable<${record}, ${schema(one.patch.requestBody)}>`);
    if (one.delete) types.push("Deletable");
    const [description] = document.tags.find((tag) => tag.name === name).description.split("\n");
    return [{ name, text: `  /** ${description} */\n  readonly ${name}: ${types.join(" & ")};\n` }];
  });
  const made = fields.map(({ name }) => `    this.${name} = new Collection<any, any, any>(transport, "${name}");\n`);
  return `import { Collection, type Creatable, type Deletable, type Readable, type Syncable, type Updatable } from "../collection.js";
import type { Filter, Schemas } from "../client.js";
import type { Transport } from "../transport.js";

/** The collections of records that the API has. */
export class Collections {
${fields.map(({ text }) => text).join("")}
  /** @internal */
  constructor(transport: Transport) {
${made.join("")}  }
}
`;
}

const head = "// Generated by scripts/generate.mjs from the OpenAPI documents of the service. Do not edit.\n";
const v1 = await read("v1.json");
const names = amounts(v1);
const refusals = await readFile(new URL("../../refusals.json", import.meta.url), "utf8");
const files = {
  "schema.ts": head + (await typesOf(v1)),
  "extensions.ts": head + (await typesOf(extensionsOf(await read("platform-v1.json")))),
  "collections.ts": head + collectionsOf(v1),
  "amounts.ts": `${head}\n/** The names of the fields that are amounts of money. */\nexport const AMOUNTS = ${JSON.stringify(names)};\n`,
  "refusals.ts": `${head}\n/** Why a delivery is refused, by code. */\nexport const REFUSALS = ${refusals.trim()};\n`,
};
for (const [name, text] of Object.entries(files)) {
  const file = new URL(`../src/generated/${name}`, import.meta.url);
  if (!process.argv.includes("--check")) await writeFile(file, text);
  else if ((await readFile(file, "utf8").catch(() => "")) !== text) {
    console.error(`src/generated/${name} is not what the OpenAPI documents say. Run \`npm run generate\` and commit it.`);
    process.exitCode = 1;
  }
}
