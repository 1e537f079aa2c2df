// What the Node programs of this folder share: the server, and the walk that each takes through its tools.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';

/** @param {string} name */
export const variable = (name) => process.env[name] ?? '';

/** The origin of the server, such as `http://127.0.0.1:8080`. */
export const origin = variable('SVC_URL');
export const url = new URL('/mcp', origin);
/** The same server without the tools that change records. */
export const readonlyUrl = new URL('/mcp/readonly', origin);
export const headers = { authorization: `Bearer ${variable('SVC_KEY')}` };
/** How the programs name themselves to the server. */
export const program = { name: 'svc-tests', version: '1.0.0' };

/** Returns the data of a result that is no error, and checks that its text says the same. */
export function data(result) {
  assert.ok(!result.isError, JSON.stringify(result));
  const { structuredContent, content } = result;
  assert.deepEqual(content.map((block) => block.type), ['text']);
  assert.deepEqual(JSON.parse(content[0].text), structuredContent);
  assert.equal(typeof structuredContent.notice, 'string');
  return structuredContent.data;
}

/** Checks that a call was refused by its tool, and returns the text of the error. */
export function refused(result) {
  assert.equal(result.isError, true, JSON.stringify(result));
  assert.equal(result.content[0].type, 'text');
  assert.ok(result.content[0].text);
  return result.content[0].text;
}

/** Checks the description of the tools that the walk uses. */
export function checkTools(tools) {
  for (const [name, readOnly] of [['list_contacts', true], ['create_contact', false]]) {
    const tool = tools.find((tool) => tool.name === name);
    assert.ok(tool, `there is no tool ${name} in ${tools.map((tool) => tool.name)}`);
    assert.ok(tool.description, `${name} has no description`);
    assert.equal(tool.inputSchema.type, 'object');
    assert.equal(tool.outputSchema?.type, 'object', `${name} has no output schema`);
    assert.equal(tool.annotations?.readOnlyHint, readOnly, `readOnlyHint of ${name}`);
  }
}

/** Creates, changes, reads, lists and deletes a contact. `client` has `tools()` and `call(name, arguments)`. */
export async function walk(client) {
  checkTools(await client.tools());

  const create = {
    first_name: 'Ada', last_name: 'Lovelace', email: `ada-${randomUUID()}@example.com`, idempotency_key: randomUUID(),
  };
  const contact = data(await client.call('create_contact', create));
  assert.equal(contact.email, create.email);
  assert.equal(data(await client.call('create_contact', create)).id, contact.id);
  const { id } = contact;

  data(await client.call('update_contact', { id, city: 'Hobart', dry_run: true }));
  assert.deepEqual(data(await client.call('get_contact', { id })), contact);
  assert.equal(data(await client.call('update_contact', { id, city: 'Hobart' })).city, 'Hobart');

  const list = async () => data(await client.call('list_contacts', { email: create.email, limit: 5 }));
  assert.deepEqual((await list()).map((contact) => contact.id), [id]);
  const deleted = await client.call('delete_contact', { id });
  assert.ok(!deleted.isError, JSON.stringify(deleted));
  assert.deepEqual(await list(), []);
  refused(await client.call('get_contact', { id }));
}

/** Checks that no tool changes records, and that calling one is refused, by the tool or by the protocol. */
export async function walkReadonly(client) {
  const tools = await client.tools();
  assert.ok(tools.some((tool) => tool.name === 'list_contacts'));
  const writing = tools.filter((tool) => tool.annotations?.readOnlyHint !== true);
  assert.deepEqual(writing.map((tool) => tool.name), []);

  const email = `ada-${randomUUID()}@example.com`;
  const create = { first_name: 'Ada', last_name: 'Lovelace', email };
  const result = await client.call('create_contact', create).catch((error) => {
    // Only an error of the protocol has a code that is a number. Others are failures of this program.
    assert.ok(Number.isInteger(error.code), error);
    return { isError: true };
  });
  assert.equal(result.isError, true, JSON.stringify(result));
  assert.deepEqual(data(await client.call('list_contacts', { email })), []);
}

/** Makes what `walk` needs of a client of the TypeScript SDK. */
export const adapt = (client) => ({
  tools: async () => {
    const tools = [];
    let cursor;
    do {
      const page = await client.listTools(cursor ? { cursor } : undefined);
      tools.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor);
    return tools;
  },
  call: (name, args) => client.callTool({ name, arguments: args }),
});
