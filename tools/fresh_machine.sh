#!/usr/bin/env bash
# Proves that the repository sets itself up: unpacks it into a minimal Debian 12 without compiler, git, sudo, python3, curl,
# terminal or locale, and runs ./demo.sh, ./test.sh and ./demo.sh again there.
#
#   tools/fresh_machine.sh              the commit HEAD
#   tools/fresh_machine.sh --worktree   the tracked files as they are now
#   tools/fresh_machine.sh --ci         .ci/run instead of the demo and the tests
#
# Needs root and debootstrap. Packages come from where this machine's own apt gets them (MIRROR=URL overrides). The base
# system is kept in build/fresh/base; the machine made from it is removed unless the check fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh

release=bookworm
here=build/fresh
root=$here/root
inside="/home/some one/sluice"  # a path with a space
quick_us=5000000                # the demo's second run

((EUID == 0)) || fail "a fresh machine needs root (chroot, mounts)"
command -v debootstrap >/dev/null || fail "debootstrap is not there: apt-get install --no-install-recommends debootstrap"

# mirror SUITE: where this machine's apt gets SUITE/main.
mirror() { apt-cache policy | awk -v wanted="$1/main" '$2 ~ /^[a-z+]+:/ && $3 == wanted {print $2; exit}'; }

make_base() {
  local url=${MIRROR:-$(mirror $release)} include=()
  [[ -n $url ]] || fail "this machine's apt has no $release/main; set MIRROR to a Debian mirror"
  if [[ $url == https:* ]]; then include=(--include=ca-certificates); fi
  say "Fetching a minimal Debian ($release)"
  rm -rf $here/base.partial
  mkdir -p $here
  debootstrap --variant=minbase "${include[@]}" $release $here/base.partial "$url" >$here/debootstrap.log 2>&1 ||
    { tail -n 5 $here/debootstrap.log >&2; fail "debootstrap failed; the whole log is $here/debootstrap.log"; }
  mv $here/base.partial $here/base
}

# The new machine reaches packages the way this one does: sources, apt's own settings (proxies), name servers, certificates.
copy_apt_access() {
  local suite url
  : >$root/etc/apt/sources.list
  for suite in $release $release-updates $release-security; do
    url=$(mirror $suite)
    if [[ -n ${MIRROR:-} && $suite == "$release" ]]; then url=$MIRROR; fi
    if [[ -n $url ]]; then say "deb $url $suite main" >>$root/etc/apt/sources.list; fi
  done
  apt-config dump | grep -E '^Acquire::(http|https|Retries|Check-|Languages|ForceIPv4)' >$root/etc/apt/apt.conf.d/90access || true
  cp -L /etc/resolv.conf $root/etc/resolv.conf
  if grep -q https: $root/etc/apt/sources.list; then
    mkdir -p $root/etc/ssl/certs
    cp -L /etc/ssl/certs/ca-certificates.crt $root/etc/ssl/certs/
  fi
}

unpack_sources() {
  local git=(git -c safe.directory='*')
  mkdir -p "$root$inside"
  if [[ $worktree == yes ]]; then
    "${git[@]}" ls-files -z | tar --null --files-from=- --create | tar --extract --directory "$root$inside"
  else
    "${git[@]}" archive HEAD | tar --extract --directory "$root$inside"
  fi
  chown -R 1234:1234 "$root/home/some one"  # somebody else's files
}

# in_machine COMMAND...: with an empty environment and its own mounts, which vanish with the command, whatever happens.
in_machine() {
  local proxies
  mapfile -t proxies < <(env | grep -E '^(https?|no)_proxy=' || true)
  unshare --mount --pid --fork --kill-child sh -c '
    mount -t proc proc "$1/proc" && mount --bind "$1$2" "$1$2" && root=$1 && shift 2 && exec chroot "$root" "$@"' \
    sh "$root" "$inside" env -i "${proxies[@]}" HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@" </dev/null 2>&1
}
enter() { in_machine sh -c 'cd "$0" && exec "$@"' "$inside" "$@"; }

# check NAME COMMAND...: its output goes to a log.
check() {
  local name=$1 log start
  shift
  log=$here/$name.log
  start=$(now_us)
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    fail "fresh machine: $name failed after $(since "$start"); the machine is left in $root, the log is $log"
  fi
  took_us=$(($(now_us) - start))
  say "$name: passed in $(since "$start")"
}

without_rights_it_says_what_to_install() {
  local output
  if output=$(in_machine setpriv --reuid 4321 --regid 4321 --clear-groups sh -c 'cd "$0" && exec ./demo.sh' "$inside"); then
    return 1
  fi
  say "$output"
  grep -q 'apt-get install -y --no-install-recommends .*g++' <<<"$output"
}
answers_with_speed() { enter ./demo.sh && grep -q 'tokens/s' "$here/$1.log"; }
without_network() { unshare --net tools/fresh_machine.sh --enter ./demo.sh; }

worktree=no
ci=no
case ${1:-} in
  '') ;;
  --worktree) worktree=yes ;;
  --ci) ci=yes ;;
  --enter)  # used by without_network; to look around after a failure: tools/fresh_machine.sh --enter COMMAND...
    shift
    enter "$@"
    exit
    ;;
  *) fail "usage: tools/fresh_machine.sh [--worktree | --ci]" ;;
esac

[[ -d $here/base ]] || make_base
say "Making the machine"
rm -rf $root
cp -a $here/base $root
copy_apt_access
unpack_sources

if [[ $ci == yes ]]; then
  check ci enter env CI=true bash .ci/run
  say "  $(tail -n 1 $here/ci.log)"
else
  check refuses without_rights_it_says_what_to_install
  check demo answers_with_speed demo
  check test enter ./test.sh
  say "  $(grep 'tests passed' $here/test.log)"
  say "  $(grep 'not registered' $here/test.log)"
  check demo-again without_network
  ((took_us < quick_us)) || fail "fresh machine: the demo's second run took $((took_us / 1000)) ms, not under $((quick_us / 1000))"
fi
rm -rf $root
