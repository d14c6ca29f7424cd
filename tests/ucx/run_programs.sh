#!/bin/bash
# Runs Debian's UCX, unmodified, over the UCT component `utofu`: what ucx_info says of it, ucx_perftest between two
# processes of this machine, the programs beside this script, which check their data, and programs of MPI and
# OpenSHMEM, for which Debian's Open MPI takes UCX. Every test prints one line, PASS or FAIL with its reason; the last
# line is the sum.
#
# usage: run_programs.sh --component FILE --ucx-source DIRECTORY --log DIRECTORY [--only REGEX]
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

component=''
ucx_source=''
suite=ucx
time_limit_s=60

take_argument() {
  case $1 in
    --component) component=${2:?} ;;
    --ucx-source) ucx_source=${2:?} ;; # For headers that are not installed.
    *) taken=0 ;;
  esac
}

# What ucx_info says of TNI 0: one device, one transport, and all that is implemented.
run_info() {
  local name="ucx_info lists the transport" log=$log_directory/info.log started=$SECONDS word missing=''
  [[ $name =~ $only ]] || return 0
  LD_PRELOAD=$component timeout "$time_limit_s" ucx_info -d >"$log" 2>&1 || true
  sed -n '/Memory domain: tni0/,/Memory domain: tni1/p' "$log" >"$log.tni0"
  for word in 'Component: utofu' 'Transport: utofu' 'Device: tni0' 'am_bcopy: <= 8184' 'put_short: <= 32' 'put_zcopy' \
    'get_short: <= 8K' 'get_bcopy' 'get_zcopy: .* up to 64 iov' 'atomic_cswap: 32, 64 bit' 'domain: cpu' \
    'peer failure'; do
    grep -q "$word" "$log.tni0" || missing+=" '$word'"
  done
  if [[ -z $missing ]]; then
    report PASS "$suite" "$name" $((SECONDS - started))
  else
    report_failed "$suite" "$name" $((SECONDS - started)) "$log" "it does not say$missing"
  fi
}

# One test per line: arguments of ucx_perftest.
list_perftests() {
  cat <<'LIST'
-x utofu -d tni0 -t am_lat -D short -s 8 -n 2000
-x utofu -d tni0 -t am_lat -D bcopy -s 8 -n 2000
-x utofu -d tni0 -t am_lat -D zcopy -s 4000 -n 2000
-x utofu -d tni0 -t am_bw -D short -s 1000 -n 20000
-x utofu -d tni0 -t am_bw -D bcopy -s 8184 -n 20000
-x utofu -d tni0 -t am_bw -D zcopy -s 100,200,300 -n 20000
-x utofu -d tni5 -t am_lat -D short -s 8 -n 2000
-x utofu -d tni0 -t put_lat -D short -s 8 -n 2000
-x utofu -d tni0 -t put_lat -D bcopy -s 8000 -n 1000
-x utofu -d tni0 -t put_lat -D zcopy -s 70000 -n 1000
-x utofu -d tni0 -t put_bw -D short -s 32 -n 20000
-x utofu -d tni0 -t put_bw -D bcopy -s 8192 -n 20000
-x utofu -d tni0 -t put_bw -D zcopy -s 1000000 -n 500
-x utofu -d tni0 -t get -D bcopy -s 8192 -n 2000
-x utofu -d tni0 -t get -D zcopy -s 1000000 -n 500
-x utofu -d tni0 -t get -D zcopy -s 1000,2000,3000 -n 2000
-x utofu -d tnis -t put_bw -D zcopy -s 1000000 -n 500
-x utofu -d tnis -t get -D zcopy -s 1000000 -n 500
-x utofu -d tni0 -t add_mr -s 4 -n 20000
-x utofu -d tni0 -t add_mr -s 8 -n 20000
-x utofu -d tni0 -t fadd -s 4 -n 2000
-x utofu -d tni0 -t fadd -s 8 -n 2000
-x utofu -d tni0 -t swap -s 8 -n 2000
-x utofu -d tni0 -t cswap -s 4 -n 2000
-x utofu -d tni0 -t cswap -s 8 -n 2000
-t tag_lat -s 8 -n 5000
-t tag_lat -s 100000 -n 500
-t tag_bw -s 1000000 -n 500
-t tag_sync_lat -s 8 -n 5000
-t ucp_put_lat -s 8 -n 5000
-t ucp_put_bw -s 4000000 -n 100
-t ucp_get -s 1000000 -n 200
-t ucp_add -s 8 -n 5000
-t ucp_fadd -s 4 -n 5000
-t ucp_swap -s 8 -n 5000
-t ucp_cswap -s 8 -n 5000
-t stream_lat -s 8 -n 5000
-t stream_bw -s 100000 -n 500
-t ucp_am_lat -s 8 -n 5000
-t ucp_am_bw -s 300000 -n 500
-t tag_lat -s 8 -n 500 -E sleep
-t tag_bw -s 100000 -n 200 -E sleep
LIST
}

