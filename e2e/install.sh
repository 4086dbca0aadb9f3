#!/usr/bin/env bash
# Installs the clients that the end-to-end tests drive, at pinned versions,
# below e2e/.cache. Does nothing for those that are there.
set -uo pipefail
cd "$(dirname "$0")"
failed=0
mkdir -p .cache/node
if ! cmp -s node/package-lock.json .cache/node/package-lock.json || [ ! -d .cache/node/node_modules/openai ]; then
	cp node/package.json node/package-lock.json node/.npmrc .cache/node/
	(cd .cache/node && timeout 300 npm ci --no-audit --no-fund --loglevel=error) || failed=1
fi
cp node/driver.mjs node/talk.mjs .cache/node/
mkdir -p .cache/cli
if ! cmp -s cli/package-lock.json .cache/cli/package-lock.json || [ ! -x .cache/cli/node_modules/.bin/codex ]; then
	cp cli/package.json cli/package-lock.json cli/.npmrc .cache/cli/
	(cd .cache/cli && timeout 400 npm ci --no-audit --no-fund --loglevel=error) || failed=1
fi
if ! cmp -s python/requirements.txt .cache/python/requirements.txt; then
	rm -rf .cache/python
	timeout 300 python3 -m pip install --quiet --disable-pip-version-check --target .cache/python -r python/requirements.txt &&
		cp python/requirements.txt .cache/python/ || failed=1
fi
if ! cmp -s litellm/requirements.txt .cache/litellm/requirements.txt; then
	rm -rf .cache/litellm
	timeout 600 python3 -m pip install --quiet --disable-pip-version-check --target .cache/litellm -r litellm/requirements.txt &&
		cp litellm/requirements.txt .cache/litellm/ || failed=1
fi
if ! cmp -s graphiti/requirements.txt .cache/graphiti/requirements.txt; then
	rm -rf .cache/graphiti
	timeout 600 python3 -m pip install --quiet --disable-pip-version-check --target .cache/graphiti -r graphiti/requirements.txt &&
		cp graphiti/requirements.txt .cache/graphiti/ || failed=1
fi
if ! cmp -s validate/requirements.txt .cache/validate/requirements.txt; then
	rm -rf .cache/validate
	timeout 300 python3 -m pip install --quiet --disable-pip-version-check --target .cache/validate -r validate/requirements.txt &&
		cp validate/requirements.txt .cache/validate/ || failed=1
fi
./packages.sh || failed=1
if ! goreleaser --version 2>/dev/null | grep -q 2.12.0; then
	timeout 300 go install github.com/goreleaser/goreleaser/v2@v2.12.0 || failed=1
fi
exit $failed
