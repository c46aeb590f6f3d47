# shellcheck shell=bash
# The part of scripts/bench that measures relays with their journal in JetStream. Sourced by it.
# shellcheck disable=SC2154 # What is not assigned here is scripts/bench's.
#
# In each round, one after the other: a relay with the local journal; one whose journal is on one
# nats-server; then one, two and three relays whose journal is on three, which answer when a
# majority has synced. The second and the third of these join and leave for that. All are given the
# same load, eight connections of a hundred open requests spread evenly over the relays, so that of
# a cluster's n relays (n-1)/n of the pushes come to another one than has the phone. Phones are away.
# No two payloads are the same (pushrelay load): one that is the one before is a byte in a stripe.
#
# Once with everything on the same two cores, once with the relays on one and engines and load on
# the other. Processor time is that of the relays, and of relays and engines; never the load's.

# Of each row: its relays, its engines, and its name.
rows=(local single one two three)
declare -A relays_of=([local]=local [single]=single [one]=a [two]="a b" [three]="a b c")
declare -A engines_of=([local]="" [single]=0 [one]="1 2 3" [two]="1 2 3" [three]="1 2 3")
declare -A names_of=([local]="local journal" [single]="1 relay, 1 engine"
  [one]="1 relay, 3 engines" [two]="2 relays, 3 engines" [three]="3 relays, 3 engines")
# By rows and places. Round 0 tells how many pushes the wanted time takes.
declare -A engine_costs=() refused=() answered=() engine=() wanted_pushes=()
nats="" places=(together apart) routes=""

