# shellcheck shell=bash
# Compiles MPI programs, starts them with a time limit, over Portofu or over Open MPI's own transport, and judges them.
# Needs common.sh, what reports needs results.sh, too; openmpi_prefix must be set for what has no other MPI named.

# What the page on Open MPI tells users to give mpirun, besides -np and the program: the tests run that, so it cannot
# become another thing.
recommended_arguments() {
  local page
  page=$(dirname "${BASH_SOURCE[0]}")/../../lib/openmpi.md
  sed -nE '/^mpirun -np [0-9]+ .* \.\/program$/ { s/^mpirun -np [0-9]+ (.*) \.\/program$/\1/p; q }' "$page" |
    tr ' ' '\n' | grep . ||
    die "lib/openmpi.md has no line with mpirun"
}

# Arguments of mpirun, one per line, for one of these ways:
#   portals4        see lib/openmpi.md; messages by mtl/portals4, collectives by coll/portals4, windows by osc/portals4
#   portals4-coll   the same, where malloc leaves no zeros; with fewer buffers for messages nobody expects than our
#                   Open MPI sets, since malloc now writes to each page of them (512 MiB in every rank)
#   portals4-tuned  Open MPI's own collectives on messages
#   portals4-small  with so little room for unexpected messages that flow control sets in
#   portals4-pt2pt  one-sided communication on messages (osc/pt2pt)
#   portals4-osc    one-sided communication on Portals only (osc/portals4), or not at all
#   portals4-osc-mapped  the same, with all of malloc in memory that the processes map
#   portals4-osc-sm  windows in shared memory of Open MPI's own (osc/sm), where it can
#   portals4-btl    btl/portals4 under pml/ob1
#   ob1             Open MPI's own shared memory
# With pml cm nothing but the MTL carries messages: one that cannot start never falls back to something else silently.
transport_arguments() {
  case $1 in
    portals4-btl) printf '%s\n' --mca pml ob1 --mca btl self,portals4 ;;
    ob1) printf '%s\n' --mca pml ob1 --mca btl self,vader ;;
    portals4 | portals4-*) recommended_arguments ;;
    *) die "unknown transport: $1" ;;
  esac
  case $1 in
    portals4-coll) printf '%s\n' -x MALLOC_PERTURB_=119 --mca mtl_portals4_short_recv_num 16 ;;
    portals4-tuned) printf '%s\n' --mca coll ^portals4 ;;
    portals4-small) printf '%s\n' --mca mtl_portals4_short_recv_num 2 --mca mtl_portals4_short_recv_size 65536 ;;
    portals4-pt2pt) printf '%s\n' --mca osc pt2pt ;;
    portals4-osc) printf '%s\n' --mca osc portals4 ;;
    portals4-osc-mapped) printf '%s\n' --mca osc portals4 -x "LD_PRELOAD=$(mapped_allocator)" ;;
    portals4-osc-sm) printf '%s\n' --mca osc sm ;;
  esac
}

# The directory of the libportals that Open MPI finds.
library_directory() {
  dirname "$(ldd "$openmpi_prefix/lib/openmpi/mca_mtl_portals4.so" | awk '/libportals/ { print $3 }')"
}

# Our libportofu_malloc.so, beside that.
mapped_allocator() { printf '%s\n' "$(library_directory)/libportofu_malloc.so"; }

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

# launch_virtual NODES SECONDS LOG PROGRAM: in virtual time, each rank on a node of its own; LOG.json has the times.
launch_virtual() {
  local nodes=$1 seconds=$2 log=$3 arguments
  shift 3
  mapfile -t arguments < <(transport_arguments portals4)
  launch_limited "$seconds" "$log" "$(library_directory)/../bin/ptl_sim" --nodes "$nodes" --quiet --json "$log.json" \
    --launcher "$openmpi_prefix/bin/mpirun" -np "$nodes" "${arguments[@]}" "$@"
}

# The directory of our libfabric provider, beside the libportals that Open MPI finds.
provider_directory() { printf '%s/libfabric\n' "$(library_directory)"; }

# launch_debian WAY RANKS SECONDS LOG PROGRAM [ARGUMENT...]: the Open MPI that Debian ships, over the libfabric provider
# in the directory FI_PROVIDER_PATH. Debian switches off what carries messages over libfabric, and libfabric lists its
# own providers first, so both are named.
#   ofi        messages by mtl/ofi
#   ofi-pt2pt  one-sided communication on messages (osc/pt2pt)
#   ofi-rdma   one-sided communication by RMA of the provider (osc/rdma over btl/ofi)
#   WAY-sockets the same over a provider of libfabric, without us
#   debian-ob1 shared memory of Open MPI, without us
launch_debian() {
  local way=${1%-sockets} ranks=$2 seconds=$3 log=$4 provider=portofu arguments
  [[ $way == "$1" ]] || provider=sockets
  arguments=(--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "$provider" -x FI_PROVIDER_PATH)
  shift 4
  case $way in
    debian-ob1) arguments=(--mca pml ob1 --mca btl 'self,vader') ;;
    ofi) ;;
    ofi-pt2pt) arguments+=(--mca osc pt2pt) ;;
    ofi-rdma) arguments+=(--mca osc rdma --mca btl 'ofi,self,vader' --mca btl_ofi_provider_include "$provider") ;;
    *) die "unknown way: $way" ;;
  esac
  launch_limited "$seconds" "$log" mpirun.openmpi --oversubscribe -np "$ranks" "${arguments[@]}" "$@"
}

