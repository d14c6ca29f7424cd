# shellcheck shell=bash
# Fetches Debian's source of UCX once, keeps it unpacked in the cache, and builds the UCT component against it. Needs
# common.sh and debian_source.sh. Its entry is ucx_component_ensure.

ucx_version=1.13.1

# Sets ucx_source to the unpacked source.
ucx_source_ensure() {
  ucx_source=$cache_root/ucx-$ucx_version
  [[ -e $ucx_source/.complete ]] || with_lock "$cache_root/ucx.lock" ucx_unpack_unless_done
}

# Another process may have finished while this one waited for the lock. The stamp comes last.
ucx_unpack_unless_done() {
  local store=$cache_root/source/ucx tarball
  [[ ! -e $ucx_source/.complete ]] || return 0
  tarball=$store/ucx_$ucx_version.orig.tar.xz
  [[ -s $tarball ]] || fetch_debian_source ucx "$ucx_version" "$store"
  [[ -s $tarball ]] || die "the source package of ucx holds no $(basename "$tarball")"
  rm -rf "$ucx_source"
  mkdir -p "$ucx_source"
  run_logged "unpacking UCX" "$cache_root/log/ucx-unpack.log" \
    tar --extract --no-same-owner --file "$tarball" --directory "$ucx_source" --strip-components=1 ||
    die "$tarball cannot be unpacked; remove it and try again"
  date --utc >"$ucx_source/.complete"
}

# ucx_component_ensure INCLUDE LIB COMPONENT: builds the component with the uTofu in these directories.
ucx_component_ensure() {
  ucx_source_ensure
  run_logged "building the UCT component" "$cache_root/log/ucx-component.log" \
    lib/ucx/build.sh --ucx-source "$ucx_source" --utofu-include "$1" --utofu-lib "$2" --output "$3"
}
