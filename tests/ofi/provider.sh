# shellcheck shell=bash
# What the runners of this directory are told beside --log and --only: --provider DIRECTORY. Needs arguments.sh.

provider=''

take_argument() {
  case $1 in
    --provider) provider=${2:?} ;;
    *) taken=0 ;;
  esac
}

# begin_with_provider ARGUMENT...: an empty directory for logs, and libfabric finds the provider.
begin_with_provider() {
  parse_arguments "$@"
  [[ -e $provider/libportofu-fi.so ]] || usage_error "--provider names no directory with the provider: $provider"
  rm -rf "$log_directory"
  mkdir -p "$log_directory"
  export FI_PROVIDER_PATH=$provider
}
