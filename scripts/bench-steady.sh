# shellcheck shell=bash
# The part of scripts/bench that measures at a rate that leaves room. Sourced by it.
# shellcheck disable=SC2154 # What is not assigned here is scripts/bench's.
#
# 1. 20,000 pushes a second to phones that are away, to a relay with its store in memory and to
#    nghttpd. A push is sent when it is due and its time counts from then, whether or not earlier
#    ones were answered (pushrelay load --away).
# 2. 5,000 a second with the journal, beside what one fdatasync of 4 KiB takes in the same directory.
# 3. Pushes to one phone that acknowledges each, over TLS, beside mosquitto with one publisher and one
#    subscriber, both with QoS 1: processor time of the server for each that was acknowledged. The
#    clients differ, hence nothing that they see is compared.

memory_rate=20000 journal_rate=5000 phone_rate=5000

measure_steady() {
  local round name
  [[ $scheme == https ]] || fail "--steady is with TLS for all; see scripts/bench --help"
  certificate
  start_relay steady --store memory --keep-requests 0
  start_nghttpd
  start_relay steady-durable --store sqlite --keep-requests 0
  devices=1 start_relay one --store memory --keep-requests 0
  if command -v mosquitto >/dev/null; then start_mosquitto_tls; fi
  [[ -v process[mosquitto] ]] || say "mosquitto is not installed: not compared"
  local -A seen=()
  for ((round = 0; round <= rounds; round++)); do
    # Round 0 fills caches.
    for name in steady nghttpd; do push_steadily "$name" "$memory_rate" "$round"; done
    push_steadily steady-durable "$journal_rate" "$round"
    seen[sync]+="$(microseconds_of_sync) "
    push_to_one "$round"
    if [[ -v process[mosquitto] ]]; then publish_to_one "$round"; fi
  done
  report_steady
}

start_mosquitto_tls() {
  find_port
  printf '%s\n' "listener $port 127.0.0.1" "certfile $work/server.pem" "keyfile $work/server.key" \
    "user $(id -un)" "allow_anonymous true" "persistence false" "log_type none" \
    "max_inflight_messages 0" "max_queued_messages 0" "set_tcp_nodelay true" >"$work/mosquitto.conf"
  mosquitto_port=$port
  start mosquitto mosquitto -c "$work/mosquitto.conf"
  await mosquitto listens "$port"
}

# push_steadily SERVER RATE ROUND: the tokens are those of the relay's own fleet.
push_steadily() {
  local name=$1 rate=$2 round=$3 state=$work/$1 report
  [[ $name != nghttpd ]] || state=$work/steady
  report=$("${load_core[@]}" "$relay" load --away --state "$state" --devices "$devices" \
    --provider "${base[$name]#*://}" --insecure \
    --topic "$topic" --rate "$rate" --seconds "$seconds" --json "${plaintext[@]}" \
    2>"$work/load.log") || fail "$name: $(tail -n 1 "$work/load.log")"
  expect_all "$name" "$report" "$(value answers.200 "$report")" $((rate * seconds))
  ((round > 0)) || return 0
  seen[$name.p50]+="$(value answerMicroseconds.p50 "$report") "
  seen[$name.p99]+="$(value answerMicroseconds.p99 "$report") "
  say "round $round: $name $(value answerMicroseconds.p50 "$report") and $(
    value answerMicroseconds.p99 "$report") microseconds"
}

push_to_one() {
  local before report name=one
  before=$(ticks $name)
  report=$("${load_core[@]}" "$relay" load --state "$work/$name" --devices 1 \
    --topic "$topic" --rate "$phone_rate" --seconds "$seconds" --json "${plaintext[@]}" \
    2>"$work/load.log") || fail "$name: $(tail -n 1 "$work/load.log")"
  count_cost "$1" relay "$(value delivered "$report")" $(($(ticks $name) - before))
}

publish_to_one() {
  local before report
  before=$(ticks mosquitto)
  report=$("${load_core[@]}" python3 "$root/benchmarks/mqtt.py" pair "$mosquitto_port" "$seconds" \
    "$phone_rate")
  count_cost "$1" mosquitto "$(value acknowledged "$report")" $(($(ticks mosquitto) - before))
}

# count_cost ROUND NAME DELIVERED TICKS. A relay replaces what waits while 32 are on their way.
count_cost() {
  local wanted=$((phone_rate * seconds))
  (($3 * 100 >= wanted * 95)) || fail "$2: only $3 of $wanted arrived"
  (($1 > 0)) || return 0
  seen[$2.cost]+="$(per $(($4 * 1000000 / hertz)) "$3") "
  say "round $1: $2 $(awk '{ print $NF }' <<<"${seen[$2.cost]}") microseconds of a processor for each of $3"
}

expect_all() { [[ $3 == "$4" ]] || fail "$1 did not answer 200 to all $4: $2"; }

# value PATH JSON
value() {
  python3 -c 'import json, sys
value = json.loads(sys.argv[2])
for name in sys.argv[1].split("."): value = value.get(name, {})
print(value or 0)' "$1" "$2"
}

# Of 500 writes of 4 KiB, each on disk before the next.
microseconds_of_sync() {
  local before after
  before=$(date +%s%N)
  dd if=/dev/zero of="$work/sync" bs=4k count=500 oflag=dsync 2>/dev/null
  after=$(date +%s%N)
  rm "$work/sync"
  echo $(((after - before) / 500000))
}

report_steady() {
  local row='%-44s %9s %9s\n' sync
  sync=$(median "${seen[sync]}")
  printf '\nTLS, %s x %s s, %s, %s\n\n' "$rounds" "$seconds" "$(processor)" "$(uname -sr)"
  # shellcheck disable=SC2059 # the format is ours
  {
    printf "$row" "microseconds until the answer (medians)" p50 p99
    printf "$row" "relay, memory, $memory_rate/s" "$(median "${seen[steady.p50]}")" \
      "$(median "${seen[steady.p99]}")"
    printf "$row" "nghttpd, $memory_rate/s" "$(median "${seen[nghttpd.p50]}")" \
      "$(median "${seen[nghttpd.p99]}")"
    printf "$row" "  relay to nghttpd (bar 0.6, 0.7; aim 0.5, 0.5)" \
      "$(ratio "${seen[steady.p50]}" "${seen[nghttpd.p50]}")" \
      "$(ratio "${seen[steady.p99]}" "${seen[nghttpd.p99]}")"
    printf "$row" "relay, journal, $journal_rate/s" "$(median "${seen[steady-durable.p50]}")" \
      "$(median "${seen[steady-durable.p99]}")"
    printf "$row" "  in fdatasyncs of $sync (bar 4, 8; aim 2, 5)" \
      "$(ratio "${seen[steady-durable.p50]}" "$sync")" \
      "$(ratio "${seen[steady-durable.p99]}" "$sync")"
  }
  printf '\na push to one phone, acknowledged: %s microseconds of a processor\n' \
    "$(median "${seen[relay.cost]}")"
  if [[ -v seen[mosquitto.cost] ]]; then
    printf 'mosquitto, QoS 1, one subscriber: %s; relay %s as fast (bar 1, aim 2)\n' \
      "$(median "${seen[mosquitto.cost]}")" \
      "$(ratio "${seen[mosquitto.cost]}" "${seen[relay.cost]}")"
  fi
}
