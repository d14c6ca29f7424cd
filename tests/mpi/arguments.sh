# shellcheck shell=bash
# What all runners of programs are told: where their logs go, and which tests run. Needs common.sh.

log_directory=''
only=.

# parse_arguments [ARGUMENT...]: --log DIRECTORY and --only REGEX set the two above. Every other argument goes to the
# runner's own take_argument, with those that follow it. It sets `taken` to how many of them it took, if not two; 0: it
# does not know the first.
parse_arguments() {
  local taken
  while (($# > 0)); do
    taken=2
    case $1 in
      --log) log_directory=${2:?} ;;
      --only) only=${2:?} ;;
      *) take_argument "$@" ;;
    esac
    ((taken > 0)) || usage_error "${0##*/}: unknown argument $1"
    shift "$taken"
  done
  [[ -n $log_directory ]] || usage_error "--log is missing"
}
