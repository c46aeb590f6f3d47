# shellcheck shell=bash
# The part of scripts/bench that measures what a recording costs. Sourced by it.
# shellcheck disable=SC2154 # What is not assigned here is scripts/bench's.
#
# One relay with the local journal, phones away, a recording with `payloads: aps`. A round is two
# pairs of measurements: with a recording and without, taking turns in being first; and twice
# without, to see how much of a ratio is chance.

# Throughput, and pushes for each second of processor time: recorded to plain, by kinds of pairs.
declare -A rate_ratios=([recording]="" [chance]="") cost_ratios=([recording]="" [chance]="")

measure_recording() {
  local round
  start_relay durable --store sqlite
  warm_up durable
  for ((round = 1; round <= rounds; round++)); do
    if ((round % 2)); then
      measure_pair recording recorded plain "$round"
      measure_pair chance plain again "$round"
    else
      measure_pair chance again plain "$round"
      measure_pair recording plain recorded "$round"
    fi
  done
  report_recording
}

# measure_pair KIND FIRST SECOND ROUND: each of the two is "plain", "recorded" or "again".
measure_pair() {
  local kind=$1 each before after
  local -A rate_of=() cost_of=()
  for each in "$2" "$3"; do
    [[ $each != recorded ]] || record start bench --payloads aps
    before=$(ticks durable)
    shoot durable -n "${count[durable]}"
    after=$(ticks durable)
    if [[ $each == recorded ]]; then
      record stop bench
      rm -f -- "$work/durable/recordings/bench".*
    fi
    grep -q "^status codes: ${count[durable]} 2xx" "$output" ||
      fail "not all were answered 200: $(grep '^status codes' "$output")"
    if [[ $each != plain ]]; then each=other; fi
    rate_of[$each]=$(rate)
    cost_of[$each]=$(per "${count[durable]}" $((after - before)) "$hertz")
  done
  rate_ratios[$kind]+="$(per "${rate_of[other]}" "${rate_of[plain]}") "
  cost_ratios[$kind]+="$(per "${cost_of[other]}" "${cost_of[plain]}") "
  say "round $4: $kind: $(whole "${rate_of[plain]}") requests/s," \
    "by $(per "${rate_of[other]}" "${rate_of[plain]}")," \
    "per CPU s by $(per "${cost_of[other]}" "${cost_of[plain]}")"
}

record() {
  "$relay" record "$@" --state "$work/durable" >"$work/record.log" 2>&1 ||
    fail "pushrelay record $1: $(tail -n 1 "$work/record.log")"
}

# quartiles NUMBERS: the lower one, the median, the upper one.
quartiles() {
  sorted "$1" | awk '{ v[NR] = $1 } function at(p, i) {
      p = 1 + p * (NR - 1); i = int(p); return v[i] + (p - i) * (v[i < NR ? i + 1 : i] - v[i]) }
    END { printf "%.3f (quartiles %.3f to %.3f)", at(0.5), at(0.25), at(0.75) }'
}

report_recording() {
  printf '\n%s, POST of %s bytes to %s devices that are away, local journal, h2load %s\n' \
    "$scheme" "$(wc -c <"$payload")" "$devices" "${load[*]}"
  printf '%s, %s; %s pairs of each kind, %s requests each time\n\n' "$(processor)" "$(uname -sr)" \
    "$rounds" "${count[durable]}"
  printf 'with a recording to without: requests/s %s,\n  per CPU s %s\n' \
    "$(quartiles "${rate_ratios[recording]}")" "$(quartiles "${cost_ratios[recording]}")"
  printf 'without to without:          requests/s %s,\n  per CPU s %s\n' \
    "$(quartiles "${rate_ratios[chance]}")" "$(quartiles "${cost_ratios[chance]}")"
  printf '\nbar for a recording: 0.95\n'
}
