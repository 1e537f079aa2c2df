// Counts the lines of code by hand in src, without blank lines and comments, and fails if there are more than 600, or one is too long.
import { readdirSync, readFileSync } from "node:fs";
import ts from "typescript";

const MOST = 600;
/** The longest line, in characters. A line that grew longer would hide another one. */
const LONGEST = 150;

/** Adds the lines of each token below a node. Comments are no tokens. */
function add(node, source, lines) {
  const children = node.getChildren(source);
  if (ts.isJSDoc(node) || node.getStart(source) === node.end) return;
  for (const child of children) add(child, source, lines);
  if (children.length > 0) return;
  const line = (position) => source.getLineAndCharacterOfPosition(position).line;
  for (let at = line(node.getStart(source)); at <= line(node.end); at++) lines.add(at);
}

let all = 0;
for (const file of readdirSync("src").filter((name) => name.endsWith(".ts"))) {
  const text = readFileSync(`src/${file}`, "utf8");
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022);
  const lines = new Set();
  add(source, source, lines);
  console.log(`${file}: ${lines.size}`);
  all += lines.size;
  for (const [index, line] of text.split("\n").entries()) {
    if (line.length <= LONGEST) continue;
    console.error(`src/${file}:${index + 1} has ${line.length} characters, and ${LONGEST} are the most`);
    process.exitCode = 1;
  }
}
console.log(`${all} lines of code by hand`);
if (all > MOST) {
  console.error(`The client has more than ${MOST} lines by hand.`);
  process.exitCode = 1;
}
