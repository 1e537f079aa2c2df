// Bundles each entry for browsers, and fails if it is larger than 12 kB minified and compressed. Counts what is written by hand.
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const MOST = 12_000;
for (const entry of ["index", "extensions", "webhooks"]) {
  const contents = `export * from "./dist/${entry}.js"`;
  const options = { bundle: true, minify: true, format: "esm", target: "es2022", platform: "browser", write: false };
  const { outputFiles } = await build({ stdin: { contents, resolveDir: "." }, ...options });
  const { length } = gzipSync(outputFiles[0].contents, { level: 9 });
  console.log(`${entry}: ${outputFiles[0].contents.length} bytes minified, ${length} compressed`);
  if (length > MOST) process.exitCode = 1;
}

const lines = (file) => readFileSync(`src/${file}`, "utf8").split("\n").filter((line) => !/^\s*(\/\/|\/\*|\*|$)/.test(line)).length;
const files = readdirSync("src").filter((file) => file.endsWith(".ts"));
const counts = Object.fromEntries(files.map((file) => [file, lines(file)]));
const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
console.log(`${all} lines of code by hand, without comments: ${JSON.stringify(counts)}`);
