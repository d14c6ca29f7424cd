# shellcheck shell=bash
# Builds Open MPI against the Portofu that is installed in the cache, once, and keeps it there. Needs common.sh,
# packages.sh and debian_source.sh. Its one entry is openmpi_ensure; openmpi_prefix holds the result.
#
# This Open MPI has faults of its own that give wrong results or hang over any Portals library. The patches in
# openmpi_mends mend them, in the order of their names; each says what is wrong, and which of our programs fails without
# it, so that it can be sent to Open MPI as it is.
#
# Only the four Portals components are plug-ins, everything else is linked in, so a new libportals does not need a
# new Open MPI. The upstream tarball in the source package brings a finished configure; Debian's patched tree would
# need autogen first.

openmpi_version=4.1.4
openmpi_mends=$(dirname "${BASH_SOURCE[0]}")/openmpi_mends
# A component that we do not build saves time; nothing in this list is needed for shared memory or Portals.
openmpi_left_out=(
  btl-openib btl-ofi btl-uct btl-smcuda btl-sm btl-tcp btl-usnic mtl-ofi mtl-psm mtl-psm2
  pml-ucx pml-v pml-monitoring pml-crcpw vprotocol osc-ucx osc-monitoring
  coll-adapt coll-han coll-hcoll coll-ucc coll-cuda coll-fca coll-monitoring coll-spacc coll-sync
  common-monitoring common-ofi common-ucx common-verbs io-romio321 io-ompio common-ompio fs fbtl fcoll sharedfp
  topo-treematch op-avx crcp crs snapc sstore
  ras-slurm plm-slurm ess-slurm schizo-slurm ras-simulator ras-gridengine ras-tm plm-tm ess-tm
  schizo-singularity schizo-jsm schizo-moab rmaps-mindist reachable-netlink
  compress-bzip compress-gzip memchecker mpool-memkind mpool-hugepage errmgr-dvm state-dvm
)

# pkg-config knows where Debian keeps this architecture's PMIx.
openmpi_pmix_directory() {
  printf '/usr/lib/%s/pmix2' "$(gcc -print-multiarch)"
}

# One argument per line, in the order in which configure gets them; --prefix is added when the prefix is known.
# The runpath makes the plug-ins find our library by path, without ldconfig and without LD_LIBRARY_PATH; as a
# runpath, and not an rpath, it still lets LD_LIBRARY_PATH put another build of the library in its place.
openmpi_configure_arguments() {
  local IFS=,
  printf '%s\n' \
    --with-portals4="$portofu_prefix" \
    LDFLAGS="-Wl,--enable-new-dtags -Wl,-rpath,$portofu_prefix/lib" CFLAGS=-O2 \
    --with-libevent=external --with-hwloc=external --with-pmix="$(openmpi_pmix_directory)" \
    --disable-mpi-fortran --disable-mpi-cxx --disable-oshmem --disable-mpi-java \
    --disable-io-romio --disable-io-ompio --disable-libompitrace --enable-mpi-ext=none \
    --without-verbs --without-ucx --without-ofi --without-psm --without-psm2 \
    --without-slurm --without-tm --without-sge --without-lsf \
    --enable-mca-dso=mtl-portals4,btl-portals4,osc-portals4,coll-portals4 \
    --enable-mca-no-build="${openmpi_left_out[*]}" \
    --disable-static --enable-mpi1-compatibility --disable-dependency-tracking
}

