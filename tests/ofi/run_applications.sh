#!/bin/bash
# Programs that Debian ships, unmodified, with Debian's Open MPI over the libfabric provider and over Open MPI's own
# shared memory: both have to end well, and with the same answers. A program that does not end well over Open MPI's own
# transport says nothing of us, and is skipped. Every program prints one line, PASS, FAIL or SKIP with its reason; the
# last line is the sum.
#
# usage: run_applications.sh --provider DIRECTORY --log DIRECTORY [--only REGEX]
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
# shellcheck source=tests/ofi/provider.sh
source "$here/provider.sh"

suite=applications
scalapack=/usr/lib/$(uname -m)-linux-gnu/scalapack/openmpi-tests
coarrays=/usr/lib/$(uname -m)-linux-gnu/open-coarrays/openmpi/bin

# Each of these prints the words of a command, one a line, and puts what it reads into the working directory.
command_lammps() {
  cp "/usr/share/lammps/examples/$1/"* .
  printf '%s\n' lmp -in "in.$1"
}

command_hpcc() {
  zcat -f /usr/share/doc/hpcc/examples/_hpccinf.txt* | sed 's/^1000 *Ns/400 Ns/' >hpccinf.txt
  printf '%s\n' hpcc
}

command_netpipe() { printf '%s\n' NPopenmpi -i -u 1000000 -n 20; }

command_nwchem() {
  cat >water.nw <<'INPUT'
start water
geometry units angstrom
 O 0 0 0
 H 0 1.43 1.1
 H 0 -1.43 1.1
end
basis
 * library 6-31g*
end
task scf optimize
task mp2 energy
INPUT
  printf '%s\n' nwchem.openmpi water.nw
}

command_scalapack() {
  cp -L "$scalapack"/*.dat .
  printf '%s\n' "$scalapack/$1"
}

command_coarrays() { printf '%s\n' "$(compgen -G "$coarrays/OpenCoarrays-*-tests" | head -n 1)/$1"; }

# Programs in Python, and inputs, of ours.
command_python() { printf '%s\n' /usr/bin/python3 "$here/applications/$1.py"; }
command_cp2k() { printf '%s\n' cp2k.psmp -i "$here/applications/$1.inp"; }
command_meep() { printf '%s\n' meep "$here/applications/$1.ctl"; }

# What has to be the same, of what a program has written: the log is read, files are in the working directory. Sums of
# nwchem depend on an order in their last digits. Many tests of coarrays say nothing but by their status.
answers_of() {
  case $1 in
    lammps) sed -n '/^ *Step/,/^Loop/p' log.lammps | grep -E '^ *[0-9]' ;;
    hpcc) grep -E '^\|\|Ax|^Success=|RandomAccess.*_Errors=' hpccoutf.txt ;;
    netpipe) grep -aoE '[0-9]+ bytes .*times|Integrity check [a-z]+' ;;
    nwchem) grep -aoE 'Total (SCF|MP2) energy *=? *-[0-9]+\.[0-9]{8}' ;;
    scalapack) grep -aE 'tests completed|tests skipped|FAILED' ;;
    coarrays) echo ended && grep -aioE 'test (passed|failed)' | tr '[:upper:]' '[:lower:]' | sort -u ;;
    python) cat ;;
    cp2k) grep -aoE 'Total FORCE_EVAL.*-[0-9]+\.[0-9]{8}' ;;
    meep) grep -aoE '^field -?[0-9]+\.[0-9]{8}' ;;
  esac
}

# One line: seconds, ranks, kind, name. Left out are two that go wrong over Open MPI's own transport as often as over
# the provider: xdllt of ScaLAPACK, whose ranks decide by values whether they go on, hangs; and the images of
# coarray_burgers_pde do not wait for each other.
list_applications() {
  cat <<'LIST'
120 2 lammps melt
120 4 lammps melt
120 4 lammps crack
300 4 hpcc all
120 2 netpipe checked
300 3 nwchem water
120 4 scalapack xdlu
120 4 scalapack xdqr
120 4 scalapack xdls
120 4 scalapack xdinv
120 4 scalapack xdtrd
120 4 scalapack xdnep
120 4 scalapack xdpbllt
120 4 scalapack xzlu
60 4 python objects
120 4 python solvers
120 4 python elements
60 4 python one_file
300 4 cp2k water
120 4 meep waveguide
LIST
  compgen -G "$coarrays/OpenCoarrays-*-tests/*" | while read -r program; do
    [[ -x $program && -f $program && $program != */coarray_burgers_pde ]] || continue
    printf '60 4 coarrays %s\n' "${program##*/}"
  done
}

# run_once WAY SECONDS RANKS KIND NAME DIRECTORY: writes the answers into a file beside its log.
run_once() {
  local way=$1 seconds=$2 ranks=$3 kind=$4 name=$5 directory=$6 words status=0
  mkdir -p "$directory/$way"
  cd "$directory/$way"
  mapfile -t words < <("command_$kind" "$name")
  OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
    launch_debian "$way" "$ranks" "$seconds" "$directory/$way.log" "${words[@]}" || status=$?
  answers_of "$kind" <"$directory/$way.log" >"$directory/$way.answers" || true
  return "$status"
}

# run_application SECONDS RANKS KIND NAME
run_application() {
  local title="$3 $4 np=$2" directory=$log_directory/$3-$4-$2 started=$SECONDS theirs=0 ours=0
  [[ $title =~ $only ]] || return 0
  (run_once debian-ob1 "$@" "$directory") || theirs=$?
  if ((theirs != 0)); then
    report SKIP "$suite" "$title" $((SECONDS - started)) "over Open MPI's own transport it ends with status $theirs"
    return
  fi
  (run_once ofi-rdma "$@" "$directory") || ours=$?
  if ((ours != 0)); then
    report_failed "$suite" "$title" $((SECONDS - started)) "$directory/ofi-rdma.log" "status $ours"
  elif ! grep -q . "$directory/debian-ob1.answers"; then
    report FAIL "$suite" "$title" $((SECONDS - started)) "it answers nothing; see $directory"
  elif ! cmp -s "$directory"/{debian-ob1,ofi-rdma}.answers; then
    report FAIL "$suite" "$title" $((SECONDS - started)) "other answers; see $directory/*.answers"
  else
    report PASS "$suite" "$title" $((SECONDS - started))
  fi
}

begin_with_provider "$@"
allow_mpirun_as_root
before=$(ours_in_shared_memory)
while read -r seconds ranks kind name; do
  run_application "$seconds" "$ranks" "$kind" "$name"
done < <(list_applications)
check_leftovers "$suite" "$before"
end_suite "$suite"
