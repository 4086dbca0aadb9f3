#!/usr/bin/env bash
# Writes cmd/internal/cli/licenses.txt: the license of each module in the program, for all
# systems that releases are built for. Modules with the same text share it.
set -euo pipefail
cd "$(dirname "$0")/../.."
texts=$(mktemp -d)
trap 'rm -rf "$texts"' EXIT
modules() {
	for system in linux darwin windows; do
		GOOS=$system go list -deps -tags grpcnotrace -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/graphiti-proxy
	done | sort -u
	echo "std $(go env GOVERSION) $(go env GOROOT)"
}
modules | while read -r path version dir; do
	files=$(find "$dir" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) ! -name '*.go' ! -name '*.docs' | sort)
	[ -n "$files" ] || { echo "$path has no license file" >&2; exit 1; }
	text=$(printf '%s\n' "$files" | xargs -d '\n' cat | tr -d '\r')
	name=$texts/$(printf '%s' "$text" | sha256sum | cut -c1-16)
	printf '%s\n' "$text" >"$name.text"
	echo "$path $version" >>"$name.of"
done
{
	for of in $(grep -H . "$texts"/*.of | sort -t: -k2 | cut -d: -f1 | awk '!seen[$0]++'); do
		printf '%s\n\n' "================================================================================"
		sort "$of"
		echo
		cat "${of%.of}.text"
		echo
	done
} >cmd/internal/cli/licenses.txt
