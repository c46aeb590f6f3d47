# shellcheck shell=bash
# The part of scripts/bench that measures how a fleet comes back. Sourced by it.
# shellcheck disable=SC2154 # What is not assigned here is scripts/bench's.
#
# A relay with the local journal, as many loops as the machine has cores, and a fleet of phones, each
# on a TLS connection of its own. The relay is killed and started again: with its ticket keys, so that
# it knows all connections again, and without, so that each begins anew; the two take turns, also in
# who goes first. From the moment it is ready a provider pushes to ten other phones, 200 times a second;
# the relay's processor time is its start and these pushes, too. Not pinned to a core: relay, fleet and
# provider share the machine.

measure_return() {
  local phones=${return_phones:-10000} state=$work/return round ways way provider device before
  # shellcheck disable=SC2034 # Where the relay and the load begin.
  server_core=() load_core=()
  ulimit -n "$(ulimit -Hn)"
  find_port && provider=127.0.0.1:$port
  find_port && device=127.0.0.1:$port
  "$relay" key new --state "$state" >"$work/key.log" 2>&1 || fail "$(tail -n 1 "$work/key.log")"
  start_again
  mkdir -p "$work/others"
  ln -s "$state/keys" "$state/ca.pem" "$work/others"
  push_meanwhile alone
  before=$(resident)
  say "$phones phones connect"
  start fleet "$relay" device --count "$phones" --light --per-connection 1 --state "$state" \
    --device "$device"
  until_connected 600
  printf '%s, %s\n' "$(processor)" "$(uname -sr)"
  printf '%d phones with a connection each: %d resident bytes each; p99 of a provider, alone: %s\n\n' \
    "$phones" $((($(resident) - before) / phones)) "$(p99 alone)"
  printf '%-18s %10s %18s %18s %22s\n' "ticket keys" "all back" "relay, a phone" "fleet, a phone" "provider's p99"
  for ((round = 1; round <= rounds; round++)); do
    ways=(kept removed)
    ((round % 2)) || ways=(removed kept)
    for way in "${ways[@]}"; do come_back "$way"; done
  done
}

start_again() {
  # What the one before has said is not the word of this one.
  rm -f "$work/return.log"
  start return "$relay" serve --state "$state" --profile dev --keep-requests 0 --log-level error \
    --provider "$provider" --device "$device"
  await return is_ready return
}

# come_back WAY: kills the relay, starts it again, prints a row.
come_back() {
  local before began pushes
  # After a connection of half a minute a phone's pauses are short again.
  sleep 31
  before=$(ticks fleet)
  kill -KILL "${process[return]}"
  wait "${process[return]}" 2>/dev/null || true
  [[ $1 == kept ]] || rm "$state/tickets.keys"
  began=$(date +%s%N)
  start_again
  push_meanwhile "$1" &
  pushes=$!
  until_connected 120
  printf '%-18s %8d ms %15.3f ms %15.3f ms' "$1" $((($(date +%s%N) - began) / 1000000)) \
    "$(per "$(ticks return)" "$((hertz * phones))" 1000)" \
    "$(per "$(($(ticks fleet) - before))" "$((hertz * phones))" 1000)"
  wait "$pushes" || fail "the provider could not push"
  printf ' %22s\n' "$(p99 "$1")"
}

# until_connected SECONDS: waits for the whole fleet.
until_connected() {
  local end=$((SECONDS + $1))
  until curl --silent --unix-socket "$state/admin.sock" http://relay/metrics |
    awk -v all="$phones" '/^pushrelay_devices.state="connected"/ && $2 >= all { found = 1 }
      END { exit !found }'; do
    ((SECONDS < end)) || fail "not all of $phones phones were there after $1 s"
    sleep 0.1
  done
}

# push_meanwhile NAME: its report, also of refusals.
push_meanwhile() {
  "$relay" load --state "$work/others" --provider "$provider" --device "$device" --devices 10 \
    --share 10 --topic com.example.other --rate 200 --seconds "$seconds" --json >"$work/$1.json"
}

p99() {
  python3 - "$work/$1.json" <<'PYTHON'
import json, sys
with open(sys.argv[1]) as file:
    told = json.load(file)
refused = sum(count for answer, count in told["answers"].items() if answer != "200")
print(f"{told['answerMicroseconds']['p99'] / 1000:.1f} ms, {refused} refused")
PYTHON
}

resident() { awk '/^VmRSS/ { print $2 * 1024 }' "/proc/${process[return]}/status"; }
