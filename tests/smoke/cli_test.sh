#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
#
# Usage: tests/smoke/cli_test.sh [BUILD_FOLDER]
#
# Tests the gradplane command from outside: exact messages of check-config, exit codes and signals
# through run, the order in LD_PRELOAD, the verdict of --verify, no daemon, and closed pipes. Needs
# no root, no network and no torch.

# The commands in single quotes are for the shells that gradplane starts.
# shellcheck disable=SC2016
set -u
cd "$(dirname "$0")/../.." || exit 1
gradplane="$(realpath "${1:-build}/control/cli/gradplane")"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# The commands here must not depend on the environment of the test.
unset GRADPLANE_SOCKET GRADPLANE_RUN_ID GRADPLANE_REPORT GRADPLANE_REQUIRE LD_PRELOAD
export TMPDIR="$work"

fail() {
  echo "FAIL: $*"
  exit 1
}

# expect CODE COMMAND...: runs the command, and puts its output into $out and $err.
expect() {
  local wanted="$1" code
  shift
  out="$(timeout 30 "$@" 2>"$work/err")"
  code=$?
  err="$(cat "$work/err")"
  [ "$code" = "$wanted" ] || fail "'$*' exits with $code, not $wanted: $out $err"
}

same() { [ "$1" = "$2" ] || fail "expected '$2', got '$1'"; }
holds() { case "$1" in *"$2"*) ;; *) fail "no '$2' in '$1'" ;; esac; }

[ -x "$gradplane" ] || fail "$gradplane is not built"

# A library of the test replaces the shim, because only its loading is tested.
mkdir "$work/lib"
printf 'void nothing(void) {}\n' >"$work/empty.c"
cc -shared -fPIC -o "$work/lib/libgradplane_preload.so" "$work/empty.c" || fail "no compiler"
cp "$work/lib/libgradplane_preload.so" "$work/other.so"
export GRADPLANE_LIB_DIR="$work/lib"
library="$work/lib/libgradplane_preload.so"

echo "usage"
expect 0 "$gradplane" --help
for word in "0 ok" "1 failure" "2 wrong usage" "run" "status" "bounds" "rounds" "replan" "metrics" \
  "check-config" "version"; do
  holds "$out" "$word"
done
expect 0 "$gradplane" version
holds "$out" "gradplane "
expect 2 "$gradplane"
expect 2 "$gradplane" statsu
holds "$err" "there is no command 'statsu'"
expect 2 "$gradplane" run
expect 2 "$gradplane" run --verifi -- true
expect 2 "$gradplane" check-config
expect 2 "$gradplane" bounds --job nonsense
holds "$err" "'nonsense' is no job"
expect 1 "$gradplane" bounds --socket "$work/nobody.sock"
holds "$err" "no answer from the daemon"
expect 2 "$gradplane" rounds --job nonsense
holds "$err" "'nonsense' is no job"
expect 2 "$gradplane" replan
expect 2 "$gradplane" replan 1a2b3c4d
expect 2 "$gradplane" replan nonsense --plan star
holds "$err" "JOB: 'nonsense' is no job"
expect 2 "$gradplane" replan 1a2b3c4d --plan best
holds "$err" "best"
expect 2 "$gradplane" replan 1a2b3c4d --plan star --root agg a
expect 2 "$gradplane" replan 1a2b3c4d --plan sharded --root agg --without agg
expect 1 "$gradplane" replan 1a2b3c4d --plan star --root agg --socket "$work/nobody.sock"
holds "$err" "no answer from the daemon"
expect 2 "$gradplane" rounds --last 0
expect 2 "$gradplane" rounds --last 129
expect 1 "$gradplane" rounds --follow --socket "$work/nobody.sock"
holds "$err" "no answer from the daemon"

