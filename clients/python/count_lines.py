"""Counts the lines of code by hand, without blank lines, comments and docstrings, and fails if there are more than 600.

python count_lines.py
"""

import ast
import io
import sys
import tokenize
from pathlib import Path

MOST = 600
BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def lines(source: str) -> int:
    """Returns how many lines of a module are code."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in BLANK:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found -= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(found)


def main() -> None:
    """Counts those of all modules that are not generated."""
    modules = (Path(__file__).parent / "src" / "svc_client").glob("*.py")
    sources = [path.read_text() for path in modules]
    count = sum(lines(source) for source in sources if not source.startswith("# Written by generate.py"))
    print(f"{count} lines of code by hand")
    if count > MOST:
        sys.exit(f"The client has more than {MOST} lines by hand.")


if __name__ == "__main__":
    main()
