#!/bin/bash
# Runs a good part of the MPICH test suite over Portofu. The suite comes from Debian's source package of mpich, is
# built once against each MPI, and stays in the cache. What fails over Portofu is run over a transport that is not ours
# too: where that fails as well, the test says nothing about us and is skipped with this reason.
#
# usage: run_mpich_suite.sh MPI --log DIRECTORY [--only REGEX] [--transport TRANSPORT] [--least] GROUP...
#   MPI               --prefix OPENMPI_PREFIX: our Open MPI, over libportals
#                     --debian PROVIDER_DIRECTORY: the Open MPI that Debian ships, over the libfabric provider
#                     --mpich MPICH_PREFIX PROVIDER_DIRECTORY: an MPICH of mpich.sh, over the libfabric provider
#                     --ucx COMPONENT: the Open MPI that Debian ships, over UCX with our UCT component
#   GROUP             see describe_group below
#   --transport ob1   all groups over Open MPI's own transport, or over another one of launch.sh
#   --least           of the groups that take long, some programs
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=.ci/common.sh
source "$here/../../.ci/common.sh"
# shellcheck source=.ci/results.sh
source "$here/../../.ci/results.sh"
# shellcheck source=tests/mpi/debian_source.sh
source "$here/debian_source.sh"
# shellcheck source=tests/mpi/mpich.sh
source "$here/mpich.sh"
# shellcheck source=tests/mpi/launch.sh
source "$here/launch.sh"
# shellcheck source=tests/mpi/arguments.sh
source "$here/arguments.sh"

# In the order in which they are built: the first two are libraries.
suite_directories=(dtpools util pt2pt coll rma comm datatype)
# Of a program: strided_acc_onelock takes a minute over osc/rdma.
time_limit_s=120
mpi=''           # portals4, ofi, mpich or ucx: whose groups these are.
mpi_key=''       # What the binaries of the suite depend on.
suite_name=''    # In the results.
all_of_each=1    # Whether a group that takes long runs whole.
openmpi_prefix=''
mpich_prefix=''
forced_transport=''
groups=()

# Prints what a group runs: its list (mpich_LIST.list beside this script), the directory of the suite where the programs
# of the list lie unless they name another one, the transport of launch.sh, and if the group takes minutes a number: of
# so many programs --least runs one.
describe_group() {
  case $mpi/$1 in
    portals4/pt2pt) printf 'pt2pt pt2pt portals4\n' ;;
    portals4/pt2pt-long) printf 'pt2pt_long pt2pt portals4\n' ;;
    portals4/coll) printf 'coll coll portals4-tuned\n' ;;
    portals4/comm) printf 'comm comm portals4-coll\n' ;;
    portals4/coll-portals4) printf 'coll coll portals4-coll\n' ;;
    portals4/rma-osc) printf 'rma rma portals4-osc\n' ;;
    portals4/rma-osc-mapped) printf 'rma rma portals4-osc-mapped\n' ;;
    portals4/rma-osc-long) printf 'rma_long rma portals4-osc\n' ;;
    portals4/btl) printf 'btl pt2pt portals4-btl\n' ;;
    ofi/pt2pt) printf 'pt2pt pt2pt ofi 3\n' ;;
    ofi/pt2pt-long) printf 'pt2pt_long pt2pt ofi\n' ;;
    ofi/coll) printf 'coll coll ofi 3\n' ;;
    ofi/comm) printf 'comm comm ofi 3\n' ;;
    ofi/rma-rdma) printf 'rma rma ofi-rdma 7\n' ;;
    ofi/rma-pt2pt) printf 'rma rma ofi-pt2pt 7\n' ;;
    ucx/pt2pt | ucx/coll | ucx/comm | ucx/rma) printf '%s %s ucx 7\n' "$1" "$1" ;;
    mpich/pt2pt | mpich/coll | mpich/comm | mpich/rma) printf '%s %s mpich\n' "$1" "$1" ;;
    ucx/pt2pt-long | mpich/pt2pt-long) printf 'pt2pt_long pt2pt %s\n' "$mpi" ;;
    mpich/rma-long) printf 'rma_long rma mpich\n' ;;
    *) usage_error "run_mpich_suite.sh: no such group: $1" ;;
  esac
}

use_our_openmpi() {
  openmpi_prefix=$1
  [[ -x $openmpi_prefix/bin/mpicc ]] || usage_error "--prefix names no Open MPI: $openmpi_prefix"
  mpi=portals4 suite_name=mpich mpi_key=$(basename "$openmpi_prefix")
}

