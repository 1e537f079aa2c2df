// Counts the lines of code by hand in src, without blank lines and comments, and fails if there are more than 600, or if one is
// longer than any other or has a second statement: each would hide further ones.
import { readdirSync, readFileSync } from "node:fs";
import ts from "typescript";

const MOST = 600;
const LONGEST = 150;
const problems = [];
let all = 0;

for (const file of readdirSync("src").filter((name) => name.endsWith(".ts"))) {
  const source = ts.createSourceFile(file, readFileSync(`src/${file}`, "utf8"), ts.ScriptTarget.ES2022);
  const lineOf = (position) => source.getLineAndCharacterOfPosition(position).line;
  const lines = new Set();

  /** Adds the lines of the tokens of a node. Comments are no tokens. */
  function add(node) {
    const children = node.getChildren(source);
    if (ts.isJSDoc(node) || node.getStart(source) === node.end) return;
    children.forEach(add);
    const first = lineOf(node.getStart(source));
    if (children.length === 0) for (let line = first; line <= lineOf(node.end); line++) lines.add(line);
    const starts = (node.statements ?? []).map((statement) => lineOf(statement.getStart(source)));
    if (new Set(starts).size < starts.length) problems.push(`src/${file}:${first + 1} has several statements in one line.`);
  }

  add(source);
  source.text.split("\n").forEach(({ length }, line) => {
    if (length > LONGEST) problems.push(`src/${file}:${line + 1} has ${length} characters, and ${LONGEST} are the most.`);
  });
  console.log(`${file}: ${lines.size}`);
  all += lines.size;
}
console.log(`${all} lines of code by hand`);
if (all > MOST) problems.push(`The client has more than ${MOST} lines by hand.`);
problems.forEach((problem) => console.error(problem));
process.exitCode = problems.length > 0 ? 1 : 0;
