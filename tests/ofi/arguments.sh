# shellcheck shell=bash
# What the runners of this directory are told. Needs common.sh.

provider=''
log_directory=''
only=.

# parse_provider_arguments RUNNER --provider DIRECTORY --log DIRECTORY [--only REGEX]: sets the three above, makes an
# empty directory for logs, and lets libfabric find the provider.
parse_provider_arguments() {
  local runner=$1
  shift
  while (($# > 0)); do
    case $1 in
      --provider) provider=${2:?} && shift ;;
      --log) log_directory=${2:?} && shift ;;
      --only) only=${2:?} && shift ;;
      *) usage_error "$runner: unknown argument $1" ;;
    esac
    shift
  done
  [[ -e $provider/libportofu-fi.so ]] || usage_error "--provider names no directory with the provider: $provider"
  [[ -n $log_directory ]] || usage_error "--log is missing"
  rm -rf "$log_directory"
  mkdir -p "$log_directory"
  export FI_PROVIDER_PATH=$provider
}
