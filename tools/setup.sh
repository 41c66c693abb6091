# Functions that build.sh, demo.sh, test.sh and .ci/run share: messages, packages, parallel jobs, configure and build.
# shellcheck shell=bash disable=SC2034,SC2068
# To be sourced by bash from the root of the repository. Needs nothing but bash, coreutils, grep, sed and awk, so that it
# runs on a machine where nothing is installed yet.

set -euo pipefail
export LC_ALL=C.UTF-8  # dpkg's and apt's words are read below; a machine without locales has this one

cmake_needed=3.25  # the format of CMakePresets.json

# An entry "a|b" is one package that has two names: the first one installed or known to apt is taken.
packages_program=(g++ cmake ninja-build 'pkgconf|pkg-config' libcli11-dev libedit-dev libpcre2-dev libsimdjson-dev
  libutf8proc-dev libxxhash-dev nlohmann-json3-dev libcurl4-openssl-dev libssl-dev ca-certificates)
packages_tests=(libgtest-dev libgmock-dev xz-utils)
packages_clang=(clang 'libclang-rt-14-dev|libclang-rt-dev')
packages_format=('clang-format-14|clang-format')

install=yes  # --no-install: build with what is there

say() { printf '%s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

now_us() { printf '%s' "${EPOCHREALTIME/[.,]/}"; }

# since START: the time since now_us printed START, as "3.2 s" or "2 min 05 s".
since() {
  local tenths=$((($(now_us) - $1) / 100000))
  if ((tenths < 600)); then
    printf '%d.%d s' $((tenths / 10)) $((tenths % 10))
  else
    printf '%d min %02d s' $((tenths / 600)) $((tenths % 600 / 10))
  fi
}

# --- packages -------------------------------------------------------------------------------------------------------

has_apt() { command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; }

# installed_names NAME...: those of them that dpkg has installed, one a line.
installed_names() {
  dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' || true
}

# missing_packages ENTRY...: the entries of which no name is installed, one a line.
missing_packages() {
  local entry name found there
  there=" $(installed_names ${@//|/ } | tr '\n' ' ')"
  for entry in "$@"; do
    found=no
    for name in ${entry//|/ }; do
      if [[ $there == *" $name "* ]]; then found=yes; fi
    done
    if [[ $found == no ]]; then say "$entry"; fi
  done
}

# names_for_apt ENTRY...: for each entry the first name that this release's apt knows, else its first name.
names_for_apt() {
  local entry name chosen
  for entry in "$@"; do
    chosen=
    for name in ${entry//|/ }; do
      if [[ -z $chosen ]] && apt-cache show --no-all-versions "$name" >/dev/null 2>&1; then chosen=$name; fi
    done
    say "${chosen:-${entry%%|*}}"
  done
}

# as_root COMMAND...: runs it as root. sudo may ask for a password only where somebody can type one.
as_root() {
  if ((EUID == 0)); then
    "$@" </dev/null
  elif [[ -t 0 ]]; then
    sudo "$@"
  else
    sudo -n "$@" </dev/null
  fi
}

may_become_root() {
  ((EUID == 0)) && return
  command -v sudo >/dev/null || return 1
  [[ -t 0 ]] || sudo -n true 2>/dev/null
}

# need_packages PURPOSE ENTRY...: installs what is missing, or stops with what to do. Asks nothing of apt when all is there.
need_packages() {
  local purpose=$1 missing names start
  shift
  [[ $install == yes ]] || return 0
  has_apt || fail "there is no apt here; $purpose needs these (Debian's names): ${*%%|*}
Install them and run this again with --no-install."
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0

  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
  local options=(install -y --no-install-recommends)
  if ! may_become_root; then
    mapfile -t names < <(names_for_apt "${missing[@]}")
    fail "${#names[@]} packages are missing and need root's rights to install. Run this as root, then start again:
  apt-get update && apt-get ${options[*]} ${names[*]}"
  fi

  start=$(now_us)
  mkdir -p build
  say "Installing ${#missing[@]} Debian packages needed for $purpose (log: build/apt.log)"
  as_root "${apt[@]}" update >build/apt.log 2>&1 || say "  apt-get update had problems; going on with the lists there are"
  mapfile -t names < <(names_for_apt "${missing[@]}")
  say "  ${names[*]}"
  if ! as_root "${apt[@]}" "${options[@]}" "${names[@]}" 2>&1 | tee -a build/apt.log |
      sed -nE '/^ *(Need to get|After this operation|Download size|Space needed)/s/^ */  /p'; then
    tail -n 20 build/apt.log >&2
    fail "apt-get ${options[*]} ${names[*]} failed; the whole log is build/apt.log"
  fi
  say "  installed in $(since "$start")"
}

# --- how much runs at once ------------------------------------------------------------------------------------------

# own_cgroups CONTROLLER: the folders of this process's control groups, innermost first, for both versions of them.
own_cgroups() {
  local base path own
  own=$(sed -n "s/^[0-9]*:\([^:]*,\)*$1\(,[^:]*\)*://p; s/^0:://p" /proc/self/cgroup 2>/dev/null | head -n 1)
  for base in /sys/fs/cgroup "/sys/fs/cgroup/$1"; do
    path=$own
    while [[ -n $path && $path != / ]]; do
      say "$base$path"
      path=${path%/*}
    done
    say "$base"
  done
}

# cores: those this process may use, and no more than its control groups grant.
cores() {
  local count quota period folder
  count=$(nproc)
  for folder in $(own_cgroups cpu); do
    quota=max period=100000
    if [[ -r $folder/cpu.max ]]; then
      read -r quota period <"$folder/cpu.max"
    elif [[ -r $folder/cpu.cfs_quota_us && -r $folder/cpu.cfs_period_us ]]; then
      quota=$(<"$folder/cpu.cfs_quota_us") period=$(<"$folder/cpu.cfs_period_us")
    fi
    if [[ $quota =~ ^[0-9]+$ ]] && ((quota / period < count)); then count=$((quota / period)); fi
  done
  say $((count > 1 ? count : 1))
}

# memory_mb: of the machine, and no more than the control groups grant.
memory_mb() {
  local mb limit file folder
  mb=$(awk '/^MemTotal:/ {print int($2 / 1000)}' /proc/meminfo 2>/dev/null || true)
  mb=${mb:-2000}
  for folder in $(own_cgroups memory); do
    for file in "$folder/memory.max" "$folder/memory.limit_in_bytes"; do
      [[ -r $file ]] || continue
      limit=$(<"$file")
      if [[ $limit =~ ^[0-9]{1,18}$ ]] && ((limit / 1000000 < mb)); then mb=$((limit / 1000000)); fi
    done
  done
  say "$mb"
}

# A compiler takes up to 2 GB for one of the heavy files.
jobs_at_once() {
  local by_cores by_memory
  by_cores=$(cores)
  by_memory=$(($(memory_mb) / 2000))
  say $((by_memory < 1 ? 1 : by_memory < by_cores ? by_memory : by_cores))
}

# --- configure and build --------------------------------------------------------------------------------------------

# find_cuda: puts CUDA 13's compiler into PATH, or returns 1.
find_cuda() {
  if ! command -v nvcc >/dev/null && [[ -x /usr/local/cuda/bin/nvcc ]]; then PATH+=:/usr/local/cuda/bin; fi
  command -v nvcc >/dev/null && nvcc --version | grep -q 'release 1[3-9]'
}

check_cmake() {
  local version
  command -v cmake >/dev/null || fail "cmake is not there ($cmake_needed or later is needed)"
  version=$(cmake --version | sed -n '1s/.* //p')
  [[ $(printf '%s\n' "$cmake_needed" "$version" | sort -V | head -n 1) == "$cmake_needed" ]] ||
    fail "cmake $cmake_needed or later is needed, this one is $version (Debian 12 and Ubuntu 24.04 have newer ones)"
}

# configured PRESET OPTION...: whether build/PRESET was configured here, with these options ("NAME=ON") and these presets.
configured() {
  local cache=build/$1/CMakeCache.txt option
  [[ -f $cache && -f build/$1/build.ninja && -f build/$1/configure.log ]] || return 1
  [[ ! CMakePresets.json -nt build/$1/configure.log ]] || return 1
  shift
  for option in "$@"; do
    grep -q "^${option%%=*}:[A-Z]*=${option#*=}\$" "$cache" || return 1
  done
}

# configure PRESET OPTION...: does nothing where it was done; CMake itself notices changed CMakeLists.txt files later.
configure() {
  local preset=$1 start log=build/$1/configure.log
  shift
  configured "$preset" "$@" && return
  check_cmake
  if [[ -f build/$preset/CMakeCache.txt ]] &&
      ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "build/$preset/CMakeCache.txt"; then
    say "build/$preset belongs to another place of this repository and is made anew"
    rm -rf "build/$preset"
  fi
  start=$(now_us)
  mkdir -p "build/$preset"
  say "Configuring build/$preset"
  if ! cmake --preset "$preset" "${@/#/-D}" >"$log" 2>&1; then
    cat "$log" >&2
    rm "$log"  # its presence says that this folder is configured
    fail "cmake --preset $preset failed"
  fi
  say "  configured in $(since "$start")"
}

# On a terminal ninja rewrites one line; elsewhere each tenth of longer work is printed, and whatever is not progress.
show_progress() {
  local line done_now total tenth last=0
  while IFS= read -r line; do
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      done_now=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
      tenth=$((done_now * 10 / total))
      if ((tenth > last && total >= 20)); then
        say "  $done_now of $total"
        last=$tenth
      fi
    elif [[ $line != 'ninja: Entering directory '* ]]; then
      say "$line"
    fi
  done
}

# build_targets PRESET TARGET...: with as many jobs as cores and memory allow.
build_targets() {
  local preset=$1 start jobs files
  shift
  start=$(now_us)
  jobs=$(jobs_at_once)
  ninja -C "build/$preset" build.ninja >/dev/null 2>&1 || true  # changed CMakeLists.txt files first, or nothing is counted
  files=$(files_to_compile "$preset" "$@")
  if ((files)); then say "Building $* in build/$preset: $files files to compile, $jobs at once"; fi
  if [[ -t 1 ]]; then
    ninja -C "build/$preset" -j "$jobs" "$@" || fail "the build failed"
  else
    ninja -C "build/$preset" -j "$jobs" "$@" 2>&1 | show_progress || fail "the build failed"
  fi
  if ((files)); then say "  built in $(since "$start")"; fi
}

# files_to_compile PRESET TARGET...: main.cc counts only if it or the commit that is built into it changed; ninja cannot
# know that before the step that looks for the commit has run.
files_to_compile() {
  local folder=build/$1 object=apps/CMakeFiles/sluice.dir/main.cc.o listed
  shift
  ninja -C "$folder" sluice_version >/dev/null 2>&1 || true
  listed=$(ninja -C "$folder" -n "$@" 2>/dev/null | sed -n 's/^\[.*Building CXX object //p' || true)
  if [[ $listed == "$object" && $folder/$object -nt $folder/generated/version.h && $folder/$object -nt apps/main.cc ]]; then
    listed=
  fi
  if [[ -n $listed ]]; then grep -c . <<<"$listed"; else say 0; fi
}

# build_program PRESET: build/PRESET/bin/sluice. Tests stay configured where they are, and are not asked for elsewhere.
build_program() {
  need_packages "the program" "${packages_program[@]}"
  local options=()
  [[ -f build/$1/CMakeCache.txt ]] || options+=(SLUICE_TESTS=OFF)
  build_with "$1" sluice "${options[@]}"
}

# build_with_tests PRESET TARGET...: the program, and the tests too.
build_with_tests() {
  local preset=$1
  shift
  need_packages "the program and its tests" "${packages_program[@]}" "${packages_tests[@]}"
  build_with "$preset" "$*" SLUICE_TESTS=ON
}

# build_with PRESET "TARGET..." OPTION...
build_with() {
  local preset=$1 targets=$2
  shift 2
  if [[ $preset == cuda && ! -f cmake/cuda.cmake ]]; then
    fail "this version has no CUDA backend yet: build the preset release"
  fi
  case $preset in asan | tsan) need_packages "the sanitizers" "${packages_clang[@]}" ;; esac
  if [[ ${SLUICE_WERROR:-} == 1 ]]; then set -- "$@" SLUICE_WERROR=ON; fi
  configure "$preset" "$@"
  build_targets "$preset" $targets
}