echo "check-config"
for file in configs/*.yaml; do
  expect 0 "$gradplane" check-config "$file"
  holds "$out" "$file: ok: "
done
expect 0 "$gradplane" check-config --node w0 configs/star.yaml
same "$out" "configs/star.yaml: ok: 5 nodes, star, blocks of 1408 B; here w0 with af_packet"
same "$err" ""
{ cat configs/star.yaml && echo 'grants: {enabled: true}'; } | sed '/link_rate/d' \
  >"$work/guess.yaml"
expect 0 "$gradplane" check-config "$work/guess.yaml"
holds "$out" "$work/guess.yaml: ok: "
holds "$err" "grants.enabled: value 'true': warning: node agg and 4 more have no port.link_rate"
{ cat configs/star.yaml && echo 'multicast: {enabled: true}'; } > "$work/groups.yaml"
expect 0 "$gradplane" check-config "$work/groups.yaml"
holds "$out" "blocks of 1408 B, results to multicast groups"
expect 1 "$gradplane" check-config --node nobody configs/star.yaml
same "$err" "configs/star.yaml: --node: value 'nobody': no such node in cluster.nodes\
 (agg, w0, w1, w2, w3)"
expect 0 "$gradplane" check-config --effective --node w0 configs/star.yaml
holds "$out" "# configs/star.yaml:"
holds "$out" "# default"
sed -e 's/mtu: 1500/mtuu: 1500/' -e 's/heartbeat: 250 ms/heartbeat: 250/' configs/star.yaml \
  >"$work/bad.yaml"
mtu_line="$(grep -n mtuu "$work/bad.yaml" | cut -d: -f1)"
beat_line="$(grep -n 'heartbeat: 250' "$work/bad.yaml" | cut -d: -f1)"
expect 1 "$gradplane" check-config "$work/bad.yaml"
same "$err" "$work/bad.yaml:$mtu_line: port.mtuu: unknown key; did you mean port.mtu?
$work/bad.yaml:$beat_line: liveness.heartbeat: value '250': accepted: a time from 10 ms to 1 min,\
 with a unit (ns, us, ms, s, min)"
# One bad file does not hide the others.
expect 1 "$gradplane" check-config "$work/bad.yaml" configs/pci.yaml "$work/none.yaml"
holds "$out" "configs/pci.yaml: ok"
holds "$err" "$work/none.yaml: cannot be opened: No such file or directory"

echo "run"
expect 7 "$gradplane" run -- sh -c 'exit 7'
expect 127 "$gradplane" run -- "$work/nothing"
holds "$err" "cannot run $work/nothing: No such file or directory"
expect 126 "$gradplane" run -- "$work"
expect 0 "$gradplane" run -- sh -c 'echo "$LD_PRELOAD"'
same "$out" "$library"
LD_PRELOAD="$work/other.so" expect 0 "$gradplane" run -- sh -c 'echo "$LD_PRELOAD"'
same "$out" "$library:$work/other.so"
expect 0 "$gradplane" run --socket /x/s --require -- \
  sh -c 'echo "$GRADPLANE_SOCKET $GRADPLANE_REQUIRE"'
same "$out" "/x/s 1"
{ cat configs/loopback.yaml && echo 'ranks: {require: true}'; } >"$work/require.yaml"
expect 0 "$gradplane" run --config "$work/require.yaml" --node local -- \
  sh -c 'echo "$GRADPLANE_SOCKET $GRADPLANE_REQUIRE"'
same "$out" "/tmp/gradplane/gradplaned.sock 1"
expect 1 "$gradplane" run --config "$work/none.yaml" -- true
holds "$err" "$work/none.yaml"
expect 2 "$gradplane" run --config "$work/require.yaml" --socket /x/s -- true
expect 2 "$gradplane" run --node local -- true
expect 0 "$gradplane" run -- sh -c 'echo "$GRADPLANE_SOCKET ${GRADPLANE_REQUIRE-unset}"'
same "$out" "/run/gradplane/gradplaned.sock unset"
expect 0 "$gradplane" run -- sh -c 'echo "$GRADPLANE_RUN_ID"'
first="$out"
expect 0 "$gradplane" run -- sh -c 'echo "$GRADPLANE_RUN_ID"'
if [ "${#first}" != 16 ] || [ "$first" = "$out" ]; then fail "run ids '$first' and '$out'"; fi
SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_JOB_NODELIST='gpu[3-6]' MASTER_PORT=4711 expect 0 \
  "$gradplane" run --launcher slurm -- \
  sh -c 'echo "$RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT ${LOCAL_RANK-unset}"'
same "$out" "1 4 gpu3 4711 unset"
expect 2 "$gradplane" run --launcher openmpi -- true
holds "$err" "OMPI_COMM_WORLD_RANK is not set"
expect 2 "$gradplane" run --launcher yarn -- true
# Options of the started command are not taken for those of gradplane, with and without --.
expect 0 "$gradplane" run sh -c 'echo "$@"' sh --verify --json
same "$out" "--verify --json"
GRADPLANE_LIB_DIR="$work" expect 1 "$gradplane" run -- true
holds "$err" "libgradplane_preload.so is not there (looked for $work/libgradplane_preload.so)"

# signalled SIGNAL CODE: sends the signal to `gradplane run --verify` and expects the exit code.
signalled() {
  local signal="$1" wanted="$2" code parent
  rm -f "$work/ready" && mkfifo "$work/ready"
  exec 9<>"$work/ready"
  timeout 30 "$gradplane" run --verify -- sh -c 'trap "exit 9" USR1; echo $PPID >"$1"; while :; do
    sleep 1; done' sh "$work/ready" 2>"$work/err" &
  local runner=$!
  read -r -t 20 parent <&9 || fail "the command did not start"
  kill -s "$signal" "$parent"
  wait "$runner"
  code=$?
  exec 9<&-
  [ "$code" = "$wanted" ] || fail "SIG$signal through run: $code, not $wanted"
}

echo "signals"
signalled USR1 9
signalled TERM 143
expect 137 sh -c 'ulimit -c 0; "$@"' sh "$gradplane" run -- sh -c 'kill -KILL $$'
expect 137 "$gradplane" run --verify -- sh -c 'kill -KILL $$'

echo "verify"
# report OPS RANK: writes the report that the shim of a process would write.
report='file="$(echo "$GRADPLANE_REPORT" | sed "s/%p/$$/")"
printf "{\"pid\": $$, \"rank\": \"$2\", \"carried_ops\": $1, " >"$file"
printf "\"passed_through\": {\"device\": 2}}\n" >>"$file"'
expect 3 "$gradplane" run --verify -- true
holds "$err" "gradplane: not attached: no process reported"
expect 0 "$gradplane" run --verify -- sh -c "$report" sh 5 0
holds "$err" "gradplane: attached: 1 of 1 reporting processes"
holds "$err" "carried 5 collectives"
holds "$err" "passed through 2 (device 2)"
same "$out" ""
expect 3 "$gradplane" run --verify -- sh -c "$report" sh 0 0
expect 6 "$gradplane" run --verify -- sh -c "$report; exit 6" sh 0 0
# Several processes report at the same time, and the user's own file gets every line.
printf '%s\n' "$report" >"$work/rank.sh"
GRADPLANE_REPORT="$work/all.json" expect 0 "$gradplane" run --verify -- sh -c \
  'sh "$1" 1 0 & sh "$1" 2 1 & sh "$1" 0 2 & wait' sh "$work/rank.sh"
holds "$err" "attached: 2 of 3 reporting processes"
same "$(grep -c pid "$work/all.json")" 3
same "$(find "$work" -maxdepth 1 -name 'gradplane-run-*' | wc -l)" 0

echo "no daemon"
for command in status metrics "status --json"; do
  # shellcheck disable=SC2086
  expect 1 "$gradplane" $command --socket "$work/none.sock"
  same "$out" ""
  holds "$err" "$work/none.sock: No such file or directory"
  holds "$err" "gradplaned --config FILE"
done
expect 1 "$gradplane" status --watch --socket "$work/none.sock"

echo "closed pipes and full disks"
for command in "check-config --effective configs/star.yaml" "generate-config-reference"; do
  # shellcheck disable=SC2086
  { timeout 30 "$gradplane" $command 2>"$work/err"; } | true
  same "$(cat "$work/err")" ""
done
expect 1 sh -c '"$1" version >/dev/full' sh "$gradplane"
holds "$err" "No space left on device"

echo "ok"
