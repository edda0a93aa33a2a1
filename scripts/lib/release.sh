# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
# shellcheck shell=bash
#
# Runs scripts on another release of Debian: in a chroot in .cache/releases with packages and build
# folders of its own, and with this checkout at /src. Source it after common.sh.

MIRROR="${GRADPLANE_MIRROR:-http://deb.debian.org/debian}"

# heed_release SCRIPT ARG...: if the arguments begin with --release NAME, runs SCRIPT with the other
# arguments on that release, and exits with its exit code.
heed_release() {
  local script="$1" name="${3:-}"
  if [ "${2:-}" != --release ]; then
    [[ " ${*:2} " != *" --release "* ]] || die "--release NAME comes first; see --help"
    return
  fi
  case "$name" in
    bookworm | trixie) ;;
    *) die "--release takes bookworm or trixie; not '$name'" ;;
  esac
  shift 3
  [ "$(id -u)" = 0 ] || die "a chroot needs root"
  mkdir -p ".cache/releases/$name"
  make_release "$name" "$ROOT/.cache/releases/$name"
  exec unshare --mount --propagation private "$ROOT/scripts/lib/in_release" "$name" \
    "scripts/$script" "$@"
}

# make_release NAME FOLDER: makes the release in FOLDER/root, completely or not at all.
make_release() {
  local name="$1" folder="$2"
  if [ -d "$folder/root" ]; then return; fi
  command -v debootstrap >/dev/null || die "debootstrap is missing; run scripts/setup"
  say "making a chroot of Debian $name in $folder; the log is $folder/debootstrap.log"
  rm -rf "$folder/new"
  debootstrap --variant=minbase --include=ca-certificates "$name" "$folder/new" "$MIRROR" \
    >"$folder/debootstrap.log" 2>&1 ||
    die "debootstrap failed (set GRADPLANE_MIRROR for another mirror than $MIRROR):" \
      "see $folder/debootstrap.log"
  mv "$folder/new" "$folder/root"
}
