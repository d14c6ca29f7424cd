# shellcheck shell=bash
# Starts MPI programs over Portofu or over Open MPI's own transport, with a time limit. Needs common.sh; openmpi_prefix
# must be set.

# Arguments of mpirun, one per line, for one of these ways:
#   portals4        mtl/portals4: messages, and Open MPI's collectives on them
#   portals4-pt2pt  the same, with one-sided communication on messages (osc/pt2pt)
#   portals4-osc    one-sided communication on Portals too (osc/portals4)
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
    # Its requests never say that they succeeded: the field is what malloc left there. 255 makes that 0.
    portals4-coll) coll=(-x MALLOC_PERTURB_=255) ;;
  esac
  case $1 in
    portals4 | portals4-pt2pt | portals4-osc | portals4-coll)
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

# launch_mpi TRANSPORT RANKS SECONDS LOG PROGRAM [ARGUMENT...]: returns the status of mpirun, or 124 when the time is
# over; mpirun gets TERM first and clears away its ranks. The clock decides what 137 means, because mpirun itself ends
# with 137 when a rank was killed.
launch_mpi() {
  local transport=$1 ranks=$2 seconds=$3 log=$4 arguments started=$SECONDS status=0
  shift 4
  mapfile -t arguments < <(transport_arguments "$transport")
  mkdir -p "$(dirname "$log")"
  timeout --kill-after=20 "$seconds" \
    "$openmpi_prefix/bin/mpirun" --oversubscribe -np "$ranks" "${arguments[@]}" "$@" \
    >"$log" 2>&1 </dev/null || status=$?
  if ((status != 0 && SECONDS - started >= seconds)); then
    status=124
  fi
  return "$status"
}

# compile_program NAME DIRECTORY LOG: puts programs/NAME.c into DIRECTORY as NAME. Warnings are errors of ours.
compile_program() {
  local name=$1 directory=$2 log=$3 sources
  sources=$(dirname "${BASH_SOURCE[0]}")/programs
  mkdir -p "$directory" "$(dirname "$log")"
  "$openmpi_prefix/bin/mpicc" -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Wno-unused-function -pthread \
    "$sources/$name.c" -o "$directory/$name" >"$log" 2>&1
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
