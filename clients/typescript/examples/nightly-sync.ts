// Keeps a copy of the contacts and jobs of an account in JSON files, and goes on where it was stopped.
//
//     SVC_URL=… SVC_KEY=… node nightly-sync.ts copy/
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { Client } from "svc-client";
import type { SyncPosition } from "svc-client";

/** What a file has. The position is in the file of the records, so that neither is ever ahead of the other. */
interface Copy {
  position: SyncPosition | null;
  records: Record<string, object>;
}

/** Brings the copy up to date, and returns how many records were read. */
export async function run(client: Client, folder: string): Promise<number> {
  await mkdir(folder, { recursive: true });
  let read = 0;
  for (const name of ["contacts", "jobs"] as const) {
    const file = `${folder}/${name}.json`;
    const copy = JSON.parse(await readFile(file, "utf8").catch(() => '{"position": null, "records": {}}')) as Copy;
    for await (const { records, position } of client[name].sync(copy.position)) {
      for (const record of records) {
        if ("deleted_at" in record) delete copy.records[record.id];
        else copy.records[record.id] = record;
      }
      copy.position = position;
      // A file is replaced as a whole, also if the program is killed meanwhile.
      await writeFile(`${file}.new`, JSON.stringify(copy));
      await rename(`${file}.new`, file);
      read += records.length;
    }
  }
  return read;
}

const { SVC_URL: url, SVC_KEY: key } = process.env;
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  if (!url || !key) throw new Error("set SVC_URL and SVC_KEY, as the server prints them");
  console.log(`${await run(new Client({ url, key }), process.argv[2] ?? "copy")} records read`);
}
