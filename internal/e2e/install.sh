#!/usr/bin/env bash
# Installs the clients that the end-to-end tests drive, at pinned versions,
# below internal/e2e/.cache, or only the Python packages of the folders of its arguments.
# Does nothing for those that are there.
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
	local all=
	[ "$1" != open-webui ] || all=--no-deps
	if ! cmp -s "$1/requirements.txt" ".cache/$1/requirements.txt"; then
		rm -rf ".cache/$1"
		timeout 600 python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile $all --target ".cache/$1" -r "$1/requirements.txt" &&
			cp "$1/requirements.txt" ".cache/$1/"
	fi
}

# Graphiti's REST server and its MCP server, which are in the source package of graphiti-core.
# The first writes through a driver that it has closed, which those of Neo4j after version 5
# refuse. The second needs a newer mcp than graphiti/service.py.
server() {
	local core driver=neo4j==5.28.1 mcp="mcp==2.3.0 mcp_types==2.3.0"
	core=$(grep '^graphiti-core==' graphiti/requirements.txt)
	if [ "$(cat .cache/server/version 2>/dev/null)" != "$core $driver $mcp" ]; then
		rm -rf .cache/server
		mkdir -p .cache/server
		timeout 300 python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps --target .cache/server "$driver" &&
			timeout 300 python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps --target .cache/server/tools $mcp &&
			timeout 300 python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary graphiti-core --dest .cache/server "$core" &&
			tar xzf .cache/server/*.tar.gz -C .cache/server --strip-components=2 --wildcards '*/server/graph_service' &&
			tar xzf .cache/server/*.tar.gz -C .cache/server --strip-components=1 --wildcards '*/mcp_server/main.py' '*/mcp_server/src' '*/mcp_server/config' &&
			echo "$core $driver $mcp" >.cache/server/version
	fi
}

# Neo4j as a library, where there are Java and Maven.
neo4j() {
	if ! cmp -s graphiti/neo4j/pom.xml .cache/neo4j/pom.xml; then
		rm -rf .cache/neo4j
		timeout 600 mvn --quiet --batch-mode --file graphiti/neo4j "-Dmaven.repo.local=$PWD/.cache/neo4j/repository" \
			org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies "-DoutputDirectory=$PWD/.cache/neo4j/jars" &&
			rm -r .cache/neo4j/repository && cp graphiti/neo4j/pom.xml .cache/neo4j/
	fi
}

# Kustomize, which kubectl contains, as Go's checksum database knows it.
kustomize() {
	local version=v5.7.1
	if [ "$(cat .cache/kustomize/version 2>/dev/null)" != $version ]; then
		GOBIN="$PWD/.cache/kustomize" timeout 600 go install "sigs.k8s.io/kustomize/kustomize/v5@$version" && echo $version >.cache/kustomize/version
	fi
}

if [ $# -gt 0 ]; then
	for of; do pip_in "$of" || exit 1; done
	exit 0
fi
mkdir -p .cache/node
cp node/talk.mjs .cache/node/
beside npm_in node openai
beside npm_in cli .bin/codex
beside npm_in browser playwright-core
for of in clients/*; do beside npm_in "$of" .package-lock.json; done
for of in python agents langchain gptme litellm graphiti validate site; do beside pip_in $of; done
beside server
beside neo4j
beside kustomize
beside ./packages.sh
failed=0
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
exit $failed
