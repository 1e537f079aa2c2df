// Fails when something public has no documentation: an export of an entry, or a member of one.
import ts from "typescript";

const entries = ["index", "extensions", "webhooks"].map((name) => `src/${name}.ts`);
const program = ts.createProgram(entries, { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, strict: true });
const checker = program.getTypeChecker();
const missing = new Set();

const isOurs = (symbol) => symbol.declarations?.some(({ parent }) => /\/src\/\w+\.ts$/.test(parent.getSourceFile().fileName));
const isPrivate = (symbol) => symbol.declarations?.some((declaration) => ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.Private);
const isInternal = (symbol) => symbol.getJsDocTags(checker).some(({ name }) => name === "internal");

function check(symbol, name) {
  if (symbol.getDocumentationComment(checker).length === 0) missing.add(name);
}

for (const entry of entries) {
  const module = checker.getSymbolAtLocation(program.getSourceFile(entry));
  for (const exported of checker.getExportsOfModule(module)) {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    check(symbol, symbol.name);
    const { Class, Interface, TypeAlias } = ts.SymbolFlags;
    if (!(symbol.flags & (Class | Interface | TypeAlias))) continue;
    // The methods of an alias are those that it takes from a class.
    const methods = checker.getDeclaredTypeOfSymbol(symbol).getProperties().filter((member) => member.flags & ts.SymbolFlags.Method);
    const picked = methods.map((member) => [member.name, member]);
    for (const [name, member] of symbol.flags & TypeAlias ? picked : (symbol.members ?? [])) {
      const isPublic = !String(name).startsWith("__") && isOurs(member) && !isPrivate(member) && !isInternal(member);
      // A name that every error has, and what an iterator is called by.
      if (isPublic && name !== "name" && member.flags & ~ts.SymbolFlags.TypeParameter) check(member, `${symbol.name}.${name}`);
    }
  }
}
for (const name of missing) console.error(`${name} has no documentation`);
process.exitCode = missing.size > 0 ? 1 : 0;
