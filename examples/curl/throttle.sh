#!/usr/bin/env bash
# Why the fourth silent push waits, and that it arrives: with curl alone, and without waiting.
#
# usage: examples/curl/throttle.sh      PUSHRELAY names the binary (default: pushrelay on the PATH)
#
# Starts a relay of its own on free ports, with a clock that moves when told, and plays both sides:
# the phone that listens and the provider that pushes. Ends with 1 when something is not as it
# should be.

set -euo pipefail

case ${1:-} in -h | --help) sed -n '2,/^$/ { /^$/d; s/^# \{0,1\}//; p; }' -- "$0" && exit ;; esac

relay=${PUSHRELAY:-pushrelay}
topic=com.example.app
# So long, in seconds, may anything take by the machine's time.
patience=20

state=$(mktemp -d)
processes=()
finish() {
  local process
  for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
  # The end of its output is the end of the relay.
  if [[ -n ${ready:-} ]]; then read -r -t "$patience" _ <&"$ready" || true; fi
  rm -rf "$state"
}
trap finish EXIT
trap 'exit 130' INT TERM

step() { printf '\n# %s\n' "$*"; }
fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}
# expect WHAT TEXT PATTERN: the text looks like the pattern, or that was it.
expect() {
  # A pattern is meant to be one.
  # shellcheck disable=SC2053
  [[ $2 == $3 ]] || fail "$1: wanted $3, got $2"
}

# member NAME JSON: the first text or number of that name.
member() { sed -nE "s/.*\"$1\":(\"([^\"]*)\"|([0-9]+)).*/\2\3/p" <<<"$2" | head -n 1; }

# As phones and providers speak: HTTP/2 over TLS, with the relay's own CA.
http2() { curl --silent --show-error --http2 --max-time "$patience" --cacert "$state/ca.pem" "$@"; }

# admin METHOD PATH [JSON]: asks the admin API (docs/ADMIN.md), also for what it refuses.
admin() {
  local body=()
  (($# < 3)) || body=(--header "content-type: application/json" --data "$3")
  curl --silent --show-error --max-time 60 --request "$1" \
    --header "authorization: bearer $(<"$state/admin.token")" "${body[@]}" "http://$admin$2"
}

step "a relay with a virtual clock, on free ports"
exec {ready}< <(exec "$relay" serve --state "$state" --clock virtual --store memory \
  --provider 127.0.0.1:0 --device 127.0.0.1:0 --admin 127.0.0.1:0 --log-level error)
processes+=($!)
# Its one line says that it listens, and where.
read -r -t "$patience" line <&"$ready" || fail "$relay did not start"
echo "$line"
[[ $line =~ provider=([^ ]+)\ device=([^ ]+)\ admin=([^ ]+) ]] || fail "no ready line"
provider=${BASH_REMATCH[1]} device=${BASH_REMATCH[2]} admin=${BASH_REMATCH[3]}

step "a phone enrols, registers an app, listens"
answer=$(http2 --request POST "https://$device/v1/devices")
phone=$(member device "$answer") secret=$(member secret "$answer")
answer=$(http2 --request PUT --header "authorization: bearer $secret" \
  "https://$device/v1/devices/$phone/apps/$topic")
token=$(member token "$answer")
expect "a device token" "$token" "????????*"
exec {stream}< <(exec curl --silent --no-buffer --http2 --cacert "$state/ca.pem" \
  --header "authorization: bearer $secret" "https://$device/v1/devices/$phone/stream")
processes+=($!)
read -r -t "$patience" line <&"$stream" || fail "the phone cannot listen"
expect "the first line" "$line" '*"type":"hello"*'
echo "phone $phone, token ${token:0:16}…"

step "a provider sends four silent pushes"
bearer=$("$relay" jwt --state "$state")
pushes=()
for number in 1 2 3 4; do
  answer=$(http2 --output /dev/null --write-out '%{http_code} %header{apns-unique-id}' \
    --header "authorization: bearer $bearer" --header "apns-topic: $topic" \
    --header "apns-push-type: background" --header "apns-priority: 5" \
    --data "{\"aps\":{\"content-available\":1},\"n\":$number}" \
    "https://$provider/3/device/$token")
  echo "$number: $answer"
  expect "push $number" "$answer" "200 *"
  pushes+=("${answer#* }")
done

step "three are delivered"
for push in "${pushes[@]:0:3}"; do
  answer=$(admin POST /v1/wait "{\"expect\":{\"what\":\"delivered\",\"push\":\"$push\"}}")
  expect "delivery of $push" "$answer" '{*"met":true*'
done
echo "the budget is three at once, then one every 20 minutes"

step "the fourth is held, and the relay says why"
fourth=${pushes[3]}
answer=$(admin GET "/v1/notifications/$fourth")
expect "the fourth" "$(member state "$answer")" stored
expect "what holds it" "$answer" '*"limit":"app-budget"*'
member sentence "$answer"
answer=$(admin POST /v1/wait \
  "{\"expect\":{\"what\":\"delivered\",\"push\":\"$fourth\"},\"timeout\":\"0s\"}")
expect "a look whether it is delivered" "$answer" '*"reason":"NotYet"*'

step "an hour passes"
before=$(member now "$(admin GET /v1/clock)")
answer=$(admin POST /v1/clock/advance '{"by":"1h"}')
echo "$answer"
expect "the time" "$(member now "$answer")" "$((before + 3600000))"

step "the fourth is delivered"
answer=$(admin POST /v1/wait "{\"expect\":{\"what\":\"delivered\",\"push\":\"$fourth\"}}")
expect "delivery of the fourth" "$answer" '{*"met":true*'
answer=$(admin GET "/v1/notifications/$fourth")
expect "the fourth" "$(member state "$answer")" delivered
member sentence "$answer"
# What the phone has seen: three, and now the fourth.
seen=()
while ((${#seen[@]} < 4)); do
  read -r -t "$patience" line <&"$stream" || fail "the phone has seen ${seen[*]:-nothing}"
  if [[ $line == *'"type":"notification"'* ]]; then
    seen+=("$(member n "$line") $(member via "$line")")
    echo "phone: ${seen[-1]}"
  fi
done
expect "what the phone has seen" "${seen[3]}" "4 *"

step "all as it should be"
