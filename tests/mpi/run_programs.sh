#!/bin/bash
# Compiles the programs beside this script with an Open MPI and runs each over Portofu, with the numbers of ranks that
# make sense for it. Every test prints one line, PASS, FAIL or SKIP with its reason; the last line is the sum.
#
# usage: run_programs.sh --prefix OPENMPI_PREFIX --log DIRECTORY [--transport TRANSPORT] [--only REGEX] [--soak]
#   --transport ob1   all tests over Open MPI's own transport, to see what is the test's fault; or another of launch.sh
#   --soak            the long forms: 1 GiB messages, 100 000 unexpected messages, more rounds
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=.ci/common.sh
source "$here/../../.ci/common.sh"
# shellcheck source=.ci/results.sh
source "$here/../../.ci/results.sh"
# shellcheck source=tests/mpi/launch.sh
source "$here/launch.sh"
# shellcheck source=tests/mpi/arguments.sh
source "$here/arguments.sh"

openmpi_prefix=''
forced_transport=''
soak=0
suite=mpi

take_argument() {
  case $1 in
    --prefix) openmpi_prefix=${2:?} ;;
    --transport) forced_transport=${2:?} ;;
    --soak) soak=1 taken=1 ;;
    *) taken=0 ;;
  esac
}

# One test per line: seconds, numbers of ranks (comma), transport of launch.sh, program, arguments. A hang costs its
# time limit, so limits are some ten times what a slow machine needs.
list_tests() {
  cat <<'LIST'
60   1,2,4,8 portals4       hello
120  2,4     portals4       ring 2000
180  8       portals4       ring 500
120  2,4     portals4       pingpong_check
240  2       portals4       pingpong_check 67108864
60   1,2,4   portals4       send_modes
120  2,4     portals4       ordering
120  2,4     portals4       wildcards
90   2,4     portals4       probes
90   2       portals4       cancel_receive
60   2       portals4       truncation
60   2       portals4       many_sends
60   2,4     portals4       persistent_buffered
60   2,4     portals4       persistent_types
60   2,4     portals4-small flow_control
900  2       portals4       many_communicators 4200
120  2,4     portals4       predefined_types
120  3       portals4-tuned predefined_types
120  4       portals4-coll  scattered_collectives
180  2,3     portals4       unexpected_flood 100000
120  2       portals4       unexpected_flood 300 100000
120  1,2,4   portals4       many_communicators 200
180  2,4     portals4       thread_multiple
180  4       portals4       storm 60 6
120  3,4     portals4       random_messages 1 200
180  1,2,3,4 portals4-tuned collectives 16384
180  2       portals4-tuned collectives 262144
240  8       portals4       collectives 1024
120  1,2,4   portals4-pt2pt one_sided
120  1,2,4   portals4-osc   one_sided
120  1,2,4   portals4-osc   one_sided_types
120  3       portals4       one_sided_types
120  4       portals4       one_sided_requests
120  4       portals4       one_sided_epochs
120  1,2,3   portals4-osc   one_sided_scattered
120  3       portals4-osc-sm one_sided_epochs
120  1,2,3,4 portals4-osc   one_sided_windows
180  8       portals4-osc   one_sided_windows 10
180  3,4     portals4-coll  collectives 16384
120  4       portals4-coll  many_communicators 100
180  2,3,4,8 portals4-coll  triggered_collectives
120  2,4     portals4-btl   pingpong_check
120  4       portals4-btl   collectives 16384
120  2,3     portals4-btl   unexpected_flood 3000 2000 2
120  2,3,4   portals4-btl   one_sided
120  3       portals4-pt2pt one_sided
120  2,3     ob1            one_sided
120  3       ob1            one_sided_types
120  2       portals4       bench 10
60   2       portals4       virtual_time
LIST
  if ((soak == 1)); then
    cat <<'LIST'
600  2       portals4       pingpong_check 1073741824
600  2,3     portals4       unexpected_flood 100000 2048
600  8       portals4       ring 10000
600  4,8     portals4       storm 100 50
600  4,7     portals4       random_messages 2 10000
600  2       portals4       thread_multiple 5000 8
600  4,8     portals4       collectives 262144
600  4,8     portals4-osc   one_sided_types 50000
600  4,8     portals4-osc   one_sided_windows 1000
600  4,5,8   portals4-coll  triggered_collectives 1048576 5000
600  2,4     portals4-btl   collectives 262144
LIST
  fi
}

