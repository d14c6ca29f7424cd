# shellcheck shell=bash
# The suites of `./run test`: each builds what it needs, runs it, and adds its results to the list of results.sh. A
# suite that cannot be built is one failed test, and the other suites still run. Needs common.sh, results.sh, and the
# functions build_preset, prepare_prefix and prepare_openmpi of `run`.

# Suites in the order of `./run test`; the parts of dev can be named alone: unit, simulation, process, conformance. So
# can quick, which is not among them: it has nothing that dev has not.
all_suites=(dev fabric asan tsan fuzz utofu ofi ucx mpi hosts mpich)
# Groups of the suite mpich; see tests/mpi/run_mpich_suite.sh. `./run soak` has two more.
mpich_groups=(pt2pt coll coll-portals4 comm rma-osc rma-osc-mapped btl)
# Groups over the libfabric provider with Debian's Open MPI.
ofi_groups=(pt2pt coll comm rma-rdma rma-pt2pt)
# What the suites dev, fabric and hosts, and the parts of dev, are built with: dev, so that one is built for whoever
# works on it, or ci, which leaves to the suite asan what that runs as well.
test_preset=dev
# ctest's own limits hold for single tests; this one holds for a suite, so that a CI run ends with a total.
suite_limit_s=1500

suite_exists() {
  case $1 in
    quick | dev | unit | simulation | process | conformance) return 0 ;;
    fabric | asan | tsan | fuzz | utofu | ofi | ucx | mpi | hosts | mpich) return 0 ;;
    *) return 1 ;;
  esac
}

# run_suites NAME...: in their order, but for those that leave a core idle, since their processes sleep or are one:
# these come last, in three rows side by side, each with a third of what they compute. Two of the rows are process
# groups of their own, and end with this script.
run_suites() {
  local suite programs=() mpich=() hosts=()
  for suite in "$@"; do
    case $suite in
      utofu | ofi | ucx | mpi) programs+=("$suite") ;;
      fuzz | mpich) mpich+=("$suite") ;;
      hosts) hosts+=("$suite") ;;
      *) run_suite "$suite" ;;
    esac
  done
  row_groups=()
  trap 'end_rows' EXIT
  start_row "${hosts[@]}"
  start_row "${mpich[@]}"
  (run_row "${programs[@]}")
  wait "${row_groups[0]}" || row_failed $? "${hosts[@]}"
  wait "${row_groups[1]}" || row_failed $? "${mpich[@]}"
  trap - EXIT
}

# start_row NAME...: runs these suites in the background; row_groups gets their process group.
start_row() {
  set -m
  run_row "$@" &
  row_groups+=($!)
  set +m
}

end_rows() {
  local group
  for group in "${row_groups[@]}"; do
    kill -- "-$group" 2>/dev/null || true
  done
}

# row_failed STATUS NAME...
row_failed() {
  local status=$1
  shift
  report FAIL "$*" "the row of these suites" 0 "it ended with status $status; see above"
}

# run_row NAME...
run_row() {
  local suite
  for suite in "$@"; do
    run_suite "$suite"
  done
}

# run_suite NAME: runs it, and says how long it took, and how long all its processes computed.
run_suite() {
  local started=$SECONDS shell=$BASHPID before after
  printf '\n--- suite %s ---\n' "$1"
  before=$(computed_s "$shell")
  run_suite_itself "$1"
  after=$(computed_s "$shell")
  printf '%s: took %d s, computed %d s\n' "$1" $((SECONDS - started)) $((after - before))
}

# computed_s PID: seconds that all its children computed which have ended. `times` tells a shell of its own ones only.
computed_s() {
  awk '{ print int(($16 + $17) / '"$(getconf CLK_TCK)"') }' "/proc/$1/stat"
}

run_suite_itself() {
  case $1 in
    # Most of the time of these is slept; what computes counts for two (PROCESSORS).
    dev) run_ctest dev "$test_preset" '^(unit|simulation|process|conformance)$' --parallel $((2 * $(job_count))) ;;
    # Each part and each API once, for whoever has just cloned. Most of its time is slept, by providers that libfabric
    # loads.
    quick) run_ctest quick quick '^(unit|conformance)$' --parallel $((4 * $(job_count))) ;;
    unit | simulation | process | conformance) run_ctest "$1" "$test_preset" "^$1\$" ;;
    # Most of the time of these is slept by providers that libfabric loads, while they look for their hardware.
    fabric) run_ctest fabric "$test_preset" '^fabric$' --parallel $((4 * $(job_count))) ;;
    asan) run_ctest asan asan '^(unit|simulation)$' --parallel $((2 * $(job_count))) ;;
    # Only what has threads (tests/CMakeLists.txt); all engines of the simulation run in one.
    tsan) run_ctest tsan tsan '^(unit|threads)$' --parallel $((2 * $(job_count))) ;;
    fuzz) run_ctest fuzz fuzz . ;;
    utofu) run_utofu ;;
    ofi) run_ofi ;;
    ucx) run_ucx ;;
    mpi) run_mpi ;;
    hosts) run_hosts ;;
    mpich) run_mpich "${mpich_groups[@]}" ;;
  esac
}