# perftest_side LOG ARGUMENT...: the server, or the client if an address is the last argument.
perftest_side() {
  local log=$1
  shift
  # Warnings of UCX go where its errors go.
  env LD_PRELOAD="$component" UCX_WARN_UNUSED_ENV_VARS=n timeout "$time_limit_s" ucx_perftest "$@" >"$log" 2>&1
}

# run_perftest ARGUMENT...: with -x a test of UCT, otherwise one of UCP.
run_perftest() {
  local name="ucx_perftest $*" log started=$SECONDS status=0 server port
  [[ $name =~ $only ]] || return 0
  log=$log_directory/${name// /_}
  log=${log//,/+}
  port=$(unused_port)
  export PORTOFU_JOB_KEY=$port UCX_TLS=utofu,self UCX_UTOFU_WAKEUP=n UCX_UTOFU_ALL_TNIS=n
  [[ "$*" != *tnis* ]] || UCX_UTOFU_ALL_TNIS=y
  [[ "$*" != *sleep* ]] || UCX_UTOFU_WAKEUP=y
  perftest_side "$log.server.log" -p "$port" &
  server=$!
  connect_client "$log.log" perftest_side "$log.log" localhost -p "$port" "$@" || status=$?
  ((status == 0)) || kill "$server" 2>/dev/null || true
  wait "$server" || status=$?
  unset PORTOFU_JOB_KEY UCX_TLS UCX_UTOFU_WAKEUP UCX_UTOFU_ALL_TNIS
  if ((status == 0)) && grep -q '^Final:' "$log.log" && ! grep -aqE 'ERROR|FATAL' "$log.log" "$log.server.log"; then
    report PASS "$suite" "$name" $((SECONDS - started))
  else
    report_failed "$suite" "$name" $((SECONDS - started)) "$log.log" "status $status, see $log.log, $log.server.log"
  fi
}

# One test per line: settings (or -), program, arguments. The settings make everything scarce, change the order of what
# arrives, map the memory of the processes, or put them on two nodes.
list_programs() {
  cat <<'LIST'
- uct_check tni0
- uct_check tni4
UCX_UTOFU_TX_BUFFERS=1 uct_check
UCX_UTOFU_SLOTS=2 uct_check
PORTOFU_SHUFFLE=1 uct_check
PORTOFU_SHUFFLE=2 uct_check
PORTOFU_DIRECT=0 uct_check
MAPPED=1 uct_check
PAIR_FAR=1 uct_check
- uct_entities_check first
- uct_entities_check pending
- uct_entities_check flush
- uct_entities_check many
- uct_entities_check memory
- uct_entities_check closed
- uct_entities_check reuse
UCX_UTOFU_RCACHE=n uct_entities_check memory
UCX_UTOFU_TX_BUFFERS=1 uct_entities_check flush
UCX_UTOFU_SLOTS=2 uct_entities_check first
UCX_UTOFU_SLOTS=2 uct_entities_check pending
PORTOFU_SHUFFLE=1 uct_entities_check pending
UCX_UTOFU_SLOTS=2 uct_strangers_check silent
PORTOFU_SHUFFLE=1 uct_strangers_check silent
UCX_UTOFU_WAKEUP=y uct_strangers_check silent
PORTOFU_SHUFFLE=1 uct_entities_check flush
UCX_UTOFU_WAKEUP=y uct_armed_check
UCX_UTOFU_WAKEUP=y uct_fork_check
UCX_UTOFU_WAKEUP=y uct_entities_check pending
- ucp_entities_check types
- ucp_entities_check cancel
- ucp_entities_check close
- ucp_entities_check lost
UCX_UTOFU_SLOTS=2 ucp_entities_check lost
- ucp_entities_check memory
- ucp_entities_check threads
UCX_TLS=utofu,tcp ucp_entities_check sockets
- uct_failure_check alive
- uct_failure_check blocked
- uct_failure_check getting
- uct_failure_check unmet
- uct_failure_check fetched
- uct_failure_check closing
- uct_failure_check left
- uct_killed_check
PORTOFU_SHUFFLE=1 uct_killed_check
PORTOFU_DIRECT=0 uct_killed_check
- uct_killed_check keys
PORTOFU_SHUFFLE=1 uct_killed_check keys
PORTOFU_DIRECT=0 uct_killed_check keys
MAPPED=1 uct_killed_check keys
- uct_strangers_check counts
- uct_strangers_check late
- uct_strangers_check answered
- uct_strangers_check closed
- uct_strangers_check replaced
- uct_strangers_check restarted
- uct_strangers_check returned
- uct_strangers_check inherited
PORTOFU_SHUFFLE=1 uct_strangers_check inherited
- uct_strangers_check silent
- uct_strangers_check mistaken
PORTOFU_SHUFFLE=1 uct_strangers_check mistaken
- uct_strangers_check refused
- uct_strangers_check parted
- uct_fence_check
PORTOFU_SHUFFLE=1 uct_fence_check
PAIR_FAR=1 uct_fence_check
- ucp_check
- ucp_workers_check 12
UCX_NET_DEVICES=tni1 ucp_check
UCX_KEEPALIVE_INTERVAL=500ms death_check sending
UCX_KEEPALIVE_INTERVAL=500ms death_check getting
UCX_KEEPALIVE_INTERVAL=500ms death_check idle
UCX_KEEPALIVE_INTERVAL=500ms death_check unmet
UCX_UTOFU_WAKEUP=y wakeup_check
UCX_UTOFU_WAKEUP=y ucp_check
UCX_UTOFU_WAKEUP=y uct_check
THREADS=4 uct_check
UCX_UTOFU_ALL_TNIS=y uct_check tnis
UCX_UTOFU_ALL_TNIS=y ucp_check
UCX_UTOFU_TX_BUFFERS=2 ucp_check
UCX_UTOFU_SLOTS=2 ucp_check
UCX_UTOFU_RCACHE=n ucp_check
PORTOFU_SHUFFLE=3 ucp_check
MAPPED=1 ucp_check
PAIR_FAR=1 ucp_check 1
LIST
}

compile_programs() {
  local source program layer log
  for source in "$here"/programs/*.c; do
    program=$(basename "$source" .c)
    layer=ucp
    [[ $program != uct_* ]] || layer=uct
    log=$log_directory/compile-$program.log
    compile_source cc "$source" "$log_directory/bin/$program" "$log" -idirafter "$ucx_source/src" "-l$layer" -lucs ||
      report FAIL "$suite" "compile $program" 0 "$(grep -m 1 error "$log" || true)"
  done
}

# run_program SETTING PROGRAM [ARGUMENT...]
run_program() {
  local setting=$1 program=$2 name log started=$SECONDS status=0 preload=$component
  shift 2
  name="$program${*:+ $*}"
  [[ $setting == - ]] || name+=" $setting"
  [[ $name =~ $only ]] || return 0
  log=$log_directory/${name// /_}.log
  if [[ ! -x $log_directory/bin/$program ]]; then
    report SKIP "$suite" "$name" 0 "it did not compile"
    return
  fi
  # Any other allocator has to come first.
  [[ $setting != MAPPED=1 ]] || preload="$(dirname "$component")/../libportofu_malloc.so $component"
  [[ $setting != - ]] || setting=MAPPED=0
  launch_limited "$time_limit_s" "$log" env PORTOFU_JOB_KEY=$$ UCX_TLS=utofu,self "$setting" \
    UCX_WARN_UNUSED_ENV_VARS=n LD_PRELOAD="$preload" "$log_directory/bin/$program" "$@" || status=$?
  report_program "$suite" "$name" $((SECONDS - started)) "$log" "$status"
}

# One test per line: numbers of ranks (comma), program of tests/mpi, arguments.
list_mpi_programs() {
  cat <<'LIST'
1,8 hello
4   ring 200
2   pingpong_check
2   send_modes
4   ordering
4   wildcards
2   unexpected_flood 5000
4   storm 20 3
4   collectives 512
4   one_sided
LIST
}

# run_mpi_program RANKS PROGRAM [ARGUMENT...]
run_mpi_program() {
  local ranks=$1 program=$2 name log started=$SECONDS status=0 binary=$log_directory/bin/mpi_$2
  local built=$log_directory/compile-mpi-$2.log
  shift 2
  name="$program${*:+ $*} np=$ranks Open MPI"
  [[ $name =~ $only ]] || return 0
  log=$log_directory/${name// /_}.log
  if [[ ! -x $binary ]] &&
    ! compile_source mpicc.openmpi "$here/../mpi/programs/$program.c" "$binary" "$built" -lm; then
    report FAIL "$suite" "$name" 0 "it does not compile; see $built"
    return
  fi
  PORTOFU_TEST_SECONDS=$time_limit_s \
    launch_ucx ucx "$ranks" $((time_limit_s + 15)) "$log" "$binary" "$@" || status=$?
  report_program "$suite" "$name" $((SECONDS - started)) "$log" "$status"
}

run_mpi_programs() {
  local ranks_list program arguments ranks
  while read -r ranks_list program arguments; do
    for ranks in ${ranks_list//,/ }; do
      # shellcheck disable=SC2086  # the arguments are words
      run_mpi_program "$ranks" "$program" $arguments
    done
  done < <(list_mpi_programs)
}

# run_compare SOURCE COMPILER LAUNCHER...: a program of ./run bench, as short as can be; it checks its data. Each series
# has a result for both sizes.
run_compare() {
  local source=$1 compiler=$2 name="compare $1 flagged" started=$SECONDS status=0 log count
  local binary=$log_directory/bin/compare_$source
  shift 2
  [[ $name =~ $only ]] || return 0
  log=$log_directory/${name// /_}.log
  if ! "$compiler" -std=c++20 -O2 "$here/../../benchmarks/compare/$source.cpp" -o "$binary" -luct -lucs \
    >"$log.compile" 2>&1; then
    report FAIL "$suite" "$name" 0 "it does not compile; see $log.compile"
    return
  fi
  "$@" "$log" "$binary" flagged --points 8,65536 --ms 1 || status=$?
  count=$(grep -aoE '"what":"data, flag[^"]*","memory":"malloc","x":[0-9]+' "$log" | sort -u | wc -l || true)
  if ((status == 0 && count == 4)); then
    report PASS "$suite" "$name" $((SECONDS - started))
  else
    report_failed "$suite" "$name" $((SECONDS - started)) "$log" "status $status, $count results of 4, see $log"
  fi
}

# launch_preloaded LOG BINARY ARGUMENT...
launch_preloaded() {
  launch_limited "$time_limit_s" "$1" env LD_PRELOAD="$component" UCX_WARN_UNUSED_ENV_VARS=n "${@:2}"
}

# run_shmem PES: Open MPI's OpenSHMEM, which has no other transport here than UCX.
run_shmem() {
  local name="shmem_check np=$1 OpenSHMEM" log started=$SECONDS status=0 binary=$log_directory/bin/shmem_check
  [[ $name =~ $only ]] || return 0
  log=$log_directory/${name// /_}.log
  if [[ ! -x $binary ]] &&
    ! compile_source oshcc "$here/shmem/shmem_check.c" "$binary" "$log_directory/compile-shmem.log"; then
    report FAIL "$suite" "$name" 0 "it does not compile; see $log_directory/compile-shmem.log"
    return
  fi
  launch_ucx ucx "$1" "$time_limit_s" "$log" --mca spml ucx --mca atomic ucx "$binary" || status=$?
  report_program "$suite" "$name" $((SECONDS - started)) "$log" "$status"
}

parse_arguments "$@"
[[ -e $component ]] || usage_error "--component names no library: $component"
ucx_component=$component
allow_mpirun_as_root
rm -rf "$log_directory"
mkdir -p "$log_directory"
before=$(ours_in_shared_memory)
run_info
while read -r arguments; do
  # shellcheck disable=SC2086  # the arguments are words
  run_perftest $arguments
done < <(list_perftests)
compile_programs
while read -r setting program arguments; do
  # shellcheck disable=SC2086  # the arguments are words
  run_program "$setting" "$program" $arguments
done < <(list_programs)
run_mpi_programs
run_compare uct c++ launch_preloaded
run_compare mpi mpicxx.openmpi launch_ucx ucx 2 "$time_limit_s"
run_shmem 2
run_shmem 4
check_leftovers "$suite" "$before"
end_suite "$suite"
