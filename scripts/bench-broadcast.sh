# shellcheck shell=bash
# The part of scripts/bench that measures broadcasts. Sourced by it.
# shellcheck disable=SC2154 # What is not assigned here is scripts/bench's.
#
# One relay with the store in memory. A fleet on shared connections subscribes to one channel and
# gets a broadcast each half second; beside it another provider pushes to phones of its own, in a
# process of its own, first alone and then while the broadcasts go out. Not pinned to a core: relay
# and fleet share the machine, and each broadcast's last phone is late by the fleet's work, too.

others_rate=500

measure_broadcast() {
  local subscribers=${broadcast_subscribers:-100000} address state=$work/broadcast
  # shellcheck disable=SC2034 # Where the relay and the load begin.
  server_core=() load_core=()
  launch_relay broadcast --store memory --channels 127.0.0.1:0 --log-level error
  # The other provider finds keys and certificates, and has a fleet of its own.
  mkdir -p "$work/others"
  ln -s "$state/keys" "$work/others/keys"
  [[ $scheme == http ]] || ln -s "$state/ca.pem" "$work/others/ca.pem"
  address=${base[broadcast]#*://}
  say "another provider, alone"
  push_beside "$seconds" "$address" >"$work/alone.json"
  say "$subscribers phones subscribe"
  "$relay" load --state "$state" --devices "$subscribers" --rate 1 --seconds "$((seconds * 2))" \
    --broadcasts "$((seconds * 4))" --wait 30 --json >"$work/broadcast.json" 2>"$work/broadcast.log" &
  processes+=($!)
  local fleet=$!
  until grep -qs "^.*phones listen" "$work/broadcast.log" || [[ -s $work/broadcast.json ]]; do
    kill -0 "$fleet" 2>/dev/null || fail "no fleet: $(tail -n 1 "$work/broadcast.log")"
    sleep 0.2
  done
  push_beside "$seconds" "$address" >"$work/meanwhile.json"
  wait "$fleet" || fail "the broadcasts failed: $(tail -n 1 "$work/broadcast.log")"
  report_broadcast "$subscribers"
}

# push_beside SECONDS ADDRESS: pushes of another provider to 100 phones; its report.
push_beside() {
  "$relay" load --state "$work/others" --provider "$2" --device "$device_address" --devices 100 \
    --topic com.example.other --rate "$others_rate" --seconds "$1" --json "${plaintext[@]}" ||
    fail "the other provider could not push"
}

report_broadcast() {
  printf '\nbroadcasts to %s phones, %s, %s\n\n' "$1" "$(processor)" "$(uname -sr)"
  python3 - "$work" <<'PYTHON'
import json, sys

def read(name):
    with open(f"{sys.argv[1]}/{name}.json") as file:
        return json.load(file)

told = read("broadcast")
lasts = told["broadcasts"]["lastMicroseconds"]
print(f"{told['broadcasts']['accepted']} broadcasts, "
      f"{told['broadcasts']['delivered']} of {told['broadcasts']['due']} arrived")
print(f"the last phone has it after {lasts[len(lasts) // 2] / 1000:.0f} ms (median), "
      f"{lasts[-1] / 1000:.0f} ms (worst)")
alone, meanwhile = (read(name)["answerMicroseconds"]["p99"] for name in ("alone", "meanwhile"))
print(f"p99 of another provider: {alone / 1000:.1f} ms alone, {meanwhile / 1000:.1f} ms meanwhile")
PYTHON
  if command -v mosquitto >/dev/null; then
    say "mosquitto is here, but this script has no fleet of MQTT clients: not compared"
  else
    say "mosquitto is not installed: not compared"
  fi
}
