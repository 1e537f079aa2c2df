// Fails when something public has no documentation: an export of an entry, or a member of one.
import ts from "typescript";

const entries = ["index", "extensions", "webhooks"].map((name) => `src/${name}.ts`);
const program = ts.createProgram(entries, { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, strict: true });
const checker = program.getTypeChecker();
const missing = new Set();

const isOurs = (symbol) => symbol.declarations?.some(({ parent }) => /\/src\/\w+\.ts$/.test(parent.getSourceFile().fileName));
const isInternal = (symbol) => symbol.getJsDocTags(checker).some(({ name }) => name === "internal");

function check(symbol, name) {
  if (symbol.getDocumentationComment(checker).length === 0) missing.add(name);
}

for (const entry of entries) {
  const module = checker.getSymbolAtLocation(program.getSourceFile(entry));
  for (const exported of checker.getExportsOfModule(module)) {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    check(symbol, symbol.name);
    if (!(symbol.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface))) continue;
    for (const [name, member] of symbol.members ?? []) {
      const isPublic = !String(name).startsWith("__") && isOurs(member) && !isInternal(member);
      // A name that every error has, and what an iterator is called by.
      if (isPublic && name !== "name" && member.flags & ~ts.SymbolFlags.TypeParameter) check(member, `${symbol.name}.${name}`);
    }
  }
}
for (const name of missing) console.error(`${name} has no documentation`);
process.exitCode = missing.size > 0 ? 1 : 0;
