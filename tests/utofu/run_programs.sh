#!/bin/bash
# Compiles the uTofu programs beside this script with Debian's Open MPI and with Debian's MPICH, and runs them under
# both. They use MPI over whatever it prefers itself, to tell each other ids and for barriers; their data go by
# libtofucom. Every test prints one line, PASS, FAIL or SKIP with its reason; the last line is the sum.
#
# usage: run_programs.sh --prefix PORTOFU_PREFIX --log DIRECTORY [--mpi openmpi|mpich] [--only REGEX] [--soak]
#   --mpi    only under this one
#   --soak   every test twenty times, each time with another disorder
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=.ci/common.sh
source "$here/../../.ci/common.sh"
# shellcheck source=.ci/results.sh
source "$here/../../.ci/results.sh"
# shellcheck source=tests/mpi/launch.sh
source "$here/../mpi/launch.sh"
# shellcheck source=tests/mpi/arguments.sh
source "$here/../mpi/arguments.sh"

prefix=''
mpi_libraries=(openmpi mpich)
soak_rounds=0
suite=utofu

take_argument() {
  case $1 in
    --prefix) prefix=${2:?} ;;
    --mpi) mpi_libraries=("${2:?}") ;;
    --soak) soak_rounds=20 taken=1 ;;
    *) taken=0 ;;
  esac
}

# One test per line: numbers of ranks (comma), with the disorder of PORTOFU_SHUFFLE or without, program, arguments.
list_tests() {
  cat <<'LIST'
2       plain    put_pingpong
2       plain    get_progress 1500 200
2,8     plain    armw_game
3,8     plain    stride_halo
8       plain    barrier_reduce
1,2,8   plain    lattice_halo
2,4,8   plain    particle_halo
2,4     plain    message_queues
8       plain    message_queues 70
2,4,8   plain    transport
1,2,8   plain    vcq_by_coordinates
1,5,8   plain    vcq_search
12      plain    fjmpi_topology 2x3x2 1
8       plain    fjmpi_topology 1x4x1 2
2       plain    notice_order
2,4,8   plain    silent_target
2       shuffled put_pingpong
4       shuffled armw_game 1000
4       shuffled stride_halo
8       shuffled barrier_reduce
4       shuffled lattice_halo
4       shuffled particle_halo
4       shuffled message_queues 50
4       shuffled transport
4       shuffled vcq_search
2       shuffled notice_order
4       shuffled silent_target
LIST
}

# What a run may take at most; they need some seconds at most, also where cores are few.
time_limit_s=60

binary_of() { printf '%s/bin-%s/%s' "$log_directory" "$1" "$2"; }

# Sources of the installation that a program is compiled with.
further_sources() {
  ! grep -q 'mpi-ext\.h' "$1" || printf '%s\n' "$prefix/share/portofu/portofu_fjmpi.c"
}

compile_all() {
  local mpi source program log further
  for mpi in "${mpi_libraries[@]}"; do
    for source in "$here"/programs/*.c; do
      program=$(basename "$source" .c)
      log=$log_directory/compile-$program-$mpi.log
      mapfile -t further < <(further_sources "$source")
      compile_source "mpicc.$mpi" "$source" "$(binary_of "$mpi" "$program")" "$log" "${further[@]}" \
        -I"$here/../mpi/programs" -I"$prefix/include" -I"$prefix/include/fugaku" \
        -L"$prefix/lib" -Wl,-rpath,"$prefix/lib" -ltofucom -lm ||
        report FAIL "$suite" "compile $program $mpi" 0 "$(grep -m 1 error "$log" || true)"
    done
  done
}

# The words that start RANKS processes under an MPI library, one per line. Open MPI counts cores.
mpirun_words() {
  printf '%s\n' "mpirun.$1"
  [[ $1 != openmpi ]] || printf '%s\n' --oversubscribe
  printf '%s\n' -np "$2"
}

# run_test MPI RANKS SEED PROGRAM [ARGUMENT...]: the seed is PORTOFU_SHUFFLE, 0 for none.
run_test() {
  local mpi=$1 ranks=$2 seed=$3 program=$4 binary name log words started=$SECONDS status=0
  shift 4
  name="$program${*:+ $*} np=$ranks $mpi"
  ((seed == 0)) || name+=" shuffled=$seed"
  [[ $name =~ $only ]] || return 0
  binary=$(binary_of "$mpi" "$program")
  log=$log_directory/${name// /_}.log
  if [[ ! -x $binary ]]; then
    report SKIP "$suite" "$name" 0 "it did not compile"
    return
  fi
  mapfile -t words < <(mpirun_words "$mpi" "$ranks")
  # A job of our own: CQs are counted in a node, and other jobs may run on it.
  PORTOFU_JOB_KEY=$$ PORTOFU_SHUFFLE=$seed PORTOFU_TEST_SECONDS=$time_limit_s \
    launch_limited $((time_limit_s + 15)) "$log" "${words[@]}" "$binary" "$@" || status=$?
  report_program "$suite" "$name" $((SECONDS - started)) "$log" "$status"
}

# run_round SEED: the seed of tests with disorder.
run_round() {
  local -A seed_of=([plain]=0 [shuffled]=$1)
  local mpi ranks_list disorder program arguments ranks
  for mpi in "${mpi_libraries[@]}"; do
    while read -r ranks_list disorder program arguments; do
      for ranks in ${ranks_list//,/ }; do
        # shellcheck disable=SC2086  # the arguments are words
        run_test "$mpi" "$ranks" "${seed_of[$disorder]}" "$program" $arguments
      done
    done < <(list_tests)
  done
}

parse_arguments "$@"
[[ -e $prefix/lib/libtofucom.so ]] || usage_error "--prefix names no Portofu: $prefix"
allow_mpirun_as_root
mkdir -p "$log_directory"
before=$(ours_in_shared_memory)
compile_all
run_round 1
for ((round = 2; round <= soak_rounds; round++)); do
  run_round "$round"
done
check_leftovers "$suite" "$before"
end_suite "$suite"