# Leaves the binaries in binary_directory.
compile_all() {
  local source program
  binary_directory=$log_directory/bin
  for source in "$here"/programs/*.c; do
    program=$(basename "$source" .c)
    compile_program "$program" "$binary_directory" "$log_directory/compile-$program.log" ||
      report FAIL "$suite" "compile $program" 0 "$(grep -m 1 error "$log_directory/compile-$program.log" || true)"
  done
}

# run_test SECONDS RANKS TRANSPORT PROGRAM [ARGUMENT...]
run_test() {
  local seconds=$1 ranks=$2 transport=${forced_transport:-$3} program=$4 name log started=$SECONDS status=0
  shift 4
  name="$program${*:+ $*} np=$ranks"
  [[ $transport == portals4 ]] || name+=" $transport"
  [[ $name =~ $only ]] || return 0
  log=$log_directory/${name// /_}.log
  if [[ ! -x $binary_directory/$program ]]; then
    report SKIP "$suite" "$name" 0 "it did not compile"
    return
  fi
  # The program's own limit comes first: it names the program, where a kill from outside names nobody.
  PORTOFU_TEST_SECONDS=$seconds \
    launch_mpi "$transport" "$ranks" $((seconds + 15)) "$log" "$binary_directory/$program" "$@" || status=$?
  report_program "$suite" "$name" $((SECONDS - started)) "$log" "$status"
}

# A process that nobody launched is a job of one rank.
test_singleton() {
  local name="singleton: hello without mpirun" log=$log_directory/singleton.log started=$SECONDS status=0
  [[ ${forced_transport:-portals4} == portals4 && $name =~ $only ]] || return 0
  OMPI_MCA_pml=cm OMPI_MCA_mtl=portals4 \
    timeout --kill-after=5 60 "$binary_directory/hello" >"$log" 2>&1 </dev/null || status=$?
  if ((status == 0)) && grep -q 'verified on 1 rank' "$log"; then
    report PASS "$suite" "$name" $((SECONDS - started))
  else
    report_failed "$suite" "$name" $((SECONDS - started)) "$log" "$(failure_reason "$log" "$status")"
  fi
}

# Whoever names nothing gets Portofu.
test_without_options() {
  local name="hello without options np=2" log=$log_directory/without_options.log started=$SECONDS status=0
  [[ ${forced_transport:-portals4} == portals4 && $name =~ $only ]] || return 0
  launch_limited 60 "$log" "$openmpi_prefix/bin/mpirun" --oversubscribe -np 2 --mca mtl_base_verbose 10 \
    "$binary_directory/hello" || status=$?
  if ((status == 0)) && grep -q 'verified on 2 ranks' "$log" && grep -q 'component portals4 selected' "$log"; then
    report PASS "$suite" "$name" $((SECONDS - started))
  else
    report_failed "$suite" "$name" $((SECONDS - started)) "$log" "$(failure_reason "$log" "$status")"
  fi
}

# Start-up and end race with those of the other ranks, differently each time.
test_start_and_end() {
  local cycles=$1 name log=$log_directory/start_and_end.log started=$SECONDS status=0 cycle
  name="start and end of 4 ranks, $cycles times"
  [[ $name =~ $only ]] || return 0
  for ((cycle = 0; cycle < cycles && status == 0; cycle++)); do
    PORTOFU_TEST_SECONDS=30 launch_mpi "${forced_transport:-portals4}" 4 45 "$log" "$binary_directory/hello" ||
      status=$?
  done
  if ((status == 0)); then
    report PASS "$suite" "$name" $((SECONDS - started))
  else
    report_failed "$suite" "$name" $((SECONDS - started)) "$log" "cycle $cycle: $(failure_reason "$log" "$status")"
  fi
}

# One rank dies by SIGKILL: the job must end by itself, and a new job must start at once.
test_killed_rank() {
  local ranks=$1 transport=${forced_transport:-portals4} log=$log_directory/killed_rank_np=$1.log started=$SECONDS
  local status=0 name
  name="a rank is killed, np=$ranks"
  [[ $name =~ $only ]] || return 0
  PORTOFU_TEST_SECONDS=30 launch_mpi "$transport" "$ranks" 45 "$log" "$binary_directory/killed_rank" || status=$?
  if ((status == 124)) || grep -aq 'time limit of the program' "$log"; then
    report_failed "$suite" "$name" $((SECONDS - started)) "$log" \
      "the job did not end: $(failure_reason "$log" "$status")"
  elif ! grep -aq 'signal 9' "$log"; then
    report_failed "$suite" "$name" $((SECONDS - started)) "$log" \
      "it failed before the kill: $(failure_reason "$log" "$status")"
  elif ! PORTOFU_TEST_SECONDS=30 launch_mpi "$transport" "$ranks" 45 "$log.next" "$binary_directory/hello"; then
    report_failed "$suite" "$name" $((SECONDS - started)) "$log.next" \
      "the next job failed: $(failure_reason "$log.next" 1)"
  else
    report PASS "$suite" "$name" $((SECONDS - started))
  fi
}

# In virtual time MPI_Wtime tells the same each time, and so do the times of the job.
test_virtual_time() {
  local nodes=$1 log=$log_directory/virtual_time_$1 started=$SECONDS status=0 times=''
  local name="times on $1 simulated nodes"
  [[ ${forced_transport:-portals4} == portals4 && $name =~ $only ]] || return 0
  launch_virtual "$nodes" 75 "$log.log" "$binary_directory/virtual_time" || status=$?
  ((status != 0)) || launch_virtual "$nodes" 75 "$log.again.log" "$binary_directory/virtual_time" || status=$?
  times=$(grep '^times: ' "$log.log" || true)
  if ((status != 0)) || [[ -z $times ]]; then
    report_failed "$suite" "$name" $((SECONDS - started)) "$log.log" "$(failure_reason "$log.log" "$status")"
  elif [[ $(grep '^times: ' "$log.again.log") != "$times" ]]; then
    report_failed "$suite" "$name" $((SECONDS - started)) "$log.again.log" "the second run has other times"
  elif ! cmp -s "$log.log.json" "$log.again.log.json"; then
    report_failed "$suite" "$name" $((SECONDS - started)) "$log.again.log" "the second job has other times"
  else
    report PASS "$suite" "$name" $((SECONDS - started))
  fi
}

parse_arguments "$@"
[[ -n $openmpi_prefix && -x $openmpi_prefix/bin/mpicc ]] || usage_error "--prefix names no Open MPI: $openmpi_prefix"
allow_mpirun_as_root
mkdir -p "$log_directory"
before=$(ours_in_shared_memory)
compile_all
run_listed < <(list_tests)
test_singleton
test_without_options
test_start_and_end $((soak == 1 ? 100 : 20))
test_virtual_time 2
test_virtual_time 6
test_killed_rank 2
test_killed_rank 4
check_leftovers "$suite" "$before"
end_suite "$suite"
