# shellcheck shell=bash
# Compiles MPI programs, starts them with a time limit, over Portofu or over Open MPI's own transport, and judges them.
# Needs common.sh, what reports needs results.sh, too; openmpi_prefix must be set for what has no other MPI named.

# Arguments of mpirun, one per line, for one of these ways:
#   portals4        mtl/portals4: messages, and Open MPI's collectives on them
#   portals4-pt2pt  the same, with one-sided communication on messages (osc/pt2pt)
#   portals4-osc    one-sided communication on Portals too (osc/portals4)
#   portals4-osc-mapped  the same, with all of malloc in memory that the processes map
#   portals4-coll   collectives by triggered operations too (coll/portals4)
#   portals4-btl    btl/portals4 under pml/ob1
#   ob1             Open MPI's own shared memory
# What is not under test is switched off by name, so that a Portals component that cannot start never falls back to
# something else silently: pml cm has only the MTL; osc rdma and sm would go around it through shared memory.
transport_arguments() {
  local osc=^portals4 coll=(--mca coll ^portals4)
  case $1 in
    portals4-pt2pt) osc=pt2pt ;;
    portals4-osc) osc=portals4 ;;
    portals4-osc-mapped) osc=portals4 coll+=(-x "LD_PRELOAD=$(mapped_allocator)") ;;
    # Its requests never say that they succeeded: the field is what malloc left there. 255 makes that 0.
    portals4-coll) coll=(-x MALLOC_PERTURB_=255) ;;
  esac
  case $1 in
    portals4 | portals4-pt2pt | portals4-osc | portals4-osc-mapped | portals4-coll)
      printf '%s\n' --mca pml cm --mca mtl portals4 --mca btl ^portals4
      ;;
    # A fragment that is longer than the eager limit of 32 KiB has no receive buffer in btl/portals4: it is lost.
    # Open MPI's default is 64 KiB; see the README.
    portals4-btl) printf '%s\n' --mca pml ob1 --mca btl self,portals4 --mca btl_portals4_max_send_size 32768 ;;
    ob1) printf '%s\n' --mca pml ob1 --mca btl self,vader ;;
    *) die "unknown transport: $1" ;;
  esac
  printf '%s\n' --mca osc "$osc" "${coll[@]}"
}

# Our libportofu_malloc.so, beside the libportals that Open MPI finds.
mapped_allocator() {
  local libportals
  libportals=$(ldd "$openmpi_prefix/lib/openmpi/mca_mtl_portals4.so" | awk '/libportals/ { print $3 }')
  printf '%s\n' "$(dirname "$libportals")/libportofu_malloc.so"
}

# launch_limited SECONDS LOG MPIRUN [ARGUMENT...]: returns the status of mpirun, or 124 when the time is over; mpirun
# gets TERM first and clears away its ranks. The clock decides what 137 means, because mpirun itself ends with 137 when
# a rank was killed.
launch_limited() {
  local seconds=$1 log=$2 started=$SECONDS status=0
  shift 2
  mkdir -p "$(dirname "$log")"
  timeout --kill-after=20 "$seconds" "$@" >"$log" 2>&1 </dev/null || status=$?
  if ((status != 0 && SECONDS - started >= seconds)); then
    status=124
  fi
  return "$status"
}

# launch_mpi TRANSPORT RANKS SECONDS LOG PROGRAM [ARGUMENT...]: launch_limited with our Open MPI.
launch_mpi() {
  local transport=$1 ranks=$2 seconds=$3 log=$4 arguments
  shift 4
  mapfile -t arguments < <(transport_arguments "$transport")
  launch_limited "$seconds" "$log" "$openmpi_prefix/bin/mpirun" --oversubscribe -np "$ranks" "${arguments[@]}" "$@"
}

# compile_source MPICC SOURCE BINARY LOG [ARGUMENT...]: the arguments stand behind the source. Warnings are errors of
# ours.
compile_source() {
  local mpicc=$1 source=$2 binary=$3 log=$4
  shift 4
  mkdir -p "$(dirname "$binary")" "$(dirname "$log")"
  "$mpicc" -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Wno-unused-function -pthread \
    "$source" -o "$binary" "$@" >"$log" 2>&1
}

# compile_program NAME DIRECTORY LOG: puts programs/NAME.c into DIRECTORY as NAME.
compile_program() {
  compile_source "$openmpi_prefix/bin/mpicc" "$(dirname "${BASH_SOURCE[0]}")/programs/$1.c" "$2/$1" "$3"
}

# The line of a log that says best why a program failed: its own statement, or the last thing that anybody said.
failure_reason() {
  local log=$1 status=$2 line
  line=$(grep -aE '^[a-z_]+: rank [0-9]+, line|time limit of the program' "$log" | head -n 1 || true)
  [[ -n $line ]] || line=$(grep -aE 'Assertion|Segmentation|signal [0-9]+|rror' "$log" | head -n 1 || true)
  [[ -n $line ]] || line=$(last_log_line "$log")
  ((status == 124)) && line="hangs (time limit); $line"
  printf '%s [exit %d, log %s]' "${line:0:160}" "$status" "$log"
}

# report_program SUITE NAME SECONDS LOG STATUS: the verdict on a program that uses check.h.
report_program() {
  local suite=$1 name=$2 seconds=$3 log=$4 status=$5
  if grep -aq '^SKIP: ' "$log"; then
    report SKIP "$suite" "$name" "$seconds" "$(sed -n 's/^SKIP: //p' "$log" | head -n 1)"
  elif ((status == 0)) && grep -aq ': verified on' "$log"; then
    report PASS "$suite" "$name" "$seconds"
  else
    report FAIL "$suite" "$name" "$seconds" "$(failure_reason "$log" "$status")"
  fi
}

# Segments of ours that no living process maps. Jobs that ended must leave none, also when ranks were killed; other jobs
# of this user may be running and have theirs.
ours_in_shared_memory() {
  local file
  find /dev/shm -maxdepth 1 -user "$(id -u)" -iname '*portofu*' ! -name 'portofu-key-*' 2>/dev/null | sort |
    while read -r file; do
      grep -qsF "$file" /proc/[0-9]*/maps || printf '%s\n' "${file##*/}"
    done
}

# check_leftovers SUITE BEFORE: compares with what ours_in_shared_memory said before.
check_leftovers() {
  local suite=$1 left
  left=$(comm -13 <(printf '%s\n' "$2") <(ours_in_shared_memory) | tr '\n' ' ')
  if [[ -z ${left// /} ]]; then
    report PASS "$suite" "nothing left in /dev/shm" 0
  else
    report FAIL "$suite" "nothing left in /dev/shm" 0 "left behind: $left"
  fi
}
