# shellcheck shell=bash
# Several hosts on one machine: network namespaces, each with an address on one bridge. What makes them here removes
# them, also after a signal. They share /dev/shm, but no process looks there for one of another address.

hosts_tag="pth$$"
hosts_network="10.$((RANDOM % 200 + 20)).$((RANDOM % 250 + 1))"

# host_name NUMBER, host_address NUMBER: of a host, from 1.
host_name() { printf '%s-%d' "$hosts_tag" "$1"; }
host_address() { printf '%s.%d' "$hosts_network" "$1"; }

# Says why hosts cannot be made here; nothing if they can.
hosts_obstacle() {
  local tool
  for tool in ip tc unshare hostname; do
    command -v "$tool" >/dev/null || { printf 'there is no %s' "$tool" && return; }
  done
  ((EUID == 0)) || { printf 'network namespaces need root' && return; }
  if ! ip netns add "$hosts_tag-try" 2>/dev/null; then
    printf 'this system does not permit network namespaces'
    return
  fi
  ip netns delete "$hosts_tag-try"
}

# make_hosts COUNT: the bridge lives in a namespace of its own, so that nothing of the machine's network changes.
make_hosts() {
  local i name switch="$hosts_tag-0"
  ip netns add "$switch"
  ip -n "$switch" link add bridge0 type bridge
  ip -n "$switch" link set bridge0 up
  for ((i = 1; i <= $1; i++)); do
    name=$(host_name "$i")
    ip netns add "$name"
    ip -n "$name" link set lo up
    ip link add eth0 netns "$name" type veth peer name "port$i" netns "$switch"
    ip -n "$name" address add "$(host_address "$i")/24" dev eth0
    ip -n "$name" link set eth0 up
    ip -n "$switch" link set "port$i" master bridge0 up
  done
}

# Processes of ours that still live there go first.
remove_hosts() {
  local name pid
  for name in $(ip netns list | awk '{ print $1 }' | grep "^$hosts_tag-" || true); do
    for pid in $(ip netns pids "$name" 2>/dev/null); do kill -9 "$pid" 2>/dev/null || true; done
    ip netns delete "$name" || true
  done
}

# shape_hosts COUNT QDISC [ARGUMENT...]: what every host sends is delayed, lost, limited.
shape_hosts() {
  local i count=$1
  shift
  for ((i = 1; i <= count; i++)); do
    tc -n "$(host_name "$i")" qdisc replace dev eth0 root "$@" || return 1
  done
}

# start_bad_network COUNT DELAY_MS LOSS_PERCENT: a second network between the hosts, with the device bad0, that delays
# and loses; where the kernel has no netem. Sets bad_network_pid.
start_bad_network() {
  local i devices=()
  for ((i = 1; i <= $1; i++)); do devices+=("$(host_name "$i")=172.30.${hosts_network##*.}.$i"); done
  python3 "$(dirname "${BASH_SOURCE[0]}")/bad_network.py" "$2" "$3" 1 "${devices[@]}" \
    >"$hosts_directory/bad_network.log" 2>&1 &
  bad_network_pid=$!
  for ((i = 0; i < 100; i++)); do
    grep -qs ready "$hosts_directory/bad_network.log" && return 0
    kill -0 "$bad_network_pid" 2>/dev/null || break
    sleep 0.1
  done
  stop_bad_network
  return 1
}

stop_bad_network() {
  kill "$bad_network_pid" 2>/dev/null || true
  wait "$bad_network_pid" 2>/dev/null || true
}

unshape_hosts() {
  local i
  for ((i = 1; i <= $1; i++)); do tc -n "$(host_name "$i")" qdisc delete dev eth0 root; done
}

# write_launch_agent FILE: makes the program that starts a command on a host, as ssh does: FILE ADDRESS COMMAND. The
# host has a name and a directory for temporary files of its own. hosts_directory must be set.
write_launch_agent() {
  cat >"$1" <<AGENT
#!/bin/bash
host=$hosts_tag-\${1##*.}
shift
mkdir -p "$hosts_directory/\$host"
export TMPDIR=$hosts_directory/\$host
exec ip netns exec "\$host" unshare --uts bash -c "hostname \$host && \$*"
AGENT
  chmod +x "$1"
}
