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
