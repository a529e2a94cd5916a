# hosts.sh: four hosts on this machine, for tests and measurements of runs over
# a network. Sourced behind cli.sh and ranks.sh, by root.
#
# Each of h0 to h3 is a network name space with an address, 10.77.0.1 to 4, on a
# switch (a bridge in a name space of its own, so that nothing of this machine's
# network is touched), with its own host name, a folder of its own to work in,
# and a memory cgroup for the rank that it runs. The launcher runs on h0 and
# enters the others by an agent that stands in for ssh.
#
#   hosts_open          makes them; they end with the script, whatever happens
#   on_hosts COMMAND... one rank of it on each of the first $hosts (4)
#   enter HOST COMMAND...
#   cable HOST up|down  the link between that host and the switch
#   limit RATE          of what each host sends, by a token bucket; none: none

hosts_fail() {
    echo "FAILED: $*" >&2
    exit 1
}

[ "$(id -u)" = 0 ] ||
    hosts_fail "four hosts are made of name spaces and cgroups: run it as root"
for tool in ip tc nsenter unshare; do
    command -v $tool >/dev/null ||
        hosts_fail "$tool is missing: script/setup --hosts installs it"
done

hosts=4
host_spaces=plimsoll-$$ # what their names begin with
host_dir=$TMP_DIR/hosts # h0 to h3: their folders
host_disk=              # one that is on a disk, for all of them
hosts_cage=$PWD/tests/support/memory_cage.sh

hosts_close() {
    local i pid file
    [ -z "$host_disk" ] || rm -rf "$host_disk"
    for i in net 0 1 2 3; do
        for pid in $(ip netns pids "$host_spaces-$i" 2>/dev/null); do
            kill -9 "$pid" 2>/dev/null || true
        done
    done
    # a cage's script removes its cgroup, unless it was killed: it may be
    for file in $(find /sys/fs/cgroup -maxdepth 6 -type d \
        -name 'plimsoll-cage.*' 2>/dev/null); do
        [ -e "/proc/${file##*.}" ] || rmdir "$file" 2>/dev/null || true
    done
    for i in 0 1 2 3 net; do
        ip netns del "$host_spaces-$i" 2>/dev/null || true
    done
}

# Those whose script was killed.
hosts_remove_leftovers() {
    local name
    for name in $(ip netns list | grep -o '^plimsoll-[0-9]*-[a-z0-9]*'); do
        [ -e "/proc/$(cut -d - -f 2 <<<"$name")" ] ||
            ip netns del "$name" 2>/dev/null || true
    done
}

hosts_open() {
    local i
    hosts_remove_leftovers
    trap hosts_close EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    mkdir -p "$host_dir"
    ip netns add "$host_spaces-net"
    ip -n "$host_spaces-net" link add switch type bridge
    ip -n "$host_spaces-net" link set switch up
    echo '127.0.0.1 localhost' >"$host_dir/names"
    for i in 0 1 2 3; do
        mkdir -p "$host_dir/h$i"
        echo "10.77.0.$((i + 1)) h$i" >>"$host_dir/names"
        ip netns add "$host_spaces-$i"
        ip -n "$host_spaces-net" link add "port$i" type veth \
            peer name eth0 netns "$host_spaces-$i"
        ip -n "$host_spaces-net" link set "port$i" master switch up
        ip -n "$host_spaces-$i" address add "10.77.0.$((i + 1))/24" dev eth0
        ip -n "$host_spaces-$i" link set lo up
        ip -n "$host_spaces-$i" link set eth0 up
    done
    # The agent: its first word is the host, the rest is for a shell there. It
    # keeps /sys, where the cgroups are, which `ip netns exec` would not.
    cat >"$host_dir/agent" <<END
#!/bin/bash
host=\$1
shift
exec nsenter --net="/run/netns/$host_spaces-\${host#h}" \\
    unshare --uts --mount bash -c '
        hostname "\$0" && mount --bind "$host_dir/names" /etc/hosts &&
            cd "$host_dir/\$0" && eval "\$*"' "\$host" "\$*"
END
    # A rank in its cage, if its host has one: a file with the bytes.
    cat >"$host_dir/rank" <<END
#!/bin/bash
cd "$host_dir/\$(hostname)" || exit 2
bytes=\$(cat memory 2>/dev/null)
[ -n "\$bytes" ] || exec "\$@"
CAGE='v1 v2' exec bash "$hosts_cage" "\$bytes" "\$@"
END
    chmod +x "$host_dir/agent" "$host_dir/rank"
    for i in 0 1 2 3; do
        cable h$i up
    done
}

# enter HOST COMMAND...
enter() {
    local host=$1
    shift
    "$host_dir/agent" "$host" "$(printf '%q ' "$@")"
}

# What the launcher needs to know.
on_hosts() {
    local names=h0:1 i
    for ((i = 1; i < hosts; i++)); do
        names+=,h$i:1
    done
    enter h0 "${launch[@]}" --mca plm_rsh_agent "$host_dir/agent" \
        --mca orte_keep_fqdn_hostnames 1 \
        --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 \
        --mca oob_tcp_if_include 10.77.0.0/24 --mca pml ob1 \
        --host "$names" -n "$hosts" "$host_dir/rank" "$@" </dev/null
}

# hear HOST OTHER: whether the other one can be heard there; a port that nobody
# has open is refused
hear() {
    enter "$1" timeout 1 bash -c "echo >/dev/tcp/$2/9" 2>&1 | grep -q refused
}

# A port that is up again takes a moment to pass anything on, and a host that
# looked for another one in vain may still answer "no route" to whoever connects
# next: all of them are to forget that, and to hear each other, both ways.
cable() {
    local began=$SECONDS i pair
    ip -n "$host_spaces-net" link set "port${1#h}" "$2"
    [ "$2" = up ] || return 0
    for i in 0 1 2 3; do
        ip -n "$host_spaces-$i" neighbour flush dev eth0
    done
    for i in 0 1 2 3; do
        [ "h$i" != "$1" ] || continue
        for pair in "$1 h$i" "h$i $1"; do
            # two words
            # shellcheck disable=SC2086
            until hear $pair; do
                [ $((SECONDS - began)) -lt 60 ] ||
                    hosts_fail "no connection: $pair"
                sleep 0.1
            done
        done
    done
}

# limit RATE [BURST [LATENCY]]: as tc writes them; what would wait for longer is
# dropped
limit() {
    local i
    for i in 0 1 2 3; do
        tc -n "$host_spaces-$i" qdisc del dev eth0 root 2>/dev/null || true
        [ "$1" = none ] ||
            tc -n "$host_spaces-$i" qdisc add dev eth0 root tbf rate "$1" \
                burst "${2:-128kb}" latency "${3:-400ms}"
    done
}
