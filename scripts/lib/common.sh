# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
# shellcheck shell=bash
#
# Functions that all shell scripts here share. Source it; it changes to the root of the checkout.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
cd "$ROOT" || exit 1
# On the caller's PATH, a python3 without Debian's torch may come first.
PYTHON=/usr/bin/python3
PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
export PATH PYTHON PYTHONDONTWRITEBYTECODE=1

say() { printf '%s\n' "$*" >&2; }

die() {
  say "${0##*/}: $*"
  exit 1
}

# Prints the comment block below the licence lines of the calling script, and exits with 0.
usage() {
  sed -n '5,${/^#/!q;s/^# \{0,1\}//;p}' "$ROOT/scripts/${0##*/}"
  exit 0
}

# take_lock NAME SECONDS: holds .cache/NAME.lock until this process ends.
take_lock() {
  mkdir -p .cache
  exec {lock_fd}>".cache/$1.lock"
  flock -n "$lock_fd" && return
  say "${0##*/}: another one runs in this checkout; waiting for it up to $2 s"
  flock -w "$2" "$lock_fd" || die "gave up after $2 s: .cache/$1.lock is still held"
}

# run_contained CMD...: runs CMD in mount and PID namespaces of its own, with private /run/netns,
# /run/gradplane and /run/dpdk. So nothing that CMD makes outlives it, whatever kills it. If it may
# not make namespaces, it runs CMD without them. Huge pages are global, so their number is restored.
run_contained() {
  local huge_pages=/proc/sys/vm/nr_hugepages huge_pages_before='' child='' rc=0
  [ -w "$huge_pages" ] && huge_pages_before="$(cat "$huge_pages")"
  local -a box=(unshare --fork --pid --mount-proc --kill-child --mount --propagation private)
  if "${box[@]}" true 2>/dev/null; then
    "${box[@]}" "$ROOT/scripts/lib/contained" "$@" &
  else
    say "${0##*/}: no right to make namespaces here; running without them"
    "$@" &
  fi
  child=$!
  # shellcheck disable=SC2064 # the trap needs the present values
  trap "end_contained $child $huge_pages '$huge_pages_before'" EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
  wait "$child" || rc=$?
  return "$rc"
}

end_contained() {
  kill -KILL "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
  if [ -n "$3" ] && [ "$(cat "$2")" != "$3" ]; then echo "$3" >"$2"; fi
}
