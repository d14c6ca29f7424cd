#!/bin/bash
# Portofu between hosts, which are network namespaces of this machine: the conformance suites with every process on a
# host of its own, Open MPI with ranks on two and three hosts, jobs with several ranks a host, long messages, unreliable
# datagrams, and networks that delay, lose and limit. Every test prints one line; the last one is the sum. Skipped, with
# the reason, where namespaces are not permitted.
#
# usage: run_hosts.sh --build DIRECTORY --prefix OPENMPI_PREFIX --log DIRECTORY [--only REGEX] [--all]
#   --all also runs what is the same on addresses of one host, where the suite fabric runs it
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
# shellcheck source=tests/hosts/hosts.sh
source "$here/hosts.sh"

suite=hosts
build_directory=''
openmpi_prefix=''
# Conformance programs whose messages are their matter: order, flow, lengths, circuits, threads.
conformance_programs='s2_0[2789]_|s2_03_|s3_06_network|s3_07_onesided|s3_08_|s3_15_|pgas|both_apis'
lanes_programs='s3_07_onesided|exact_count|tofu_gates|tofu_lanes'

take_argument() {
  case $1 in
    --build) build_directory=${2:?} ;;
    --prefix) openmpi_prefix=${2:?} ;;
    --all) conformance_programs=. lanes_programs=. taken=1 ;;
    *) taken=0 ;;
  esac
}

