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
  const content = { "application/json": { schema: { $ref: "#/components/schemas/ReplaySelection" } } };
  paths["/webhooks/{id}/replay"] = { post: { ...platform.paths[`${account}/replays`].post, requestBody: { required: true, content } } };
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
  return (data && name(data.items ?? data)) ?? found;
}

/** Returns the response of success of an operation. */
const success = ({ responses }) => Object.entries(responses).find(([status]) => status.startsWith("2"))[1];

/** Returns the class with the collections: each path that has a list, and records by their id. */
function collectionsOf(document) {
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
import type { Transport } from "../transport.js";
import type { components, paths } from "./schema.js";

/** The types of the API: \`Schemas["Contact"]\`. In them, amounts of money are decimal strings. */
export type Schemas = components["schemas"];
/** The filters of a list, such as \`Filter<"/contacts">\`. */
export type Filter<P extends keyof paths> = QueryOf<paths[P]>;
/** The query of the list of a path. */
export type QueryOf<Path> = Path extends { get: { parameters: { query?: infer Q } } } ? NonNullable<Q> : never;

/** The collections of records that the API has. */
export class Collections {
${fields.map(({ text }) => text).join("")}
  /** @internal */
  constructor(readonly transport: Transport) {
${made.join("")}  }
}
`;
}

/** The operations of extensions, beside the events. An account lists deliveries in another way than the platform. */
const EXTENSIONS = {
  delivery: ["get", "/deliveries/{id}"],
  attempts: ["list", "/deliveries/{id}/attempts", "Lists the attempts at a delivery, the newest first, 20 on a page."],
  deliveries: ["list", "/webhooks/{id}/deliveries", "Lists the deliveries to a subscription, the newest event first."],
  replayDelivery: ["post", "/deliveries/{id}/replay"],
  replay: ["post", "/webhooks/{id}/replay"],
  bulkReplay: ["get", "/replays/{id}"],
  test: ["post", "/webhooks/{id}/test"],
  rotateSecret: ["post", "/webhooks/{id}/rotate-secret"],
};

/** Returns the class with the operations of extensions. An account gets the records that are in `v1` as they are there. */
function operationsOf(document, v1, amounts) {
  const { schemas } = document.components;
  const methods = Object.entries(EXTENSIONS).map(([name, [kind, path, summary]]) => {
    const operation = document.paths[path][kind === "list" ? "get" : kind];
    const schema = schemaOf(success(operation), document);
    const result = schema in v1.components.schemas ? `Schemas["${schema}"]` : `ExtensionSchemas["${schema}"]`;
    const [collection, action = ""] = path.slice(1).split("/{id}");
    const target = `path("${collection}", id${action && `, "${action}"`})`;
    const doc = `  /** ${summary ?? operation.description.split("\n")[0]} */\n`;
    if (kind === "list") {
      const takesLimit = operation.parameters.some((parameter) => parameter.name === "limit");
      const filter = takesLimit ? `filter: ExtensionFilter<"${path}"> = {}, ` : "";
      return `${doc}  ${name}(id: string, ${filter}options?: CallOptions): List<${result}> {
    return new List(this.client.transport, ${target}, ${takesLimit ? "filter as Query" : "{ limit: undefined }"}, options);
  }\n`;
    }
    const body = operation.requestBody && schemaOf(operation.requestBody, document);
    const input = body ? `input: ExtensionSchemas["${body}"]${schemas[body].required ? "" : " = {}"}, ` : "";
    // The count of a replay has the name of an amount.
    const counts = Object.keys(schemas[schema]?.properties ?? {}).some((field) => amounts.includes(field));
    const options = kind === "post" ? "CreateOptions" : "CallOptions";
    return `${doc}  async ${name}(id: string, ${input}options?: ${options}): Promise<${result}> {
    return data(await this.client.send("${kind.toUpperCase()}", ${target}, { ${input && "input, "}options })${counts ? ", JSON.parse" : ""});
  }\n`;
  });
  return `import { data, List, path } from "../collection.js";
import type { Client } from "../client.js";
import type { CallOptions, CreateOptions, Query } from "../transport.js";
import type { QueryOf, Schemas } from "./collections.js";
import type { components, paths } from "./extensions.js";

/** The types of the extensions: \`ExtensionSchemas["Delivery"]\`. */
export type ExtensionSchemas = components["schemas"];
/** The filters of a list, such as \`ExtensionFilter<"/events">\`. */
export type ExtensionFilter<P extends keyof paths> = QueryOf<paths[P]>;

/** The operations of extensions, beside the events. */
export class Operations {
  /** Makes the operations of a client. */
  constructor(protected readonly client: Client) {}

${methods.join("\n")}}
`;
}

/** Returns the types of failures, and the shape by which the client knows one. */
function problemsOf({ components: { schemas } }) {
  const shape = (schema) => {
    const entries = Object.entries(schema.properties).map(([name, property]) => {
      const kinds = types(property).map((type) => type.replace("integer", "number"));
      if (kinds[0] === "array") return [name, [shape(schemas[property.items.$ref.replace(/^.*\//, "")])]];
      return [name, schema.required?.includes(name) ? kinds[0] : `${kinds[0]}|null|undefined`];
    });
    return Object.fromEntries(entries);
  };
  const { retry_after_ms } = schemas.RateLimitError.properties;
  const problem = { ...schemas.Error, properties: { ...schemas.Error.properties, retry_after_ms } };
  return `import type { components } from "./schema.js";

/** What failed, for programs. Codes do not change, and newer services may have further ones. */
export type ErrorCode = components["schemas"]["Error"]["code"] | "invalid_token" | "invalid_grant";
/** One failing field of a request. Newer services may have further codes. */
export type FieldError = Readonly<components["schemas"]["FieldError"]>;

/** The shape of a failure. */
export const PROBLEM = ${JSON.stringify(shape(problem))} as const;
`;
}

const head = "// Generated by scripts/generate.mjs from the OpenAPI documents of the service. Do not edit.\n";
const v1 = await read("v1.json");
const names = amounts(v1);
const extended = extensionsOf(await read("platform-v1.json"));
const refusals = await readFile(new URL("../../refusals.json", import.meta.url), "utf8");
const files = {
  "schema.ts": head + (await typesOf(v1)),
  "extensions.ts": head + (await typesOf(extended)),
  "operations.ts": head + operationsOf(extended, v1, names),
  "collections.ts": head + collectionsOf(v1),
  "problems.ts": head + problemsOf(v1),
  "amounts.ts": `${head}\n/** The names of the fields that are amounts of money. */\nexport const AMOUNTS = ${JSON.stringify(names)};\n`,
  "refusals.ts": `${head}\n/** Why a delivery is refused, and the forms that its parts have, each with the code of a part that has another. */
export const { texts: TEXTS, forms: FORMS } = ${refusals.trim()};\n`,
};
for (const [name, text] of Object.entries(files)) {
  const file = new URL(`../src/generated/${name}`, import.meta.url);
  if (!process.argv.includes("--check")) await writeFile(file, text);
  else if ((await readFile(file, "utf8").catch(() => "")) !== text) {
    console.error(`src/generated/${name} is not what the OpenAPI documents say. Run \`npm run generate\` and commit it.`);
    process.exitCode = 1;
  }
}
