# shellcheck shell=bash
# The part of scripts/bench that measures broadcasts. Sourced by it.
# shellcheck disable=SC2154 # What is not assigned here is scripts/bench's.
#
# One relay with the store in memory. A fleet on shared connections subscribes to one channel and
# gets 20 broadcasts in twice the seconds; beside it another provider pushes to phones of its own, in a
# process of its own, first alone and then while the broadcasts go out. Not pinned to a core: relay
# and fleet share the machine. The fleet parses a line once and compares the others with it byte by
# byte (Sources/RelayClient/BroadcastMeter.swift); what each process used of the processors is
# printed.
#
# Then the same beside mosquitto, if it is there: in the clear, a connection for each phone, since MQTT
# has no others, and at most so many as descriptors suffice for. Its clients are benchmarks/mqtt.py,
# which reads as little as can be, in one thread.

others_rate=500
most_connections=15000

measure_broadcast() {
  local subscribers=${broadcast_subscribers:-100000} beside
  measure_fleet shared "$subscribers" 1000 20
  report_broadcast shared "$subscribers phones, 1000 on a connection"
  if ! command -v mosquitto >/dev/null; then
    say "mosquitto is not installed: not compared"
    return
  fi
  beside=$((subscribers < most_connections ? subscribers : most_connections))
  scheme=http plaintext=(--plaintext)
  # With a connection each a broadcast takes longer: fewer, so that none waits for the last.
  measure_fleet apart "$beside" 1 6
  measure_mosquitto "$beside"
  report_broadcast apart "$beside phones, a connection each, in the clear"
  report_broadcast mosquitto0 "mosquitto, QoS 0, the same number"
  report_broadcast mosquitto1 "mosquitto, QoS 1, the same number"
}

# measure_fleet NAME SUBSCRIBERS SHARE BROADCASTS: a relay, a fleet with so many phones on a
# connection.
measure_fleet() {
  local name=$1 address state=$work/$1 fleet before
  # shellcheck disable=SC2034 # Where the relay and the load begin.
  server_core=() load_core=()
  launch_relay "$name" --store memory --channels 127.0.0.1:0 --log-level error
  # The other provider finds keys and certificates, and has a fleet of its own.
  mkdir -p "$work/others.$name"
  ln -s "$state/keys" "$work/others.$name/keys"
  [[ $scheme == http ]] || ln -s "$state/ca.pem" "$work/others.$name/ca.pem"
  address=${base[$name]#*://}
  say "$name: another provider, alone"
  push_beside "$name" "$address" >"$work/$name.alone.json"
  say "$name: $2 phones subscribe"
  "$relay" load --state "$state" --devices "$2" --share "$3" --rate 1 --seconds "$((seconds * 2))" \
    --broadcasts "$4" --wait 30 --json "${plaintext[@]}" \
    >"$work/$name.json" 2>"$work/$name.fleet.log" &
  fleet=$!
  processes+=("$fleet")
  until_fleet "$fleet" "phones listen" "$work/$name.fleet.log"
  before=$(ticks "$name")
  push_beside "$name" "$address" >"$work/$name.meanwhile.json"
  wait "$fleet" || fail "the broadcasts failed: $(tail -n 1 "$work/$name.fleet.log")"
  say_used "$name" "$before"
  kill "${process[$name]}"
  wait "${process[$name]}" 2>/dev/null || true
}

# until_fleet PROCESS TEXT LOG: waits until the log has the text.
until_fleet() {
  until grep -qs "$2" "$3"; do
    kill -0 "$1" 2>/dev/null || fail "no fleet: $(tail -n 1 "$3")"
    sleep 0.2
  done
}

# say_used NAME TICKS: what a server has used of a processor since it had used so much.
say_used() { say "$1 used $(per "$(($(ticks "$1") - $2))" "$hertz") s of a processor meanwhile"; }

# push_beside NAME ADDRESS: pushes of another provider to 100 phones; its report.
push_beside() {
  "$relay" load --state "$work/others.$1" --provider "$2" --device "$device_address" \
    --devices 100 --topic com.example.other --rate "$others_rate" --seconds "$seconds" --json \
    "${plaintext[@]}" || fail "the other provider could not push"
}

measure_mosquitto() {
  local qos client=("python3" "$root/benchmarks/mqtt.py") fleet before
  find_port
  printf '%s\n' "listener $port 127.0.0.1" "allow_anonymous true" "persistence false" \
    "log_type none" "set_tcp_nodelay true" >"$work/mosquitto.conf"
  start mosquitto mosquitto -c "$work/mosquitto.conf"
  await mosquitto listens "$port"
  for qos in 0 1; do
    say "mosquitto: another client, alone"
    "${client[@]}" push "$port" "$seconds" "$others_rate" >"$work/mosquitto$qos.alone.json"
    say "mosquitto: $1 subscribe with QoS $qos"
    "${client[@]}" fleet "$port" "$1" 6 "$((seconds * 2))" "$qos" \
      >"$work/mosquitto$qos.json" 2>"$work/mosquitto$qos.log" &
    fleet=$!
    processes+=("$fleet")
    until_fleet "$fleet" subscribe "$work/mosquitto$qos.log"
    before=$(ticks mosquitto)
    "${client[@]}" push "$port" "$seconds" "$others_rate" >"$work/mosquitto$qos.meanwhile.json"
    wait "$fleet" || fail "the publications failed: $(tail -n 1 "$work/mosquitto$qos.log")"
    say_used mosquitto "$before"
  done
}

# report_broadcast NAME TITLE
report_broadcast() {
  printf '\n%s, %s, %s\n' "$2" "$(processor)" "$(uname -sr)"
  python3 - "$work/$1" <<'PYTHON'
import json, sys

def read(end):
    with open(sys.argv[1] + end) as file:
        return json.load(file)

told = read(".json")
sent = told.get("broadcasts", told)
lasts = sent["lastMicroseconds"]
print(f"  {len(lasts)} broadcasts, {sent.get('delivered', sent.get('arrived'))} lines arrived")
print(f"  the last phone has it after {lasts[len(lasts) // 2] / 1000:.0f} ms (median), "
      f"{lasts[-1] / 1000:.0f} ms (worst)")
alone, meanwhile = (told.get("answerMicroseconds", told)["p99"]
                    for told in (read(".alone.json"), read(".meanwhile.json")))
print(f"  p99 of another provider: {alone / 1000:.1f} ms alone, {meanwhile / 1000:.1f} ms meanwhile")
PYTHON
}