# ThreadSanitizer of Debian 12 does not start where the kernel spreads addresses widely. Where it may be switched off,
# it is.
without_address_randomization() {
  if setarch --addr-no-randomize true 2>/dev/null; then
    setarch --addr-no-randomize "$@"
  else
    "$@"
  fi
}

# with_own_shared_memory COMMAND...: with a /dev/shm that nobody else has, where the system permits it. What the jobs of
# a suite leave there is then told from what other rows have.
with_own_shared_memory() {
  # shellcheck disable=SC2016  # The inner shell's arguments.
  local shell=(unshare --mount sh -c 'mount -t tmpfs -o mode=1777 portofu /dev/shm && exec "$@"' sh)
  if "${shell[@]}" true 2>/dev/null; then
    "${shell[@]}" "$@"
  else
    "$@"
  fi
}

# Lines that say nothing about a failure: of ctest, of GoogleTest, and the steps of a fuzzer.
ctest_noise='^ +Start +[0-9]+: |^\[[-=]+\]|^\[ +(RUN|OK|PASSED) +\]|^Running main|^Note: Google Test|^#[0-9]+\s|^ *$'

# run_ctest SUITE PRESET LABEL_REGEX [CTEST_ARGUMENT...]: one result per test that ctest knows.
run_ctest() {
  local suite=$1 preset=$2 label=$3 log=build/logs/test-$1.log status=0 labels=()
  shift 3
  if ! build_preset "$preset"; then
    report FAIL "$suite" "build of preset $preset" 0 "see build/logs"
    return
  fi
  [[ $label == . ]] || labels=(--label-regex "$label")
  FAILURE_TAIL_LINES=150 FAILURE_NOISE="$ctest_noise|(  Passed|\*\*\*Skipped) .* sec *\$" \
    run_logged "testing: $suite" "$log" without_address_randomization \
    timeout --kill-after=30 "$suite_limit_s" ctest --preset "$preset" "${labels[@]}" --no-tests=error \
    --output-on-failure --parallel "$(job_count)" "$@" || status=$?
  collect_ctest_results "$suite" "$preset" "$log"
  if ((status != 0)) && (($(count_results FAIL "$suite") == 0)); then
    report FAIL "$suite" "ctest" 0 "it ended with status $status and named no failed test; see $log"
  fi
  print_suite_totals "$suite"
}

# Reads ctest's line per test. Failed and skipped ones are printed with their reasons, the others only counted.
collect_ctest_results() {
  local suite=$1 preset=$2 log=$3 verdict test seconds word reason
  while IFS=$'\t' read -r verdict test seconds word; do
    case $verdict in
      PASS) record PASS "$suite" "$test" ;;
      SKIP)
        reason=$(skip_reason "$preset" "$test")
        [[ $word != *Disabled* ]] || reason="a role that another test plays in a process of its own"
        report SKIP "$suite" "$test" "$seconds" "${reason:-no reason given}"
        ;;
      FAIL)
        report FAIL "$suite" "$test" "$seconds" "$word; see $log"
        said_by "$test" "$log" | note_failure "$suite: $test"
        ;;
    esac
  done < <(parse_ctest_log "$log")
}

# said_by TEST LOG: what ctest's log has of a test.
said_by() {
  awk -v test="$1" '
    /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / { inside = index($0, ": " test " .") > 0; next }
    inside' "$2" | LC_ALL=C grep -avE "$ctest_noise" || true
}

# "  3/20 Test  #3: name ......   Passed    0.01 sec" becomes "PASS <tab> name <tab> 0.01 <tab> Passed".
parse_ctest_log() {
  awk '
    /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / && / sec *$/ {
      line = $0
      sub(/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: /, "", line)
      if (!match(line, / \.\.\.+.*$/)) next
      name = substr(line, 1, RSTART - 1)
      word = substr(line, RSTART)
      match(word, /[0-9.]+ sec *$/)
      seconds = substr(word, RSTART)
      word = substr(word, 1, RSTART - 1)
      sub(/ sec *$/, "", seconds)
      gsub(/\*\*\*/, " ", word)
      gsub(/^[ .]+| +$/, "", word)
      verdict = word ~ /^Passed/ ? "PASS" : word ~ /^Skipped|^Not Run \(Disabled\)/ ? "SKIP" : "FAIL"
      printf "%s\t%s\t%s\t%s\n", verdict, name, seconds, word
    }' "$1"
}

