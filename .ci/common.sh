# shellcheck shell=bash
# Shell functions that every script of this repository shares: messages, long commands with progress, locks, the
# cache directory. Sourced by `run` and by the scripts in tests/mpi; needs `set -euo pipefail` in the caller.

# Everything that takes long to make and outlives a build tree (Open MPI, fetched sources) lies here, outside the
# checkout, so that a clean clone finds it again.
cache_root=${PORTOFU_CACHE:-${XDG_CACHE_HOME:-~/.cache}/portofu}

# The prefix that Open MPI's plug-ins load libportals from. It never changes, so a rebuilt library is picked up.
portofu_prefix=$cache_root/prefix

progress_interval_s=10

# Messages for people go to stderr, because the standard output of some verbs is read by programs.
say() { printf '%s\n' "$*" >&2; }
step() { printf '==> %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}
# A mistake on the command line, as opposed to something that failed.
usage_error() {
  printf 'error: %s\n' "$*" >&2
  printf 'Try "./run help".\n' >&2
  exit 2
}

# The scripts change directories, and the build systems of others do not take spaces.
[[ $cache_root == /* && $cache_root != *[[:space:]]* ]] ||
  die "the cache directory must be an absolute path without spaces: $cache_root"

# The number of compile jobs: one per core that we may use (nproc minds the affinity mask).
job_count() { nproc; }

# The newest line of a log that says anything, cut to the width of a terminal.
last_log_line() {
  tail -c 4096 "$1" 2>/dev/null | tr '\r' '\n' | LC_ALL=C grep -av '^[[:space:]]*$' | tail -n 1 | cut -c 1-110 || true
}

# Prints a line every ten seconds until it is killed. It kills its own sleep, which would otherwise keep the
# caller's output pipe and locks open for up to ten seconds after the work is done.
progress_ticker() {
  local log=$1 started=$SECONDS sleeper
  trap 'kill "$sleeper" 2>/dev/null; exit 0' TERM
  while true; do
    sleep "$progress_interval_s" &
    sleeper=$!
    wait "$sleeper"
    kill -0 $$ 2>/dev/null || exit 0
    printf '    [%4d s] %s\n' $((SECONDS - started)) "$(last_log_line "$log")" >&2
  done
}

# run_logged LABEL LOG COMMAND...: runs one external command with its output in LOG and a sign of life on stderr.
# On failure shows the end of the log without the lines that match FAILURE_NOISE, and returns the command's status.
# COMMAND must not be a shell function of several steps: bash switches `set -e` off inside it.
run_logged() {
  local label=$1 log=$2 started=$SECONDS ticker status=0
  shift 2
  mkdir -p "$(dirname "$log")"
  step "$label"
  progress_ticker "$log" &
  ticker=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  { kill "$ticker" && wait "$ticker"; } 2>/dev/null || true
  if ((status != 0)); then
    say "    FAILED (exit $status) after $((SECONDS - started)) s; the last lines of the log:"
    { LC_ALL=C grep -avE "${FAILURE_NOISE:-^$}" "$log" || true; } |
      tail -n "${FAILURE_TAIL_LINES:-40}" | sed 's/^/    | /' >&2
    say "    full log: $log"
  elif ((SECONDS - started >= progress_interval_s)); then
    say "    done in $((SECONDS - started)) s"
  fi
  return "$status"
}

# with_lock FILE COMMAND...: one process at a time runs COMMAND. The lock goes when its subshell ends, even when that is
# killed. A `die` inside ends the subshell only, with status 1.
with_lock() (
  lock_file=$1
  shift
  mkdir -p "$(dirname "$lock_file")"
  exec 9>"$lock_file"
  if ! flock --nonblock 9; then
    say "    waiting for another process that holds $lock_file"
    flock 9
  fi
  "$@"
)

# Open MPI refuses to start for root unless told twice. Only root gets the variables.
allow_mpirun_as_root() {
  if ((EUID == 0)); then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
}
