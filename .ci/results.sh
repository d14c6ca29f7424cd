# shellcheck shell=bash
# One list of results for all suites: a line per test, "PASS|FAIL|SKIP <tab> suite <tab> test <tab> reason". A suite
# that runs as a script of its own appends to the file that PORTOFU_RESULTS names. Needs common.sh.

results_file=${PORTOFU_RESULTS:-$(mktemp)}
export PORTOFU_RESULTS=$results_file
# What failed tests have said, for the end of the run, where one looks.
failures_file=$results_file.failures

# record VERDICT SUITE TEST [REASON]: keeps a result, says nothing.
record() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${4:-}" >>"$results_file"; }

# report VERDICT SUITE TEST SECONDS [REASON]: keeps a result and prints it.
report() {
  local verdict=$1 suite=$2 test=$3 seconds=$4 reason=${5:-}
  record "$verdict" "$suite" "$test" "$reason"
  printf '%s %s: %s (%s s)%s\n' "$verdict" "$suite" "$test" "$seconds" "${reason:+ - $reason}"
}

# report_failed SUITE TEST SECONDS LOG REASON: the same for a failed test, and keeps what its log has.
report_failed() {
  report FAIL "$1" "$2" "$3" "$5"
  note_failure "$1: $2" <"$4"
}

# note_failure TITLE: keeps for the end of the run what a failed test has said, which it reads: the first lines, where
# GoogleTest says what was expected and Open MPI who failed, and the last, where a sanitizer says what it has found.
note_failure() {
  local said
  said=$(LC_ALL=C grep -a . | cut -c 1-2000) || true
  {
    printf -- '--- %s said:\n' "$1"
    if (($(wc -l <<<"$said") <= 60)); then
      printf '%s\n' "$said"
    else
      head -n 20 <<<"$said"
      printf '[...]\n'
      tail -n 40 <<<"$said"
    fi
  } >>"$failures_file"
}

# count_results VERDICT [SUITE]
count_results() {
  awk -F '\t' -v verdict="$1" -v suite="${2:-}" '$1 == verdict && (suite == "" || $2 == suite) { n++ } END { print n + 0 }' \
    "$results_file"
}

# The numbers of all suites together. These words, alone on a line, are read by other programs.
print_totals() {
  printf '%d passed, %d failed, %d skipped\n' "$(count_results PASS)" "$(count_results FAIL)" "$(count_results SKIP)"
}

# The numbers of one suite, in a form that nobody takes for the total.
print_suite_totals() {
  printf '%s: %d passed, %d failed, %d skipped\n' "$1" \
    "$(count_results PASS "$1")" "$(count_results FAIL "$1")" "$(count_results SKIP "$1")"
}

# end_suite SUITE: the last thing that its runner does. Returns 1 if a test has failed.
end_suite() {
  print_suite_totals "$1"
  (($(count_results FAIL "$1") == 0))
}
