#!/bin/bash
# Runs a good part of the MPICH test suite over Portofu. The suite comes from Debian's source package of mpich, is
# built once against our Open MPI, and stays in the cache. What fails over portals4 is run over Open MPI's own
# transport too: where that fails as well, the test says nothing about us and is skipped with this reason.
#
# usage: run_mpich_suite.sh --prefix OPENMPI_PREFIX --log DIRECTORY [--only REGEX] [--transport TRANSPORT] GROUP...
#   GROUP             see describe_group below
#   --transport ob1   all groups over Open MPI's own transport, or over another one of launch.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=.ci/common.sh
source "$here/../../.ci/common.sh"
# shellcheck source=.ci/results.sh
source "$here/../../.ci/results.sh"
# shellcheck source=tests/mpi/debian_source.sh
source "$here/debian_source.sh"
# shellcheck source=tests/mpi/launch.sh
source "$here/launch.sh"

mpich_version=4.0.2
# In the order in which they are built: the first two are libraries.
suite_directories=(dtpools util pt2pt coll rma comm datatype)
time_limit_s=60
openmpi_prefix=''
log_directory=''
forced_transport=''
only=.
groups=()

# Prints what a group runs: its list (mpich_LIST.list beside this script), the directory of the suite where the programs
# of the list lie unless they name another one, and the transport of launch.sh.
describe_group() {
  case $1 in
    pt2pt) printf 'pt2pt pt2pt portals4\n' ;;
    coll) printf 'coll coll portals4-tuned\n' ;;
    comm) printf 'comm comm portals4-coll\n' ;;
    coll-portals4) printf 'coll coll portals4-coll\n' ;;
    rma-osc) printf 'rma rma portals4-osc\n' ;;
    rma-osc-mapped) printf 'rma rma portals4-osc-mapped\n' ;;
    rma-osc-long) printf 'rma_long rma portals4-osc\n' ;;
    btl) printf 'btl pt2pt portals4-btl\n' ;;
    *) usage_error "run_mpich_suite.sh: no such group: $1" ;;
  esac
}