use_debian_openmpi() {
  use_provider "$1"
  mpi=ofi suite_name=ofi mpi_key=$(debian_openmpi_key)
}

use_ucx() {
  [[ -e $1 ]] || usage_error "--ucx names no UCT component: $1"
  ucx_component=$1
  mpi=ucx suite_name=ucx mpi_key=$(debian_openmpi_key)
}

debian_openmpi_key() {
  printf 'debian-openmpi-%s\n' "$(dpkg-query --show --showformat='${Version}' libopenmpi-dev)"
}

use_mpich() {
  mpich_prefix=$1
  [[ -x $mpich_prefix/bin/mpicc ]] || usage_error "--mpich names no MPICH: $mpich_prefix"
  use_provider "$2"
  mpi=mpich suite_name=ofi-mpich mpi_key=$(basename "$mpich_prefix")
}

use_provider() {
  [[ -e $1/libportofu-fi.so ]] || usage_error "no directory with the libfabric provider: $1"
  export FI_PROVIDER_PATH=$1
}

take_argument() {
  case $1 in
    --prefix) use_our_openmpi "${2:?}" ;;
    --debian) use_debian_openmpi "${2:?}" ;;
    --ucx) use_ucx "${2:?}" ;;
    --mpich) use_mpich "${2:?}" "${3:?}" && taken=3 ;;
    --transport) forced_transport=${2:?} ;;
    --least) all_of_each=0 taken=1 ;;
    -*) taken=0 ;;
    *) groups+=("$1") && taken=1 ;;
  esac
}

check_arguments() {
  local group
  [[ -n $mpi ]] || usage_error "--prefix, --debian, --mpich or --ucx is missing"
  ((${#groups[@]} > 0)) || usage_error "no group of tests is named"
  for group in "${groups[@]}"; do
    describe_group "$group" >/dev/null
  done
}

# Everything in the build depends on the MPI, which has a key of its own, and on what is built.
suite_directory() {
  local parts=${suite_directories[*]:2}
  printf '%s/mpich-suite-%s-%s-%s' "$cache_root" "$mpich_version" "${parts// /-}" "$mpi_key"
}

# The configure of the suite takes an MPI by its prefix. That of Debian has none: its commands get one. Its header
# refuses what MPI-3 has removed; the suite tests it, and the library has it.
suite_mpi_prefix() {
  local work=$1
  case $mpi in
    portals4) printf '%s\n' "$openmpi_prefix" ;;
    mpich) printf '%s\n' "$mpich_prefix" ;;
    ofi | ucx)
      mkdir -p "$work/mpi/bin"
      printf '#!/bin/sh\nexec mpicc.openmpi -DOMPI_OMIT_MPI1_COMPAT_DECLS=0 "$@"\n' >"$work/mpi/bin/mpicc"
      printf '#!/bin/sh\nexec mpirun.openmpi "$@"\n' >"$work/mpi/bin/mpiexec"
      chmod +x "$work/mpi/bin/mpicc" "$work/mpi/bin/mpiexec"
      printf '%s\n' "$work/mpi"
      ;;
  esac
}

suite_unpack() {
  local work=$1
  mpich_fetch
  # The suite's configure looks for its macros and helpers beside it only, so the rest of MPICH stays packed.
  run_logged "unpacking the MPICH test suite" "$log_directory/unpack.log" \
    tar --extract --no-same-owner --file "$mpich_tarball" --directory "$work" \
      --wildcards '*/test/mpi/*' --strip-components=1 ||
    die "$mpich_tarball cannot be unpacked; remove it and try again"
}

# Some programs use functions of MPI-4 and do not link: make goes on, and a program that is in a list but was not
# built fails later by name.
suite_build() {
  local work=$1 directory
  rm -rf "$work"
  mkdir -p "$work/build"
  suite_unpack "$work"
  run_logged "configuring the MPICH test suite" "$log_directory/configure.log" \
    env --chdir="$work/build" ../test/mpi/configure --with-mpi="$(suite_mpi_prefix "$work")" \
    --disable-fortran --disable-cxx --disable-f08 --disable-romio --disable-spawn --disable-large-tests ||
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

# known_reason GROUP PROGRAM: the reason why a program is left out of a group, or nothing. What Open MPI cannot do says
# nothing about MPICH.
known_reason() {
  local keys
  case $mpi in
    portals4) keys=("$2" "${1%-mapped}:$2") ;;
    ofi) keys=("$2" "ofi:$2" "ofi-$1:$2") ;;
    mpich) keys=("mpich:$2") ;;
    ucx) keys=("$2" "ucx:$2") ;;
  esac
  awk -v keys="${keys[*]}" '
    BEGIN { n = split(keys, key, " ") }
    { for (i = 1; i <= n; ++i) if ($1 == key[i]) { sub(/^[^ ]+ /, ""); print; exit } }' "$here/mpich_known.list"
}

