#!/usr/bin/env python3
"""Writes the initial corpus of each fuzz target, fuzz/corpus/TARGET/, from the fixtures."""

import base64
import hashlib
import json
import pathlib

here = pathlib.Path(__file__).parent
fixtures = here.parent / "fixtures"
ID = "019a0000-0000-7000-8000-0000000000a1"


def seed(target, data):
    folder = here / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    data = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


def fill(text):
    while "{{" in text:
        before, rest = text.split("{{", 1)
        name, after = rest.split("}}", 1)
        value = "x" * min(int(name[5:]), 64) if name.startswith("long:") else ID
        text = before + value + after
    return text


for path in sorted(fixtures.glob("requests/*/*/*.json")):
    case = json.loads(path.read_text())
    if "body" in case:
        seed("json_body", fill(json.dumps(case["body"], ensure_ascii=False)))
        url = case["body"].get("url") if isinstance(case["body"], dict) else None
        if isinstance(url, str):
            seed("webhook_url", fill(url))
    if "raw" in case:
        seed("json_body", fill(case["raw"]))
    if "query" in case:
        seed("query", fill(case["query"]))

# These inputs are structures, whose strings and bodies are read from the end of the data.
for vector in json.loads((fixtures / "webhooks" / "vectors.json").read_text()):
    body = base64.b64decode(vector["body_base64"]) if "body_base64" in vector else vector["body"].encode()
    key = vector.get("secret", vector.get("public_key"))
    header = vector.get("signature") or vector.get("webhook_signature", "")
    seed("signature", (key + header).encode() + body)
seed("api_key", bytes(range(32)) + b"\0\x05xBearer svc_live_")
seed("cursor", bytes(range(58)) + ID.encode())

for table in fixtures.glob("addresses/*.csv"):
    for line in table.read_text().splitlines()[1:]:
        network = line.split(",")[0].strip('"').split("/")[0].split(" ")[0]
        seed("webhook_url", f"https://[{network}]/" if ":" in network else f"https://{network}/")

CALLBACK = "redirect_uri=https%3A%2F%2Fapp.example.com%2Fcallback"
for form in (
    f"response_type=code&{CALLBACK}&scope=read&state=a&code_challenge={'A' * 43}&code_challenge_method=S256&prompt=none",
    f"grant_type=authorization_code&code=svc_oac_&{CALLBACK}&code_verifier={'a' * 43}",
    "grant_type=refresh_token&refresh_token=svc_ort_",
    "token=svc_oat_&token_type_hint=access_token",
):
    seed("oauth", bytes(2) + form.encode())
