#!/bin/bash
# The demonstration: an MPI job of two ranks that checks its data over Portofu, a ring of four ranks, and latency,
# message rate and bandwidth beside Open MPI's own shared-memory transport, and with the unmodified Open MPI of Debian
# over the libfabric provider. The three take turns within this one run and medians are shown, because cores and load
# change from minute to minute. On a busy machine less is measured,
# and that is said; all of it is verified all the same. Ends with 0 only if it was.
#
# usage: demo.sh --prefix OPENMPI_PREFIX --log DIRECTORY [--repetitions N]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=.ci/common.sh
source "$here/../../.ci/common.sh"
# shellcheck source=tests/mpi/launch.sh
source "$here/launch.sh"

[[ ${1:-} == --prefix && ${3:-} == --log && ($# -eq 4 || ($# -eq 6 && $5 == --repetitions)) ]] ||
  usage_error "usage: demo.sh --prefix OPENMPI_PREFIX --log DIRECTORY [--repetitions N]"
openmpi_prefix=$2
log_directory=$4
repetitions=${6:-5}
# No turn begins after this time. A program may take ten times what it takes on an idle machine, and more.
measuring_limit_s=90
program_limit_s=400
ring_limit_s=20
binary_directory=$log_directory/bin

compile_all() {
  local program
  for program in bench pingpong_check ring; do
    compile_program "$program" "$binary_directory" "$log_directory/compile-$program.log" ||
      die "$program does not compile; see $log_directory/compile-$program.log"
  done
  mkdir -p "$binary_directory/debian"
  local log=$log_directory/compile-debian.log
  compile_source mpicc.openmpi "$here/programs/bench.c" "$binary_directory/debian/bench" "$log" ||
    die "bench does not compile with Debian's Open MPI; see $log"
}

# launch_way TRANSPORT RANKS SECONDS LOG PROGRAM [ARGUMENT...]: with our Open MPI, or with Debian's.
launch_way() {
  local transport=$1 ranks=$2 seconds=$3 log=$4 program=$5
  shift 5
  if [[ $transport == ofi ]]; then
    launch_debian ofi "$ranks" "$seconds" "$log" "$binary_directory/debian/$program" "$@"
  else
    launch_mpi "$transport" "$ranks" "$seconds" "$log" "$binary_directory/$program" "$@"
  fi
}

# run_verified LABEL TRANSPORT RANKS LOG PROGRAM [ARGUMENT...]: a program that ends well and says what it verified.
run_verified() {
  local label=$1 transport=$2 ranks=$3 log=$4 program=$5 status=0
  shift 5
  step "$label"
  PORTOFU_TEST_SECONDS=$program_limit_s \
    launch_way "$transport" "$ranks" $((program_limit_s + 15)) "$log" "$program" "$@" || status=$?
  if ((status != 0)) || ! grep -aq ': verified on' "$log"; then
    say "    FAILED: $(failure_reason "$log" "$status")"
    sed 's/^/    | /' "$log" | tail -n 20 >&2
    return 1
  fi
}

bench_log() { printf '%s/bench-%s-%d.log' "$log_directory" "$1" "$2"; }

# More processes want to run than there are cores, besides the job.
machine_is_busy() {
  local load
  read -r load _ </proc/loadavg
  awk -v load="$load" -v cores="$(nproc)" 'BEGIN { exit !(load >= cores + 1) }'
}

tell_of_load() {
  local load
  read -r load _ </proc/loadavg
  say "    The machine is busy (load $load on $(nproc) cores): numbers say little now, and fewer are taken."
}

# Sets `repetitions` to the turns that there was time for.
run_benchmarks() {
  local repetition transport started=$SECONDS
  for ((repetition = 1; repetition <= repetitions; repetition++)); do
    if ((repetition > 1 && SECONDS - started >= measuring_limit_s)); then
      repetitions=$((repetition - 1))
      was_busy=1
      break
    fi
    for transport in portals4 ofi ob1; do
      run_verified "measuring over $transport, $repetition of $repetitions" \
        "$transport" 2 "$(bench_log "$transport" "$repetition")" bench || return 1
    done
  done
}

# median TRANSPORT KEY: over the repetitions.
median() {
  sed -n "s/^$2=//p" "$log_directory"/bench-"$1"-*.log | sort -g |
    awk '{ value[NR] = $1 } END { print NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2 }'
}

# print_row LABEL UNIT KEY BETTER: BETTER is "less" for times, "more" for rates; the last columns say how many times
# as fast as ob1 the portals4 MTL and the libfabric provider are.
print_row() {
  local ours provider theirs
  ours=$(median portals4 "$3")
  provider=$(median ofi "$3")
  theirs=$(median ob1 "$3")
  awk -v label="$1" -v unit="$2" -v ours="$ours" -v provider="$provider" -v theirs="$theirs" -v better="$4" 'BEGIN {
    ratio = better == "less" ? theirs / ours : ours / theirs
    other = better == "less" ? theirs / provider : provider / theirs
    printf "  %-26s %12.3f %14.3f %14.3f   %-10s %5.2f %6.2f\n", label, ours, provider, theirs, unit, ratio, other }'
}

print_table() {
  printf '\n  %-26s %12s %14s %14s   %-10s %s\n' \
    'two ranks on this machine' 'portals4' 'libfabric' 'ob1/vader' '' 'times as fast'
  print_row 'latency, 8 B' 'us' latency_us_8 less
  print_row 'latency, 1 KiB' 'us' latency_us_1024 less
  print_row 'message rate, 8 B' 'million/s' rate_millions_per_s_8 more
  print_row 'bandwidth, 64 KiB' 'GB/s' bandwidth_gb_per_s_65536 more
  print_row 'bandwidth, 1 MiB' 'GB/s' bandwidth_gb_per_s_1048576 more
  print_row 'bandwidth, 4 MiB' 'GB/s' bandwidth_gb_per_s_4194304 more
  printf '\n  data of 0 B to 4 MiB between two ranks: every byte verified\n'
  printf '  ring of 4 ranks, %s laps: verified, %s us per hop (Open MPI ob1/vader: %s us)\n' \
    "$(sed -n 's/^laps=//p' "$log_directory/ring-portals4.log")" \
    "$(sed -n 's/^hop_us=//p' "$log_directory/ring-portals4.log")" \
    "$(sed -n 's/^hop_us=//p' "$log_directory/ring-ob1.log")"
  printf '  (medians of %d turns, the transports alternating; libfabric: the Open MPI of Debian;\n' "$repetitions"
  printf '   the last columns compare Portofu with ob1/vader)\n'
  ((was_busy == 0)) ||
    printf '  The machine was busy with other work: take these numbers for no more than that it works.\n'
  printf '\n'
}

allow_mpirun_as_root
FI_PROVIDER_PATH=$(provider_directory)
export FI_PROVIDER_PATH
rm -rf "$log_directory"
mkdir -p "$log_directory"
compile_all
was_busy=0
if machine_is_busy; then
  was_busy=1
  tell_of_load
fi
run_verified "two ranks exchange 0 B to 4 MiB over portals4 and check every byte" \
  portals4 2 "$log_directory/pingpong.log" pingpong_check
run_verified "a token goes 10 000 times round four ranks over portals4, for $ring_limit_s seconds at most" \
  portals4 4 "$log_directory/ring-portals4.log" ring 10000 "$ring_limit_s"
run_verified "the same over ob1" ob1 4 "$log_directory/ring-ob1.log" ring 10000 "$ring_limit_s"
run_benchmarks
print_table
printf 'demo: everything was verified\n'
