#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
#
# Usage: tests/smoke/netlab_test.sh
#
# scripts/netlab applies the requested rate and loss, also to frames that bypass the host's queue as
# those of a DPDK port do, and leaves nothing. Needs root.

set -u
cd "$(dirname "$0")/../.." || exit 1
NETLAB=scripts/netlab
PROBE=tests/smoke/netlab_probe.py
RUN="nl$$"
work="$(mktemp -d)"
trap '$NETLAB down "$RUN"; $NETLAB down "${RUN}x"; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
  echo "FAIL: $*"
  exit 1
}

if [ "$(id -u)" != 0 ] || ! unshare --net true 2>/dev/null; then
  echo "SKIP: network namespaces need root"
  exit 77
fi

mac_of() { $NETLAB exec "$RUN" "$1" cat /sys/class/net/dp0/address; }

# transfer TO COUNT BYTES FROM...: puts "frames bytes seconds" of what arrived into $received.
transfer() {
  local to="$1" count="$2" bytes="$3" host pid senders=()
  shift 3
  rm -f "$work/pipe" "$work/go" "$work"/sender.* && mkfifo "$work/pipe" "$work/go"
  exec 8<>"$work/go"
  timeout 60 $NETLAB exec "$RUN" "$to" $PROBE count dp0 1 >"$work/pipe" &
  pid=$!
  {
    read -r -t 20 line && [ "$line" = ready ] || fail "the counter on $to did not start"
    for host in "$@"; do
      timeout 60 $NETLAB exec "$RUN" "$host" $PROBE send dp0 "$(mac_of "$to")" "$count" "$bytes" \
        <&8 >"$work/sender.$host" 2>&1 &
      senders+=($!)
    done
    for host in "$@"; do
      timeout 40 sh -c "until grep -sq ready '$work/sender.$host'; do sleep 0.05; done" ||
        fail "the sender on $host did not start; it said: $(cat "$work/sender.$host")"
    done
    printf '%*s' "$#" '' >&8
    for host in "${senders[@]}"; do wait "$host" || fail "sending to $to"; done
    read -r -t 60 received || fail "the counter on $to said nothing"
  } <"$work/pipe"
  wait "$pid"
}

# stat HOST DIRECTION WHAT
stat() {
  $NETLAB stats "$RUN" | /usr/bin/python3 -c '
import json, sys
print(json.load(sys.stdin)[sys.argv[1]][sys.argv[2]][sys.argv[3]])' "$@"
}

megabits() {
  awk -v b="$1" -v s="$2" 'BEGIN { printf "%.2f", b * 8 / s / 1e6 }'
}

# between NAME VALUE LOW HIGH
between() {
  awk -v v="$2" -v low="$3" -v high="$4" 'BEGIN { exit !(v >= low && v <= high) }' ||
    fail "$1: $2 is not within $3 to $4"
  echo "$1: $2 (allowed $3 to $4)"
}

management_and_silence() {
  $NETLAB up --run "$RUN" --hosts a,b,c --rate 40mbit --queue 256k || fail "up"
  $NETLAB exec "$RUN" a -- ping -q -c 3 -i 0.01 -W 2 10.99.0.3 >/dev/null || fail "management ping"
  [ -z "$($NETLAB exec "$RUN" a -- ip -br address show dev dp0 | awk '{print $3}')" ] ||
    fail "dp0 has an address of the kernel's"
  echo "management interface reachable; dp0 bare"
}

# rate_of TO COUNT BYTES FROM...: puts the rate in Mbit/s into $rate. A queue that is never empty
# passes exactly the rate. If a busy machine let the queue become empty, the transfer is repeated.
rate_of() {
  local attempt frames bytes seconds
  for attempt in 1 2 3 4 5; do
    [ "$attempt" = 1 ] || $NETLAB up --run "$RUN" --hosts a,b,c --rate 40mbit --queue 256k ||
      fail "up again"
    transfer "$@"
    read -r frames bytes seconds <<<"$received"
    rate="$(megabits "$bytes" "$seconds")"
    awk -v r="$rate" 'BEGIN { exit !(r >= 38) }' && return
  done
}

rate_is_kept() {
  local lost
  rate_of b 4000 1514 a
  between "rate of one uplink, Mbit/s" "$rate" 38 42
  lost="$(stat a up queue_dropped)"
  [ "$lost" -gt 0 ] || fail "the queue of the uplink was never full"
  between "arrived or dropped by the uplink's queue" "$((${received%% *} + lost))" 4000 4000
  rate_of c 20000 1514 a b
  between "rate of two uplinks into one downlink, Mbit/s" "$rate" 38 42
  [ "$(stat c down queue_dropped)" -gt 0 ] || fail "the queue of the downlink was never full"
}

loss_is_as_asked() {
  $NETLAB up --run "$RUN" --hosts a,b --loss 5% || fail "up with loss"
  transfer b 20000 200 a
  # The limits are five standard deviations to both sides, here and below.
  between "lost on the uplink" "$(stat a up lost)" 846 1154
  between "lost on the downlink" "$(stat b down lost)" 800 1100
  # Two independent losses of 5 % are 9.75 % together.
  between "frames that got through" "${received%% *}" 17840 18260
}

tcp_gets_through() {
  $NETLAB up --run "$RUN" --hosts a,b --rate 100mbit --loss 1% --kernel-address --tcp cubic ||
    fail "up with addresses"
  $NETLAB exec "$RUN" a -- ping -q -c 200 -i 0.002 -W 2 -s 1472 -M do 10.77.0.2 >"$work/ping"
  grep -q ' received' "$work/ping" || fail "no ping over dp0"
  $NETLAB exec "$RUN" a -- sysctl -n net.ipv4.tcp_congestion_control | grep -qx cubic ||
    fail "the congestion control is another one"
  sum="$(head -c 3000000 /dev/urandom | tee "$work/sent" | sha256sum)"
  timeout 60 $NETLAB exec "$RUN" b -- /usr/bin/python3 -c '
import socket, sys, shutil
server = socket.create_server(("10.77.0.2", 5001))
print("ready", file=sys.stderr, flush=True)
shutil.copyfileobj(server.accept()[0].makefile("rb"), sys.stdout.buffer)
' >"$work/received" 2>"$work/ready" &
  local server=$!
  timeout 20 sh -c "until grep -q ready '$work/ready'; do sleep 0.05; done" || fail "TCP server"
  timeout 60 $NETLAB exec "$RUN" a -- /usr/bin/python3 -c '
import socket, sys
socket.create_connection(("10.77.0.2", 5001), 10).sendall(open(sys.argv[1], "rb").read())
' "$work/sent" || fail "TCP client"
  wait "$server"
  [ "$(sha256sum <"$work/received")" = "$sum" ] || fail "TCP delivered something else"
  echo "TCP: 3 MB intact through 1 % loss"
}

nothing_is_left() {
  $NETLAB down "$RUN"
  $NETLAB down "$RUN" || fail "a second down"
  ip netns list | grep "gp-$RUN-" && fail "namespaces are left"
  # The owner of this lab is a shell that has ended.
  bash -c "$NETLAB up --run ${RUN}x --hosts a; exit" || fail "up for a stale lab"
  $NETLAB down --all-stale
  ip netns list | grep "gp-${RUN}x-" && fail "a stale lab is left"
  $NETLAB up --run "$RUN" --hosts a,a 2>/dev/null && fail "two hosts of one name"
  echo "removed: by name, twice, and as stale"
}

management_and_silence
rate_is_kept
loss_is_as_asked
tcp_gets_through
nothing_is_left
