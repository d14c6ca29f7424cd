#!/bin/bash
# Compiles the UCT component `utofu` into a library that is preloaded into an installed UCX. It needs the source of that
# UCX, for headers that are not installed, and its ucx_info, which prints with which options it was configured: the
# structures depend on them. Of uTofu it needs utofu.h and libtofucom.so, from whomever they are.
#
# usage: build.sh --ucx-source DIRECTORY --utofu-include DIRECTORY --utofu-lib DIRECTORY --output FILE
#   CC, CFLAGS and LDFLAGS are minded.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

ucx_source='' utofu_include='' utofu_lib='' output=''
while (($# > 1)); do
  case $1 in
    --ucx-source) ucx_source=$2 ;;
    --utofu-include) utofu_include=$2 ;;
    --utofu-lib) utofu_lib=$2 ;;
    --output) output=$2 ;;
    *) die "unknown argument $1" ;;
  esac
  shift 2
done
[[ -e $ucx_source/src/uct/base/uct_iface.h ]] || die "--ucx-source names no source of UCX: $ucx_source"
[[ -e $utofu_include/utofu.h ]] || die "--utofu-include names no directory with utofu.h: $utofu_include"
[[ -n $output ]] || die "--output is missing"

# Headers of another version would compile, and describe other structures.
installed=$(ucx_info -v | sed -nE 's/^# (Library v|V)ersion:? ([0-9]+\.[0-9]+).*/\2/p' | head -n 1)
source_version=$(sed -nE 's/^define\(\[ucx_ver_(major|minor)\], *([0-9]+)\).*/\2/p' "$ucx_source/configure.ac" |
  paste -s -d .)
[[ $installed == "$source_version" ]] || die "UCX $installed is installed, the source is of $source_version"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ucx_info -b | grep '^#define' >"$work/config.h"
mkdir -p "$(dirname "$output")"
# shellcheck disable=SC2086  # CFLAGS and LDFLAGS are words
"${CC:-cc}" -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -Wall -Wextra -Werror -Wno-unused-parameter \
  ${CFLAGS:-} -DHAVE_CONFIG_H -isystem "$work" -isystem "$ucx_source/src" -I "$utofu_include" \
  "$here"/*.c -shared -o "$output.new" -Wl,-z,defs ${LDFLAGS:-} -luct -lucs -lucm -L "$utofu_lib" \
  "-Wl,-rpath,$utofu_lib" -ltofucom -pthread
mv "$output.new" "$output"
