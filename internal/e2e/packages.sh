#!/usr/bin/env bash
# Installs Debian's Postgres, promtool, tinyproxy, Chromium, npm and pip, or only the package of its
# argument, where they are missing and can be. The services that come with them are not started.
set -uo pipefail
exec 9<"$0" && flock 9 # one at a time
missing=() only=${1:-}
lacks() { [ "${only:-${1%%=*}}" != "${1%%=*}" ] || missing+=("$1"); }
command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || lacks postgresql-15=15.20-0+deb12u1
command -v promtool >/dev/null || lacks prometheus=2.42.0+ds-5+deb12u1
command -v tinyproxy >/dev/null || lacks tinyproxy=1.11.1-2.1+deb12u1
command -v chromium >/dev/null || lacks chromium=156.0.8078.108-1~deb12u1
command -v npm >/dev/null || lacks npm
python3 -m pip --version >/dev/null 2>&1 || lacks python3-pip
[ ${#missing[@]} -eq 0 ] && exit 0
command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || { echo "cannot install ${missing[*]} here" >&2; exit 1; }
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy
	trap 'rm -f $policy' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
timeout 120 apt-get update -q >/dev/null || true
install() { timeout 300 apt-get install -y -q --no-install-recommends "$@" >/dev/null; }
# Debian keeps the newest version of a release only.
install "${missing[@]}" || { echo "not at the pinned versions: ${missing[*]}" >&2; install "${missing[@]%%=*}"; }
