# shellcheck shell=bash
# The part of scripts/bench that measures what a recording costs. Sourced by it.
# shellcheck disable=SC2154 # What is not assigned here is scripts/bench's.
#
# One relay with the local journal, phones away, under a load that does not stop. A round is four
# slices of it, half a second each, without a recording (`payloads: aps`), with, with, without: a
# machine that becomes faster or slower does so for both. And four more without any, to see how much
# is chance.

# Throughput, and pushes for each second of processor time: with to without, by kinds of rounds.
declare -A rate_ratios=([recording]="" [chance]="") cost_ratios=([recording]="" [chance]="")
declare -A slice_rates=() slice_costs=()

measure_recording() {
  local round
  start_relay durable --store sqlite
  # Longer than all slices: it is ended with them.
  aim durable --duration=$((rounds * 16 + 60))
  "${shot[@]}" >"$output" 2>&1 &
  processes+=($!)
  sleep 2
  for ((round = 1; round <= rounds; round++)); do
    measure_round recording recorded "$round"
    measure_round chance again "$round"
  done
  kill -0 "${processes[-1]}" 2>/dev/null || fail "h2load ended early: $(tail -n 1 "$output")"
  report_recording
}

# measure_round KIND OTHER ROUND: plain, the other kind of slice twice, plain.
measure_round() {
  local kind=$1 each
  slice_rates=() slice_costs=()
  for each in plain "$2" "$2" plain; do measure_slice "$each"; done
  rate_ratios[$kind]+="$(per "${slice_rates[$2]}" "${slice_rates[plain]}") "
  cost_ratios[$kind]+="$(per "${slice_costs[$2]}" "${slice_costs[plain]}") "
  say "round $3: $kind: $((slice_rates[plain] / 2)) requests/s," \
    "by $(last "${rate_ratios[$kind]}"), per CPU s by $(last "${cost_ratios[$kind]}")"
}

# measure_slice KIND: adds to what slices of the kind have had: pushes a second of time, and of
# processor time.
measure_slice() {
  local pushes used began passed
  if [[ $1 == recorded ]]; then record start bench --payloads aps; fi
  # What the beginning or the end of a recording itself takes is over then.
  sleep 0.2
  pushes=$(received) used=$(nanoseconds) began=$(date +%s%N)
  sleep 0.5
  pushes=$(($(received) - pushes)) used=$(($(nanoseconds) - used))
  passed=$(($(date +%s%N) - began))
  ((pushes > 0)) || fail "nothing was accepted: $(tail -n 1 "$output")"
  slice_rates[$1]=$((${slice_rates[$1]:-0} + pushes * 1000000000 / passed))
  slice_costs[$1]=$((${slice_costs[$1]:-0} + pushes * 1000000000 / used))
  if [[ $1 == recorded ]]; then
    record stop bench
    rm -f -- "$work/durable/recordings/bench".*
  fi
}

# How many pushes the relay has accepted so far.
received() {
  curl --silent --fail --unix-socket "$work/durable/admin.sock" http://relay/metrics |
    awk '/^pushrelay_notifications_received_total/ { n += $NF } END { printf "%.0f", n }'
}

# The processor time that all threads of the relay have used so far (proc(5)).
nanoseconds() {
  cat "/proc/${process[durable]}"/task/*/schedstat | awk '{ n += $1 } END { printf "%.0f", n }'
}

record() {
  "$relay" record "$@" --state "$work/durable" >"$work/record.log" 2>&1 ||
    fail "pushrelay record $1: $(tail -n 1 "$work/record.log")"
}

last() { awk '{ print $NF }' <<<"$1"; }

# quartiles NUMBERS: the lower one, the median, the upper one.
quartiles() {
  sorted "$1" | awk '{ v[NR] = $1 } function at(p, i) {
      p = 1 + p * (NR - 1); i = int(p); return v[i] + (p - i) * (v[i < NR ? i + 1 : i] - v[i]) }
    END { printf "%.3f (quartiles %.3f to %.3f)", at(0.5), at(0.25), at(0.75) }'
}

report_recording() {
  printf '\n%s, POST of %s bytes to %s devices that are away, local journal, h2load %s\n' \
    "$scheme" "$(wc -c <"$payload")" "$devices" "${load[*]}"
  printf '%s, %s; %s rounds of each kind\n\n' "$(processor)" "$(uname -sr)" "$rounds"
  printf 'with a recording to without: requests/s %s,\n  per CPU s %s\n' \
    "$(quartiles "${rate_ratios[recording]}")" "$(quartiles "${cost_ratios[recording]}")"
  printf 'without to without:          requests/s %s,\n  per CPU s %s\n' \
    "$(quartiles "${rate_ratios[chance]}")" "$(quartiles "${cost_ratios[chance]}")"
  printf '\nbar for a recording: 0.95\n'
}