# Transports that are not ours, of which one says what another does not: those of the MPI itself and of libfabric.
foreign_transports() {
  case $mpi in
    portals4) printf 'ob1\n' ;;
    ofi) printf 'debian-ob1 %s-sockets\n' "$1" ;;
    mpich) printf 'mpich-sockets\n' ;;
    ucx) printf 'ucx-posix debian-ob1\n' ;;
  esac
}

# fails_elsewhere TRANSPORT RANKS LOG PROGRAM [ARGUMENT...]: prints over what else it fails, or returns 1.
fails_elsewhere() {
  local transport=$1 ranks=$2 log=$3 foreign
  shift 3
  for foreign in $(foreign_transports "$transport"); do
    [[ $transport != "$foreign" ]] || return 1
    run_once "$foreign" "$ranks" "$log.$foreign.log" "$@" || {
      printf 'fails over %s too, log %s\n' "$foreign" "$log.$foreign.log"
      return 0
    }
  done
  return 1
}

# launch_way TRANSPORT RANKS SECONDS LOG PROGRAM [ARGUMENT...]
launch_way() {
  case $1 in
    ofi | ofi-* | debian-ob1) launch_debian "$@" ;;
    mpich | mpich-*) launch_mpich "$@" ;;
    ucx | ucx-*) launch_ucx "$@" ;;
    *) launch_mpi "$@" ;;
  esac
}

# run_once TRANSPORT RANKS LOG PROGRAM [ARGUMENT...]: a program of the suite says " No Errors" when all is well; some
# end with status 0 after errors.
run_once() {
  local transport=$1 ranks=$2 log=$3 directory status=0
  shift 3
  directory=$(dirname "$1")
  (cd "$directory" && launch_way "$transport" "$ranks" "$time_limit_s" "$log" "$@") || status=$?
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
    report SKIP "$suite_name-$group" "$name" 0 "$reason"
    return
  fi
  if [[ ! -x $suite/build/$path ]]; then
    report FAIL "$suite_name-$group" "$name" 0 "it was not built; see $log_directory/make-${path%/*}.log"
    return
  fi
  run_once "$transport" "$ranks" "$log.log" "$suite/build/$path" "$@" || status=$?
  if ((status == 0)); then
    report PASS "$suite_name-$group" "$name" $((SECONDS - started))
  elif reason=$(fails_elsewhere "$transport" "$ranks" "$log" "$suite/build/$path" "$@"); then
    report SKIP "$suite_name-$group" "$name" $((SECONDS - started)) "$reason"
  else
    report_failed "$suite_name-$group" "$name" $((SECONDS - started)) "$log.log" \
      "$(failure_reason "$log.log" "$status")"
  fi
}

run_group() {
  local group=$1 list directory transport least program ranks arguments step=1 started=$SECONDS
  read -r list directory transport least < <(describe_group "$group")
  ((all_of_each)) || step=${least:-1}
  while read -r program ranks arguments; do
    [[ $program == */* ]] || program=$directory/$program
    # shellcheck disable=SC2086  # the arguments are words
    run_program "$group" "${forced_transport:-$transport}" "$program" "$ranks" $arguments
  done < <(grep -vE '^(#|$)' "$here/mpich_$list.list" | awk -v step="$step" 'NR % step == 0')
  print_suite_totals "$suite_name-$group"
  say "    $suite_name-$group: took $((SECONDS - started)) s"
}

parse_arguments "$@"
check_arguments
allow_mpirun_as_root
mkdir -p "$log_directory"
log_directory=$(cd "$log_directory" && pwd)
suite=$(suite_directory)
[[ -e $suite/.complete ]] || with_lock "$cache_root/mpich-suite.lock" suite_build_unless_done "$suite"
failed=0
for group in "${groups[@]}"; do
  run_group "$group"
  failed=$((failed + $(count_results FAIL "$suite_name-$group")))
done
((failed == 0))