# The key names everything that the binaries depend on: the version, the way it was configured, the mends, and what a
# compiler sees of our header, so that a changed comment does not cost a build.
openmpi_key() {
  local header=$1
  {
    printf '%s\n' "$openmpi_version"
    openmpi_configure_arguments
    cat "$openmpi_mends"/*.patch
    gcc -E -dD -P -x c "$header"
  } | sha256sum | cut -c 1-12
}

# Unpacks the upstream tarball of the source package into DIRECTORY/src. The tarball stays in the cache.
openmpi_unpack() {
  local directory=$1 store=$cache_root/source/openmpi tarball
  tarball=$store/openmpi_$openmpi_version.orig.tar.xz
  [[ -s $tarball ]] || fetch_debian_source openmpi "$openmpi_version" "$store"
  [[ -s $tarball ]] || die "the source package of Open MPI holds no $(basename "$tarball")"
  mkdir -p "$directory/src"
  run_logged "unpacking Open MPI" "$openmpi_log_directory/unpack.log" \
    tar --extract --no-same-owner --file "$tarball" --directory "$directory/src" --strip-components=1 ||
    die "$tarball cannot be unpacked; remove it and try again"
}

# A patch that does not fit exactly means that its place has changed, and perhaps its meaning.
openmpi_mend() {
  local directory=$1 mend
  for mend in "$openmpi_mends"/*.patch; do
    patch --directory="$directory/src" --strip=1 --forward --batch --fuzz=0 <"$mend" \
      >>"$openmpi_log_directory/mend.log" 2>&1 ||
      die "$mend does not apply to Open MPI $openmpi_version; see $openmpi_log_directory/mend.log"
  done
}

# Configures, makes and installs in a directory of its own. The stamp comes last: a prefix without it is half done
# and is made again.
openmpi_build() {
  local work=$cache_root/openmpi-build arguments
  rm -rf "$work" "$openmpi_prefix"
  mkdir -p "$work/build"
  openmpi_unpack "$work"
  step "mending Open MPI $openmpi_version"
  : >"$openmpi_log_directory/mend.log"
  openmpi_mend "$work"
  mapfile -t arguments < <(openmpi_configure_arguments)
  run_logged "configuring Open MPI $openmpi_version (2 minutes)" "$openmpi_log_directory/configure.log" \
    env --chdir="$work/build" PATH="/usr/lib/ccache:$PATH" \
    ../src/configure --prefix="$openmpi_prefix" "${arguments[@]}" || die "Open MPI cannot be configured"
  run_logged "compiling Open MPI (4 minutes of one core)" "$openmpi_log_directory/make.log" \
    env PATH="/usr/lib/ccache:$PATH" make -C "$work/build" -j"$(job_count)" || die "Open MPI does not compile"
  run_logged "installing Open MPI" "$openmpi_log_directory/install.log" \
    make -C "$work/build" install || die "Open MPI cannot be installed"
  openmpi_check_plugins
  date --utc >"$openmpi_prefix/.complete"
  rm -rf "$work"
}

# Open MPI ignores a plug-in that does not load, so say it here.
openmpi_check_plugins() {
  local component plugin
  for component in mtl btl osc coll; do
    plugin=$openmpi_prefix/lib/openmpi/mca_${component}_portals4.so
    [[ -e $plugin ]] || die "Open MPI was built without $component/portals4; see $openmpi_log_directory/configure.log"
    if LD_LIBRARY_PATH='' ldd "$plugin" | grep -q 'libportals.*not found'; then
      die "$plugin does not find libportals in $portofu_prefix/lib"
    fi
  done
}

# Defaults of this Open MPI's parameters, one per line; users override them as usual. lib/openmpi.md has the same
# lines for other builds of Open MPI.
# - Who builds this wants Portofu, and hears it when Portofu cannot start: nothing else is taken in silence.
# - A block for unexpected messages costs memory only when messages lie in it; 32 of them, the default, overflow at
#   64 MiB, and recovery takes time.
# - Sends that their receivers have not taken hold room in the event queue, and nothing is sent beyond it, not even what
#   the receiver waits for. Room costs memory only when it is used.
# - One-sided communication goes over Portals, too, where it can, and over messages (osc/pt2pt) elsewhere: osc/rdma
#   crashes in atomics of small integers.
# - btl/portals4 has no receive buffer for fragments that are longer than its eager limit, and loses them.
openmpi_defaults=(
  'pml = cm'
  'mtl = portals4'
  'mtl_portals4_short_recv_num = 256'
  'mtl_portals4_send_event_queue_size = 262144'
  'mtl_portals4_recv_event_queue_size = 262144'
  'osc_portals4_priority = 200'
  'osc_rdma_priority = 5'
  'btl_portals4_max_send_size = 32768'
)
openmpi_set_defaults() {
  local file=$openmpi_prefix/etc/openmpi-mca-params.conf line
  for line in "${openmpi_defaults[@]}"; do
    grep --quiet --line-regexp --fixed-strings "$line" "$file" 2>/dev/null || printf '%s\n' "$line" >>"$file"
  done
}

# Sets openmpi_prefix for the Portofu whose header is given, and builds what is not there yet.
openmpi_ensure() {
  local header=$1
  openmpi_prefix=$cache_root/openmpi-$openmpi_version-$(openmpi_key "$header")
  openmpi_log_directory=$cache_root/log/openmpi
  if [[ ! -e $openmpi_prefix/.complete ]]; then
    step "Open MPI is not in the cache yet; building it into $openmpi_prefix"
    with_lock "$cache_root/openmpi.lock" openmpi_build_unless_done
  fi
  openmpi_set_defaults
}

# Another process may have finished while this one waited for the lock.
openmpi_build_unless_done() {
  [[ -e $openmpi_prefix/.complete ]] || openmpi_build
}
