#!/usr/bin/env bash
# Installs the clients that the end-to-end tests drive, at pinned versions,
# below internal/e2e/.cache. Does nothing for those that are there.
set -uo pipefail
cd "$(dirname "$0")"
pids=()
beside() { "$@" & pids+=($!); }

npm_in() { # folder, what must be there
	if ! cmp -s "$1/package-lock.json" ".cache/$1/package-lock.json" || [ ! -e ".cache/$1/node_modules/$2" ]; then
		mkdir -p ".cache/$1"
		cp "$1/package.json" "$1/package-lock.json" "$1/.npmrc" ".cache/$1/"
		(cd ".cache/$1" && timeout 600 npm ci --no-audit --no-fund --loglevel=error)
	fi
}

# Modules are compiled when they are imported: most never are.
pip_in() {
	if ! cmp -s "$1/requirements.txt" ".cache/$1/requirements.txt"; then
		rm -rf ".cache/$1"
		timeout 600 python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --target ".cache/$1" -r "$1/requirements.txt" &&
			cp "$1/requirements.txt" ".cache/$1/"
	fi
}

mkdir -p .cache/node
cp node/driver.mjs node/talk.mjs .cache/node/
beside npm_in node openai
beside npm_in cli .bin/codex
for of in clients/*; do beside npm_in "$of" .package-lock.json; done
for of in python litellm graphiti validate site; do beside pip_in $of; done
beside ./packages.sh
nfpm_at() { go version -m "$(command -v nfpm)" 2>/dev/null | grep -q "v$1" || nice go install "github.com/goreleaser/nfpm/v2/cmd/nfpm@v$1"; }
beside nfpm_at 2.43.1
failed=0
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
exit $failed