# launch_ucx WAY RANKS SECONDS LOG PROGRAM [ARGUMENT...]: the Open MPI that Debian ships, over the UCX that Debian
# ships. Open MPI takes UCX only for networks whose names it knows, unless it is told otherwise.
#   ucx        with the UCT component in the file ucx_component
#   ucx-posix  over UCX's own shared memory, without us
launch_ucx() {
  local way=$1 ranks=$2 seconds=$3 log=$4 words=(-x 'UCX_TLS=posix,self')
  [[ $way != ucx ]] || words=(-x 'UCX_TLS=utofu,self' -x "LD_PRELOAD=${ucx_component:?}")
  shift 4
  launch_limited "$seconds" "$log" mpirun.openmpi --oversubscribe -np "$ranks" --mca pml ucx --mca osc ucx \
    --mca pml_ucx_tls any --mca pml_ucx_devices any "${words[@]}" "$@"
}

# launch_mpich WAY RANKS SECONDS LOG PROGRAM [ARGUMENT...]: the MPICH in mpich_prefix. Processes of one node would talk
# by its own shared memory, so each believes that it is alone there. Of the providers that it sees it takes the first of
# those that can do most.
#   mpich          over the libfabric provider in the directory FI_PROVIDER_PATH
#   mpich-sockets  over a provider of libfabric
launch_mpich() {
  local providers=portofu,tcp,ofi_rxm ranks=$2 seconds=$3 log=$4
  [[ $1 == mpich ]] || providers=sockets
  shift 4
  launch_limited "$seconds" "$log" env MPIR_CVAR_NOLOCAL=1 FI_PROVIDER="$providers" \
    "$mpich_prefix/bin/mpiexec" -n "$ranks" "$@"
}

# unused_port: a port of TCP that nobody uses now. It is below those that the kernel gives to clients, one of whom may
# otherwise get it before the server does.
unused_port() {
  local port
  for _ in {1..100}; do
    port=$((10000 + RANDOM % 20000))
    grep -qsE "^ *[0-9]+: [0-9A-F]+:$(printf '%04X' "$port") " /proc/net/tcp /proc/net/tcp6 || break
  done
  printf '%s\n' "$port"
}

# connect_client LOG COMMAND...: the command writes the log. A server does not say when it listens, so its client tries
# again until it does.
connect_client() {
  local log=$1 tries
  shift
  for tries in {1..200}; do
    "$@" && return
    grep -q 'Connection refused' "$log" || return 1
    sleep 0.05
  done
  echo "no server after $tries tries" >>"$log"
  return 1
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
  [[ -n $line ]] || line=$(grep -av '^-*$' "$log" | head -n 1 || true)
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
    report_failed "$suite" "$name" "$seconds" "$log" "$(failure_reason "$log" "$status")"
  fi
}

# Runs the tests that standard input lists, one per line: seconds, numbers of ranks (comma), and the further arguments
# of run_test, which is the runner's: run_test SECONDS RANKS WAY PROGRAM [ARGUMENT...].
run_listed() {
  local seconds ranks_list arguments ranks
  while read -r seconds ranks_list arguments; do
    for ranks in ${ranks_list//,/ }; do
      # shellcheck disable=SC2086  # the arguments are words
      run_test "$seconds" "$ranks" $arguments
    done
  done
}

# Segments of ours that no living process maps. Jobs that ended must leave none, also when ranks were killed; other jobs
# of this user may be running and have theirs. A map shows a file's first name only, so files are known by their number,
# and by that of the file system, of which there may be several that others see as their /dev/shm.
ours_in_shared_memory() {
  local file number device
  device=$(stat --format=%d /dev/shm)
  printf -v device '%02x:%02x' $((device >> 8 & 0xfff)) $((device & 0xff | device >> 12 & 0xfff00))
  find /dev/shm -maxdepth 1 -user "$(id -u)" -iname '*portofu*' ! -name 'portofu-key-*' -printf '%p %i\n' 2>/dev/null |
    sort |
    while read -r file number; do
      grep -qsE " ${device} ${number} +/dev/shm/" /proc/[0-9]*/maps || printf '%s\n' "${file##*/}"
    done
}

# check_leftovers SUITE BEFORE: compares with what ours_in_shared_memory said before. Looks again for a minute, for jobs
# of others may be in the middle of their start or their end.
check_leftovers() {
  local suite=$1 left tries
  left=$(comm -13 <(printf '%s\n' "$2") <(ours_in_shared_memory))
  for ((tries = 0; tries < 12 && ${#left} > 0; tries++)); do
    sleep 5
    left=$(comm -12 <(printf '%s\n' "$left") <(ours_in_shared_memory))
  done
  left=${left//$'\n'/ }
  if [[ -z $left ]]; then
    report PASS "$suite" "nothing left in /dev/shm" 0
  else
    report FAIL "$suite" "nothing left in /dev/shm" 0 "left behind: $left"
    # shellcheck disable=SC2086  # A word a name.
    (cd /dev/shm && ls -li --time-style=full-iso $left) >&2 || true
  fi
}
