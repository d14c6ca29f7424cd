# shellcheck shell=bash
# Fetches source packages of Debian without touching /etc/apt: the machine's own package sources are read, turned
# into source entries in the cache, and apt is pointed at those. Needs common.sh.

apt_private=$cache_root/apt

# Old one-line format: "deb [options] uri suite components" becomes "deb-src ...". A CD holds no sources.
source_lines_from_list() {
  sed -nE -e '/cdrom:/d' -e 's/^[[:space:]]*deb(-src)?[[:space:]]+(.*)$/deb-src \2/p' "$1"
}

# New format: a stanza per repository; only its Types field changes. Stanzas that are switched off stay off.
source_stanzas_from_sources() {
  sed -E 's/^[Tt]ypes:.*$/Types: deb-src/' "$1"
}

# Writes the private source entries, named like the files that they come from.
write_source_entries() {
  local file base
  rm -rf "$apt_private/sources.list.d"
  mkdir -p "$apt_private/sources.list.d" "$apt_private/lists/partial" "$apt_private/archives/partial"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [[ -r $file ]] || continue
    base=$(basename "$file" .list)
    source_lines_from_list "$file" | sort -u >"$apt_private/sources.list.d/from-$base.list"
  done
  for file in /etc/apt/sources.list.d/*.sources; do
    [[ -r $file ]] || continue
    base=$(basename "$file" .sources)
    source_stanzas_from_sources "$file" >"$apt_private/sources.list.d/from-$base.sources"
  done
  grep -rqsE '^(deb-src|Types: deb-src)' "$apt_private/sources.list.d" ||
    die "no Debian package source is configured on this machine (/etc/apt/sources.list, /etc/apt/sources.list.d)"
}

# Points a tool of apt at the private entries. What it downloads is checked with the machine's own keys. The sandbox
# user could not read a cache in somebody's home directory, so root stays root.
private_apt_options=(
  -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$apt_private/sources.list.d"
  -o Dir::State::Lists="$apt_private/lists" -o Dir::Cache="$apt_private" -o APT::Sandbox::User=root
  -o Acquire::Retries=3 -o Acquire::Languages=none
)

# Prints the newest Debian version of PACKAGE whose upstream version is VERSION, or nothing.
debian_version_of() {
  local package=$1 version=$2
  apt-cache "${private_apt_options[@]}" showsrc "$package" 2>/dev/null |
    sed -nE 's/^Version: (.*)$/\1/p' | grep -E "^([0-9]+:)?${version//./\\.}(-|$)" | sort -V | tail -n 1 || true
}

# fetch_debian_source PACKAGE VERSION DIRECTORY: leaves the files of the source package in DIRECTORY. Third-party
# repositories without sources make the update complain; what counts is whether our package is found afterwards.
fetch_debian_source() {
  local package=$1 version=$2 directory=$3 debian_version log=$cache_root/log/fetch-$1.log
  write_source_entries
  run_logged "reading the list of Debian's source packages" "$log" \
    apt-get "${private_apt_options[@]}" update || true
  debian_version=$(debian_version_of "$package" "$version")
  [[ -n $debian_version ]] || die "Debian's source package $package $version is not offered by this machine's mirrors"
  mkdir -p "$directory"
  run_logged "fetching the source package $package $debian_version" "$log" \
    env --chdir="$directory" apt-get "${private_apt_options[@]}" source --download-only "$package=$debian_version" ||
    die "the source package $package $debian_version cannot be fetched"
}