parse_arguments() {
  while (($# > 0)); do
    case $1 in
      --prefix) openmpi_prefix=${2:?} && shift ;;
      --log) log_directory=${2:?} && shift ;;
      --only) only=${2:?} && shift ;;
      --transport) forced_transport=${2:?} && shift ;;
      -*) usage_error "run_mpich_suite.sh: unknown argument $1" ;;
      *) describe_group "$1" >/dev/null && groups+=("$1") ;;
    esac
    shift
  done
  [[ -x $openmpi_prefix/bin/mpicc ]] || usage_error "--prefix names no Open MPI: $openmpi_prefix"
  [[ -n $log_directory ]] || usage_error "--log is missing"
  ((${#groups[@]} > 0)) || usage_error "no group of tests is named"
}

# Everything in the build depends on the Open MPI, whose prefix ends in a key of its own, and on what is built.
suite_directory() {
  local parts=${suite_directories[*]:2}
  printf '%s/mpich-suite-%s-%s-%s' "$cache_root" "$mpich_version" "${parts// /-}" "$(basename "$openmpi_prefix")"
}

suite_unpack() {
  local work=$1 store=$cache_root/source/mpich tarball
  tarball=$store/mpich_$mpich_version.orig.tar.xz
  [[ -s $tarball ]] || fetch_debian_source mpich "$mpich_version" "$store"
  [[ -s $tarball ]] || die "the source package of mpich holds no $(basename "$tarball")"
  # The suite's configure looks for its macros and helpers beside it only, so the rest of MPICH stays packed.
  run_logged "unpacking the MPICH test suite" "$log_directory/unpack.log" \
    tar --extract --no-same-owner --file "$tarball" --directory "$work" \
      --wildcards '*/test/mpi/*' --strip-components=1 ||
    die "$tarball cannot be unpacked; remove it and try again"
}

# Some programs use functions of MPI-4 and do not link: make goes on, and a program that is in a list but was not
# built fails later by name.
suite_build() {
  local work=$1 directory
  rm -rf "$work"
  mkdir -p "$work/build"
  suite_unpack "$work"
  run_logged "configuring the MPICH test suite" "$log_directory/configure.log" \
    env --chdir="$work/build" ../test/mpi/configure --with-mpi="$openmpi_prefix" --disable-fortran --disable-cxx \
    --disable-f08 --disable-romio --disable-spawn --disable-large-tests ||
    die "the MPICH test suite cannot be configured"
  for directory in "${suite_directories[@]}"; do
    run_logged "compiling the MPICH test suite: $directory" "$log_directory/make-$directory.log" \
      bash -c 'make --keep-going -j"$1" -C "$2" || true' make "$(job_count)" "$work/build/$directory"
  done
  [[ -x $work/build/pt2pt/sendrecv2 && -x $work/build/coll/bcasttest && -x $work/build/rma/test1 ]] ||
    die "the MPICH test suite does not compile; see $log_directory/make-pt2pt.log"
  date --utc >"$work/.complete"
}

suite_build_unless_done() {
  [[ -e $1/.complete ]] || suite_build "$1"
}

# known_reason GROUP PROGRAM: the reason why a program is left out of a group, or nothing.
known_reason() {
  awk -v program="$2" -v in_group="${1%-mapped}:$2" \
    '$1 == program || $1 == in_group { sub(/^[^ ]+ /, ""); print; exit }' "$here/mpich_known.list"
}

# run_once TRANSPORT RANKS LOG PROGRAM [ARGUMENT...]: a program of the suite says " No Errors" when all is well; some
# end with status 0 after errors.
run_once() {
  local transport=$1 ranks=$2 log=$3 directory status=0
  shift 3
  directory=$(dirname "$1")
  (cd "$directory" && launch_mpi "$transport" "$ranks" "$time_limit_s" "$log" "$@") || status=$?
  ((status == 0)) || return "$status"
  grep -aqiE '^ *No Errors' "$log" || return 99
}

# run_program GROUP TRANSPORT DIRECTORY/PROGRAM RANKS [ARGUMENT...]
run_program() {
  local group=$1 transport=$2 path=$3 ranks=$4 name program log reason started=$SECONDS status=0
  shift 4
  program=${path##*/}
  name="$program${*:+ $*} np=$ranks"
  [[ $name =~ $only ]] || return 0
  log=$log_directory/$group/${name//[ \/]/_}
  reason=$(known_reason "$group" "$program")
  if [[ -n $reason ]]; then
    report SKIP "mpich-$group" "$name" 0 "$reason"
    return
  fi
  if [[ ! -x $suite/build/$path ]]; then
    report FAIL "mpich-$group" "$name" 0 "it was not built; see $log_directory/make-${path%/*}.log"
    return
  fi
  run_once "$transport" "$ranks" "$log.log" "$suite/build/$path" "$@" || status=$?
  if ((status == 0)); then
    report PASS "mpich-$group" "$name" $((SECONDS - started))
  elif [[ $transport != ob1 ]] && ! run_once ob1 "$ranks" "$log.ob1.log" "$suite/build/$path" "$@"; then
    report SKIP "mpich-$group" "$name" $((SECONDS - started)) \
      "fails over Open MPI's own transport too, log $log.ob1.log"
  else
    report FAIL "mpich-$group" "$name" $((SECONDS - started)) "$(failure_reason "$log.log" "$status")"
  fi
}

run_group() {
  local group=$1 list directory transport program ranks arguments
  read -r list directory transport < <(describe_group "$group")
  while read -r program ranks arguments; do
    [[ $program == */* ]] || program=$directory/$program
    # shellcheck disable=SC2086  # the arguments are words
    run_program "$group" "${forced_transport:-$transport}" "$program" "$ranks" $arguments
  done < <(grep -vE '^(#|$)' "$here/mpich_$list.list")
  print_suite_totals "mpich-$group"
}

parse_arguments "$@"
allow_mpirun_as_root
mkdir -p "$log_directory"
log_directory=$(cd "$log_directory" && pwd)
suite=$(suite_directory)
[[ -e $suite/.complete ]] || with_lock "$cache_root/mpich-suite.lock" suite_build_unless_done "$suite"
failed=0
for group in "${groups[@]}"; do
  run_group "$group"
  failed=$((failed + $(count_results FAIL "mpich-$group")))
done
((failed == 0))