measure_cluster() {
  local round row place
  get_nats_server
  ((${#cores[@]} > 1)) || places=(together)
  start_engines
  printf '{"natsReplicas": 3, "lease": 3}\n' >"$work/relay.json"
  start_relay local --store sqlite
  start_relay single --store jetstream --nats "${engine[0]}" --node single
  start_node start_relay a
  for ((round = 0; round <= rounds; round++)); do
    for row in "${rows[@]}"; do
      gather "$row"
      for place in "${places[@]}"; do measure_row "$row" "$place" "$round"; done
    done
    stop_node c
    stop_node b
  done
  report_cluster
}

# One nats-server on its own, number 0, and three that agree.
start_engines() {
  local number port ports=() single=(--config "$root/Docker/nats-server.conf" --http_port -1)
  start_engine 0 "${single[@]}"
  for number in 1 2 3; do
    find_port
    while [[ " ${ports[*]} " == *" $port "* ]]; do find_port; done
    ports+=("$port")
  done
  routes=$(printf ',nats://127.0.0.1:%s' "${ports[@]}")
  for number in 1 2 3; do
    start_engine "$number" --config "$root/Docker/nats-cluster.conf" --name "n$number" \
      --cluster "nats://127.0.0.1:${ports[number - 1]}" --routes "${routes#,}"
  done
}

# start_engine NUMBER FLAGS…
start_engine() {
  local number=$1 name=engine-$1
  shift
  NATS_STORE_DIR=$work/$name NATS_MONITOR=127.0.0.1:-1 \
    start "$name" "$nats" --addr 127.0.0.1 --port -1 "$@"
  await "$name" grep -qs 'Server is ready' "${log[$name]}"
  engine[$number]=nats://$(sed -n 's/.*Listening for client connections on //p' "${log[$name]}")
}

# start_node COMMAND NAME: a relay of the cluster, by one of the commands that start relays.
start_node() {
  "$1" "$2" --store jetstream --nats "${engine[1]},${engine[2]},${engine[3]}" --node "$2" \
    --config "$work/relay.json"
}

stop_node() {
  [[ -n ${process[$1]:-} ]] || return 0
  kill "${process[$1]}"
  wait "${process[$1]}" || fail "relay $1 did not end well: $(tail -n 1 "${log[$1]}")"
  unset "process[$1]"
}

# gather ROW: until all relays of the row are there, and have as many stripes each.
gather() {
  local name relays
  read -ra relays <<<"${relays_of[$1]}"
  for name in "${relays[@]}"; do
    [[ -z ${process[$name]:-} ]] || continue
    start_node launch_relay "$name"
    tokens["$name"]=${tokens["a"]} authorizations["$name"]=${authorizations["a"]}
  done
  [[ ${relays[0]} != a ]] || await a shared_by "${#relays[@]}" "$relay" "$work/a"
}

# pin_process NAME CORES: all threads that the process has, and will have.
pin_process() { taskset --all-tasks --pid --cpu-list "$2" "${process[$1]}" >/dev/null; }

# arrange PLACE RELAYS ENGINES: on their cores, as the place says.
arrange() {
  local name relay_cores=${cores[0]},${cores[1]} other_cores=${cores[0]},${cores[1]}
  [[ $1 == together ]] || relay_cores=${cores[0]} other_cores=${cores[1]}
  for name in $2; do pin_process "$name" "$relay_cores"; done
  for name in $3; do pin_process "engine-$name" "$other_cores"; done
  # shellcheck disable=SC2034 # Where the script's load begins.
  load_core=(taskset --cpu-list "$other_cores")
}

# ticks_of PREFIX NAMES…: the processor time of all these.
ticks_of() {
  local name sum=0 prefix=$1
  shift
  for name in "$@"; do sum=$((sum + $(ticks "$prefix$name"))); done
  echo $sum
}

# measure_row ROW PLACE ROUND
measure_row() {
  local key=$1.$2 round=$3 relays engines index jobs=() before=() after=() good=0 bad=0 rate=0
  local pushes=${wanted_pushes[$1.$2]:-40000}
  read -ra relays <<<"${relays_of[$1]}"
  read -ra engines <<<"${engines_of[$1]}"
  ((${#cores[@]} < 2)) || arrange "$2" "${relays[*]}" "${engines[*]}"
  before=("$(ticks_of "" "${relays[@]}")" "$(ticks_of engine- "${engines[@]}")")
  for index in "${!relays[@]}"; do
    push_all "${relays[index]}" $(((8 + ${#relays[@]} - 1 - index) / ${#relays[@]})) \
      $((pushes / ${#relays[@]})) &
    jobs+=($!)
  done
  for index in "${!jobs[@]}"; do wait "${jobs[index]}" || exit 1; done
  after=("$(ticks_of "" "${relays[@]}")" "$(ticks_of engine- "${engines[@]}")")
  for index in "${!relays[@]}"; do count_answers "$work/load.${relays[index]}"; done
  wanted_pushes[$key]=$((rate * seconds))
  ((round > 0)) || return 0
  say "round $round: ${names_of[$1]}, $2: $rate requests/s, $bad not answered 200"
  rates["$key"]+="$rate "
  refused[$key]=$((${refused[$key]:-0} + bad))
  answered[$key]=$((${answered[$key]:-0} + good + bad))
  costs["$key"]+="$(per "$good" $((after[0] - before[0])) "$hertz") "
  engine_costs[$key]+="$(per "$good" $((after[0] - before[0] + after[1] - before[1])) "$hertz") "
}

# push_all RELAY CONNECTIONS PUSHES: as fast as they are answered. The phones are those of the first
# relay of a row, wherever the pushes go.
push_all() {
  local state=$work/$1
  [[ $1 != [bc] ]] || state=$work/a
  "${load_core[@]}" "$relay" load --away --state "$state" --devices "$devices" \
    --provider "${base[$1]#*://}" --insecure --topic "$topic" --providers "$2" --open 100 \
    --bytes "$(wc -c <"$payload")" --rate 1000000 --seconds "$(per "$3" 1000000)" \
    --json "${plaintext[@]}" >"$work/load.$1" 2>"$work/load.log" ||
    fail "load on $1: $(tail -n 1 "$work/load.log")"
}

# count_answers FILE: adds what was answered 200, or not, a second, to $good, $bad, $rate.
count_answers() {
  local counts
  read -ra counts < <(python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
good = report["answers"].pop("200", 0)
print(good, sum(report["answers"].values()), int(report["pushesPerSecond"]))' "$1")
  good=$((good + counts[0])) bad=$((bad + counts[1])) rate=$((rate + counts[2]))
}

report_cluster() {
  local place row key format='%-22s %11s %9s %9s %9s %14s %9s %14s %9s  %s\n' failure
  printf '\n%s, POST of %s bytes to %s devices that are away, 800 open, %s x %s s\n' \
    "$scheme" "$(wc -c <"$payload")" "$devices" "$rounds" "$seconds"
  printf '%s, %s, %s\n' "$(processor)" "$(uname -sr)" "$("$nats" --version)"
  for place in "${places[@]}"; do
    case $place in
      together) printf '\nrelays, engines and load on the same two cores\n\n' ;;
      apart) printf '\nrelays on one core, engines and load on the other\n\n' ;;
    esac
    # shellcheck disable=SC2059 # the format is ours
    printf "$format" "" requests/s lowest highest "to local" "per relays' s" "to local" \
      "with engines'" "to local" ""
    for row in "${rows[@]}"; do
      key=$row.$place failure=""
      ((refused[$key] == 0)) || failure="FAILED: ${refused[$key]} of ${answered[$key]} not 200"
      # shellcheck disable=SC2059
      printf "$format" "${names_of[$row]}" "$(whole "$(median "${rates[$key]}")")" \
        "$(whole "$(sorted "${rates[$key]}" | head -n 1)")" \
        "$(whole "$(sorted "${rates[$key]}" | tail -n 1)")" \
        "$(ratio "${rates[$key]}" "${rates[local.$place]}")" \
        "$(whole "$(median "${costs[$key]}")")" \
        "$(ratio "${costs[$key]}" "${costs[local.$place]}")" \
        "$(whole "$(median "${engine_costs[$key]}")")" \
        "$(ratio "${engine_costs[$key]}" "${engine_costs[local.$place]}")" "$failure"
    done
  done
  printf '\nbar for 1 relay, 3 engines, to the local journal: 0.3; aim: 0.6\n'
}
