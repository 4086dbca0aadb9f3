"""Validates Kubernetes manifests against the API's own schemas, strictly."""

import sys

import kubernetes_validate
import yaml

for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as f:
        for manifest in yaml.safe_load_all(f):
            kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
            print(path, manifest["kind"], "ok")
