# shellcheck shell=bash
# What each verb of `run` needs from Debian 12, in one place, and how it gets there. Needs common.sh.

# Compiler, build system and the libraries that ours uses; the presets build the tests too. Python makes the manual
# pages.
packages_build=(
  build-essential cmake ninja-build pkg-config ccache python3
  libgtest-dev libgmock-dev libbenchmark-dev
  libfmt-dev nlohmann-json3-dev libcli11-dev libhwloc-dev libboost-dev libfabric-dev libncurses-dev systemtap-sdt-dev
)
# Open MPI's own needs, and the tools that fetch and unpack a source package. mpirun does not start a job without an
# ssh in the path, not even on one node.
packages_openmpi=(
  libevent-dev libhwloc-dev libpmix-dev zlib1g-dev flex openssh-client
  dpkg-dev xz-utils ca-certificates patch ccache
)
# The fuzzer needs clang with its runtime; the configure of the MPICH suite wants perl and Python; mpich has the launcher
# mpiexec.hydra; what depends on the processor is compiled for 64-bit Arm, too; other allocators meet ours. tshark runs
# the dissector of packets, chromium draws the page of ptl_trace, gdb tells where a test hangs. The last line checks the
# files themselves.
packages_test=(
  clang libclang-rt-14-dev perl python3 mpich g++-aarch64-linux-gnu libjemalloc2 libtcmalloc-minimal4
  tshark chromium gdb
  clang-format shellcheck groff-base git
)

# ./run lint and ./run docs.
packages_lint=(clang clang-tidy python3)
packages_docs=(doxygen python3 cmake)

# Hosts that are network namespaces of this machine.
packages_hosts=(iproute2 util-linux hostname)

# The uTofu programs run under Debian's own MPI libraries, both of them, side by side; Debian's Open MPI and fi_pingpong
# run over the provider. Our Open MPI is not touched: its mpirun is called by its path, and those of Debian by the names
# that end in .openmpi and .mpich.
packages_utofu=(openmpi-bin libopenmpi-dev mpich libmpich-dev libfabric-bin openssh-client)

# Programs of others that run over the provider: ./run soak applications.
packages_applications=(
  lammps lammps-examples hpcc netpipe-openmpi nwchem-openmpi scalapack-mpi-test python3-mpi4py libcoarrays-openmpi-dev
  python3-petsc4py python3-dolfinx python3-h5py-mpi cp2k meep-openmpi
)

# UCX, for which a component is built: its libraries, its tools, and what fetches and unpacks its source.
packages_ucx=(libucx-dev ucx-utils dpkg-dev xz-utils ca-certificates)

# The peers of ./run bench, and its driver, which draws its plots, too.
packages_bench=("${packages_utofu[@]}" "${packages_ucx[@]}" util-linux python3)

# Prints those of the named packages that are not installed.
missing_packages() {
  local -A installed=()
  local name status
  while read -r name status; do
    [[ $status == installed ]] && installed[$name]=1
  done < <(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for name in "$@"; do
    [[ -n ${installed[$name]:-} ]] || printf '%s\n' "$name"
  done
}

# Runs a command as root, through sudo when we are somebody else.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "root is needed to install packages, and there is no sudo: run as root: $*"
  fi
}

# The package lists are fetched only when apt does not know every missing package already.
apt_knows_all() {
  local name
  for name in "$@"; do
    [[ $(apt-cache policy "$name" 2>/dev/null) =~ Candidate:\ [0-9] ]] || return 1
  done
}

# One apt-get install, non-interactive, patient when another apt holds the lock.
apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 \
    install --yes --no-install-recommends "$@"
}
apt_update() { as_root apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 update; }

# install_packages NAME...: quick when nothing is missing. A list that is known may be old and name files that the
# mirror no longer has, so a failed installation is tried once more after an update.
install_packages() {
  local missing log=$cache_root/log/apt.log
  mapfile -t missing < <(missing_packages "$@" | sort -u)
  ((${#missing[@]} == 0)) && return 0
  command -v apt-get >/dev/null || die "not a Debian system, and these are missing: ${missing[*]}"
  say "Installing from Debian: ${missing[*]}"
  if apt_knows_all "${missing[@]}"; then
    run_logged "apt-get install" "$log" apt_install "${missing[@]}" && return 0
  fi
  run_logged "apt-get update" "$log" apt_update || die "apt-get update failed"
  run_logged "apt-get install" "$log" apt_install "${missing[@]}" || die "these packages cannot be installed: ${missing[*]}"
}
