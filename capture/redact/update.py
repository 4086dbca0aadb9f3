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


# The rules of gitleaks are for files. In what people say these ones find too
# much, too little or too slowly.
ABOUT_NAMES = ("-client-id", "-access-id")  # many other things look like it
OURS = {"private-key"}  # urls.go has it, also without an end
CHANGES = {
    "sourcegraph-access-token": {"allow": [{"regexes": ["^[a-f0-9]{40}$"], "target": "secret"}]},  # a commit's hash
    # Their groups are parts of the secret.
    "jwt-base64": {"secretGroup": -1},
    "microsoft-teams-webhook": {"secretGroup": -1},
    # Their keywords stand in every other text.
    "authress-service-client-access-key": {"keywords": [".acc-", ".acc_"]},
    "jwt": {"keywords": ["eyj", "eyi", "eya"]},  # an object in base64
    "lob-api-key": {"keywords": ["lob"]},
    "lob-pub-api-key": {"keywords": ["lob"]},
    "vault-service-token": {"keywords": ["hvs."]},  # s.<...>, the old form, is in dotted
    # Their secrets need not stand beside the keyword.
    "airtable-personnal-access-token": {"afar": 1 << 10},
    "facebook-access-token": {"afar": 1 << 10},
    "curl-auth-header": {"afar": 4 << 10},
    "curl-auth-user": {"afar": 4 << 10},
}

with open(sys.argv[1], "rb") as f:
    config = tomllib.load(f)

rules = []
for r in config["rules"]:
    if "regex" not in r or "path" in r or r["id"] in OURS or r["id"].endswith(ABOUT_NAMES):
        continue
    rule = {"id": r["id"], "regex": r["regex"], "keywords": [k.lower() for k in r.get("keywords", [])]}
    for k in ("entropy", "secretGroup"):
        if r.get(k):
            rule[k] = r[k]
    if lists := allow(r.get("allowlists", [])):
        rule["allow"] = lists
    change = CHANGES.get(r["id"], {})
    rules.append(rule | change | ({"allow": lists + change["allow"]} if "allow" in change else {}))

json.dump(
    {"source": f"github.com/gitleaks/gitleaks {sys.argv[2]}, MIT licence, Copyright (c) 2019 Zachary Rice", "allow": allow([config["allowlist"]]), "rules": rules},
    sys.stdout, indent=1, ensure_ascii=False,
)
print()