# What the test said when it skipped itself: GoogleTest prints it on the line after "Skipped".
skip_reason() {
  awk -v wanted="$2" '
    /^[0-9]+\/[0-9]+ Testing: / { current = $0; sub(/^[0-9]+\/[0-9]+ Testing: /, "", current); after = 0; next }
    current != wanted { next }
    after { print; exit }
    /: Skipped$/ { after = 1 }' "build/$1/Testing/Temporary/LastTest.log" 2>/dev/null || true
}

# The uTofu programs, under the MPI libraries of Debian. Their runner records its results itself.
run_utofu() {
  if ! prepare_prefix; then
    report FAIL utofu "installation of the release build" 0 "see build/logs"
    return
  fi
  with_own_shared_memory tests/utofu/run_programs.sh --prefix "$portofu_prefix" --log "$PWD/build/logs/utofu" \
    --only "${PORTOFU_ONLY:-.}" "$@" || require_failures utofu
}

# The MPI programs, and of the MPICH suite what does not take long, with Debian's Open MPI over the libfabric provider.
run_ofi() {
  run_ofi_programs && run_ofi_mpich --debian "$portofu_prefix/lib/libfabric" --least "${ofi_groups[@]}"
}

# Their runner records its results itself. Returns 1 if there is nothing to run with.
run_ofi_programs() {
  if ! prepare_prefix; then
    report FAIL ofi "installation of the release build" 0 "see build/logs"
    return 1
  fi
  with_own_shared_memory tests/ofi/run_programs.sh --provider "$portofu_prefix/lib/libfabric" \
    --log "$PWD/build/logs/ofi" --only "${PORTOFU_ONLY:-.}" || require_failures ofi
}

# Debian's UCX over the component that is built for it. Its runner records its results itself.
run_ucx() {
  local component=$portofu_prefix/lib/ucx/libuct_utofu.so
  if ! install_packages "${packages_ucx[@]}" || ! prepare_prefix ||
    ! ucx_component_ensure "$portofu_prefix/include" "$portofu_prefix/lib" "$component"; then
    report FAIL ucx "build of the component" 0 "see above"
    return
  fi
  with_own_shared_memory tests/ucx/run_programs.sh --component "$component" --ucx-source "$ucx_source" \
    --log "$PWD/build/logs/ucx" --only "${PORTOFU_ONLY:-.}" || require_failures ucx
}

# run_ofi_mpich MPI... GROUP...: the arguments are those of run_mpich_suite.sh.
run_ofi_mpich() {
  with_own_shared_memory tests/mpi/run_mpich_suite.sh --log "$PWD/build/logs/ofi-mpich" \
    --only "${PORTOFU_ONLY:-.}" "$@" ||
    require_failures ofi
}

# The MPI programs of this repository, and the commands of the README. Their runners record their results themselves.
run_mpi() {
  if ! prepare_openmpi; then
    report FAIL mpi "build of Open MPI" 0 "see above"
    return
  fi
  with_own_shared_memory tests/mpi/run_programs.sh --prefix "$openmpi_prefix" --log "$PWD/build/logs/mpi" \
    --only "${PORTOFU_ONLY:-.}" "$@" ||
    require_failures mpi
  tests/readme/run_readme.py --openmpi "$openmpi_prefix" --portofu "$portofu_prefix" --log "$PWD/build/logs/readme" \
    --only "${PORTOFU_ONLY:-.}" || require_failures readme
}

# run_hosts [--all]: jobs between hosts. Their runner records its results itself.
run_hosts() {
  if ! install_packages "${packages_hosts[@]}" || ! build_preset "$test_preset" || ! prepare_openmpi; then
    report FAIL hosts "build of the tests or of Open MPI" 0 "see above"
    return
  fi
  with_own_shared_memory tests/hosts/run_hosts.sh --build "$PWD/build/$test_preset" --prefix "$openmpi_prefix" \
    --log "$PWD/build/logs/hosts" --only "${PORTOFU_ONLY:-.}" "$@" || require_failures hosts
}

# run_mpich GROUP...
run_mpich() {
  if ! prepare_openmpi; then
    report FAIL mpich "build of Open MPI" 0 "see above"
    return
  fi
  with_own_shared_memory tests/mpi/run_mpich_suite.sh --prefix "$openmpi_prefix" --log "$PWD/build/logs/mpich" \
    --only "${PORTOFU_ONLY:-.}" "$@" || require_failures mpich
}

# A runner that ended badly without a failed test broke down itself.
require_failures() {
  if ! grep -q "^FAIL	$1" "$results_file"; then
    report FAIL "$1" "runner" 0 "it broke down; see above"
  fi
}
