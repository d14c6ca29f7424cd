# shellcheck shell=bash
# Builds MPICH over libfabric from Debian's source package, once, and keeps it in the cache: the MPICH that Debian ships
# speaks UCX. Nothing of ours goes into it; libfabric loads the provider when a job starts. Needs common.sh and
# debian_source.sh. Its one entry is mpich_ensure; mpich_prefix holds the result.

mpich_version=4.0.2

# One argument per line, in the order in which configure gets them; --prefix is added when the prefix is known. Without
# Yaksa, as Debian builds it: its thousands of generated files move data of GPUs.
mpich_configure_arguments() {
  printf '%s\n' \
    --with-device=ch4:ofi --with-libfabric=/usr --with-hwloc=/usr --with-pm=hydra \
    --without-yaksa --with-datatype-engine=dataloop \
    --disable-fortran --disable-cxx --disable-romio --disable-static --disable-dependency-tracking \
    --enable-fast=O2 CFLAGS=-O2
}

# MPICH links what pkg-config says that a static libfabric needs, and Debian's development packages do not bring all of
# it. So pkg-config finds nothing.
mpich_environment=(PKG_CONFIG_LIBDIR=/nonexistent PATH="/usr/lib/ccache:$PATH")

mpich_key() {
  {
    printf '%s\n' "$mpich_version"
    mpich_configure_arguments
  } | sha256sum | cut -c 1-12
}

# Sets mpich_tarball to the upstream tarball, which holds the test suite, too, and stays in the cache.
mpich_fetch() {
  local store=$cache_root/source/mpich
  mpich_tarball=$store/mpich_$mpich_version.orig.tar.xz
  [[ -s $mpich_tarball ]] || fetch_debian_source mpich "$mpich_version" "$store"
  [[ -s $mpich_tarball ]] || die "the source package of mpich holds no $(basename "$mpich_tarball")"
}

# The stamp comes last: a prefix without it is half done and is made again.
mpich_build() {
  local work=$cache_root/mpich-build log=$cache_root/log/mpich arguments
  rm -rf "$work" "$mpich_prefix"
  mkdir -p "$work/src" "$work/build"
  mpich_fetch
  run_logged "unpacking MPICH" "$log/unpack.log" \
    tar --extract --no-same-owner --file "$mpich_tarball" --directory "$work/src" --strip-components=1 ||
    die "$mpich_tarball cannot be unpacked; remove it and try again"
  mapfile -t arguments < <(mpich_configure_arguments)
  run_logged "configuring MPICH $mpich_version (3 minutes)" "$log/configure.log" \
    env --chdir="$work/build" "${mpich_environment[@]}" \
    ../src/configure --prefix="$mpich_prefix" "${arguments[@]}" || die "MPICH cannot be configured"
  run_logged "compiling MPICH (8 minutes of one core)" "$log/make.log" \
    env "${mpich_environment[@]}" make -C "$work/build" -j"$(job_count)" || die "MPICH does not compile"
  run_logged "installing MPICH" "$log/install.log" make -C "$work/build" install || die "MPICH cannot be installed"
  date --utc >"$mpich_prefix/.complete"
  rm -rf "$work"
}

# Another process may have finished while this one waited for the lock.
mpich_build_unless_done() {
  [[ -e $mpich_prefix/.complete ]] || mpich_build
}

# Sets mpich_prefix, and builds what is not there yet.
mpich_ensure() {
  mpich_prefix=$cache_root/mpich-$mpich_version-$(mpich_key)
  [[ -e $mpich_prefix/.complete ]] || with_lock "$cache_root/mpich.lock" mpich_build_unless_done
}
