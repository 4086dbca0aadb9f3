"""Makes rules.json of the rules of gitleaks (MIT licence), which its own
repository keeps as config/gitleaks.toml:

    python3 update.py gitleaks.toml VERSION > rules.json

What is taken: how each kind of secret looks, the words that must stand near
it, how random it must be, and what is known not to be one. Rules for paths
and commits mean nothing for what people say, and are left out.
"""

import json
import sys
import tomllib


def allow(lists):
    out = []
    for a in lists:
        one = {k: a[k] for k in ("regexes", "stopwords") if a.get(k)}
        if not one or a.get("condition", "OR").upper() == "AND":
            continue
        one["target"] = a.get("regexTarget", "secret")
        out.append(one)
    return out


with open(sys.argv[1], "rb") as f:
    config = tomllib.load(f)

rules = []
for r in config["rules"]:
    if "regex" not in r or "path" in r:
        continue
    rule = {"id": r["id"], "regex": r["regex"], "keywords": [k.lower() for k in r.get("keywords", [])]}
    for k in ("entropy", "secretGroup"):
        if r.get(k):
            rule[k] = r[k]
    if lists := allow(r.get("allowlists", [])):
        rule["allow"] = lists
    rules.append(rule)

json.dump(
    {"source": f"github.com/gitleaks/gitleaks {sys.argv[2]}, MIT licence, Copyright (c) 2019 Zachary Rice", "allow": allow([config["allowlist"]]), "rules": rules},
    sys.stdout, indent=1, ensure_ascii=False,
)
print()