# conformance_test TITLE BINARY FILTER: its processes take turns on hosts 1 to 3; tests of one process are left out.
conformance_test() {
  local name="$1: $2" binary=$2 filter=$3 started=$SECONDS status=0 log
  [[ $name =~ $only ]] || return 0
  log=$log_directory/${name//[^a-zA-Z0-9_]/_}.log
  PORTOFU_TEST_NETNS="$(host_name 1),$(host_name 2),$(host_name 3)" \
    launch_limited 300 "$log" "$build_directory/bin/$binary" --gtest_filter="$filter:*Alone.*" || status=$?
  if grep -aq '^\[==========\] Running 0 tests' "$log"; then
    return 0
  elif ((status == 0)); then
    report PASS "$suite" "$name" $((SECONDS - started))
  else
    report_failed "$suite" "$name" $((SECONDS - started)) "$log" \
      "$(grep -am 1 'FAILED  ]' "$log" || last_log_line "$log") ($log)"
  fi
}

# conformance_tests ENDPOINT TITLE: conformance_programs of those that tests/CMakeLists.txt runs over that endpoint of
# the fabric on addresses of one host. Two programs at a time: they wait more than they compute.
conformance_tests() {
  local endpoint=$1 title=$2 half workers=() binary filter
  for half in 0 1; do
    while IFS=$'\t' read -r binary filter; do
      conformance_test "$title" "$binary" "$filter"
    done < <(awk -F '\t' -v endpoint="$endpoint" -v half="$half" \
      -v programs="$conformance_programs" '$1 == endpoint && $2 ~ programs && n++ % 2 == half { print $2 "\t" $3 }' \
      "$build_directory/tests/between_nodes.tsv") &
    workers+=($!)
  done
  wait "${workers[@]}"
}

# lanes_tests TITLE REGEX: what runs on lanes, if its name matches, with four of them in every process: each lane has an
# endpoint of its own.
lanes_tests() {
  local -x PORTOFU_LANES=4
  local binary filter
  while IFS=$'\t' read -r binary filter; do
    [[ ! $binary =~ $2 ]] || conformance_test "$1" "$binary" "$filter"
  done < <(awk -F '\t' '$1 == "fabric" && $2 ~ /^conformance_utofu_/ { print $2 "\t" $3 }' \
    "$build_directory/tests/between_nodes.tsv")
  for binary in process_exact_count_test process_tofu_gates_test process_tofu_lanes_test; do
    [[ ! $binary =~ $2 ]] || conformance_test "$1" "$binary" '*-none'
  done
}

# The bridge's end of host 2 goes down for half a minute while host 2 talks to host 1.
partition_test() {
  local name='network cut for 30 s and healed' log=$log_directory/partition.log started=$SECONDS status=0
  [[ $name =~ $only ]] || return 0
  PORTOFU_TEST_NETNS="$(host_name 1),$(host_name 2)" \
    PORTOFU_TEST_CUT="ip -n $hosts_tag-0 link set port2 down" PORTOFU_TEST_HEAL="ip -n $hosts_tag-0 link set port2 up" \
    launch_limited 240 "$log" "$build_directory/bin/process_partition_test" || status=$?
  if ((status == 0)); then
    report PASS "$suite" "$name" $((SECONDS - started))
  else
    report_failed "$suite" "$name" $((SECONDS - started)) "$log" "$(last_log_line "$log") ($log)"
  fi
}

# mpi_test HOSTS RANKS SECONDS NAME PROGRAM [ARGUMENT...]: the ranks are spread evenly, neighbours on different hosts.
mpi_test() {
  local hosts=$1 ranks=$2 seconds=$3 title=$4 program=$5 name log list='' i arguments started=$SECONDS status=0
  shift 5
  name="$title: $program${*:+ $*}, np=$ranks on $hosts hosts"
  [[ $name =~ $only ]] || return 0
  log=$log_directory/${name//[^a-zA-Z0-9=]/_}.log
  for ((i = 1; i <= hosts; i++)); do list+=${list:+,}$(host_address "$i"):$((ranks)); done
  mapfile -t arguments < <(transport_arguments portals4)
  PORTOFU_TEST_SECONDS=$seconds launch_limited $((seconds + 30)) "$log" "$agent" "$(host_address 1)" \
    "$openmpi_prefix/bin/mpirun" --host "$list" --map-by node --oversubscribe -np "$ranks" \
    --prefix "$openmpi_prefix" --mca plm_rsh_agent "$agent" --mca oob_tcp_if_include eth0 \
    -x PORTOFU_TEST_SECONDS ${PORTOFU_INTERFACE:+-x PORTOFU_INTERFACE} \
    ${PORTOFU_FABRIC_ENDPOINT:+-x PORTOFU_FABRIC_ENDPOINT} "${arguments[@]}" \
    "$log_directory/bin/$program" "$@" || status=$?
  report_program "$suite" "$name" $((SECONDS - started)) "$log" "$status"
}

# launched_test ROLE: ptl_run starts programs of one API on hosts 1 to 3, and they find each other by PMI.
launched_test() {
  local name="ptl_run --hosts: $1, 5 ranks on 3 hosts" started=$SECONDS status=0 log=$log_directory/ptl_run_$1.log
  [[ $name =~ $only ]] || return 0
  PTL_RUN_TEST_ROLE=$1 launch_limited 60 "$log" "$build_directory/bin/ptl_run" --export PTL_RUN_TEST_ROLE \
    --hosts "$(host_address 1):2,$(host_address 2),$(host_address 3):2" --agent "$agent" \
    "$build_directory/bin/process_ptl_run_hosts_test" || status=$?
  if ((status == 0)); then
    report PASS "$suite" "$name" $((SECONDS - started))
  else
    report_failed "$suite" "$name" $((SECONDS - started)) "$log" "status $status: $(last_log_line "$log") ($log)"
  fi
}

network_tests() {
  conformance_tests fabric 'three hosts'
  lanes_tests 'four lanes' "$lanes_programs"
  launched_test portals
  launched_test utofu
  partition_test
  mpi_test 2 2 60 'two hosts' hello
  mpi_test 3 3 60 'three hosts' hello
  mpi_test 2 2 180 'two hosts' pingpong_check 4194304
  mpi_test 3 3 180 'three hosts' ring 500
  mpi_test 3 3 180 'three hosts' collectives 16384
  mpi_test 2 2 120 'two hosts' unexpected_flood 300 100000
  mpi_test 2 4 180 'shared memory and fabric' collectives 16384
  mpi_test 3 6 180 'shared memory and fabric' storm 30 3
  mpi_test 2 4 120 'shared memory and fabric' ordering
  mpi_test 2 4 120 'shared memory and fabric' wildcards
  mpi_test 2 2 300 'long message' one_message 1073741824
  mpi_test 2 2 60 'numbers' bench 10
  datagram_tests 'datagrams'
}

# Messages over datagrams, which the network may lose and the reliable wire makes good.
datagram_tests() {
  local -x PORTOFU_FABRIC_ENDPOINT=datagram
  conformance_tests datagram "$1"
  lanes_tests "$1, four lanes" 's3_07|exact_count|gates'
  mpi_test 3 3 180 "$1" ring 20
  mpi_test 2 4 180 "$1" ordering
}

# The same few programs on a bad network. PORTOFU_INTERFACE may name which one.
bad_network_tests() {
  mpi_test 3 3 180 "$1" ring 20
  mpi_test 2 4 180 "$1" ordering
  mpi_test 2 2 180 "$1" one_message 4194304
}

# shaped TITLE QDISC [ARGUMENT...]
shaped() {
  local title=$1
  shift
  if ! shape_hosts 3 "$@" 2>"$log_directory/qdisc.log"; then
    report SKIP "$suite" "$title" 0 "the kernel has no $1: $(last_log_line "$log_directory/qdisc.log")"
    return
  fi
  bad_network_tests "$title"
  unshape_hosts 3
}

# delayed_or_lossy TITLE DELAY_MS LOSS_PERCENT TESTS: by netem, or by a program of ours. TESTS is a function that takes
# the title.
delayed_or_lossy() {
  if shape_hosts 3 netem delay "$2ms" loss "$3%" 2>/dev/null; then
    "$4" "$1, netem"
    unshape_hosts 3
  elif start_bad_network 3 "$2" "$3"; then
    PORTOFU_INTERFACE=bad0 "$4" "$1"
    stop_bad_network
  else
    report SKIP "$suite" "$1" 0 "no netem, and no device: $(last_log_line "$hosts_directory/bad_network.log")"
  fi
}

parse_arguments "$@"
[[ -n $openmpi_prefix && -x $openmpi_prefix/bin/mpicc ]] || usage_error "--prefix names no Open MPI: $openmpi_prefix"
[[ -s $build_directory/tests/between_nodes.tsv ]] || usage_error "--build is missing, or nothing is built"
if [[ -n $(hosts_obstacle) ]]; then
  report SKIP "$suite" 'all tests between hosts' 0 "$(hosts_obstacle)"
  print_suite_totals "$suite"
  exit 0
fi
allow_mpirun_as_root
mkdir -p "$log_directory"
hosts_directory=$(mktemp -d)
agent=$hosts_directory/agent
trap 'remove_hosts; rm -rf "$hosts_directory"' EXIT
trap 'exit 143' TERM INT HUP
make_hosts 3
write_launch_agent "$agent"
for program in hello pingpong_check ring collectives unexpected_flood storm ordering wildcards bench one_message; do
  compile_program "$program" "$log_directory/bin" "$log_directory/compile-$program.log" ||
    report FAIL "$suite" "compile $program" 0 "$(last_log_line "$log_directory/compile-$program.log")"
done
before=$(ours_in_shared_memory)
network_tests
delayed_or_lossy '20 ms there and back' 10 0 bad_network_tests
delayed_or_lossy '2 % loss' 1 2 bad_network_tests
delayed_or_lossy 'datagrams, 2 % loss' 1 2 datagram_tests
shaped '50 Mbit/s' tbf rate 50mbit burst 32k latency 50ms
check_leftovers "$suite" "$before"
end_suite "$suite"
