// Bundles each entry for browsers, and fails if it is larger than 12 kB minified and compressed.
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
