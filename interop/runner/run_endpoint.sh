#!/usr/bin/env bash
# The entry point of the image: courser in the role that the runner assigns.
set -euo pipefail

# Routes through the simulator; a part of the base image.
/setup.sh

# Gives eth0 a second address of each family, and announces both as preferred: the host in them is 101,
# which no end of the runner has. The socket on [::]:443 receives their datagrams too.
prefer_second_addresses() {
    local own v4 v6
    own=$(ip -4 -oneline address show dev eth0 scope global | awk '{ print $4; exit }')
    v4=${own%.*}.101
    own=$(ip -6 -oneline address show dev eth0 scope global | awk '{ print $4; exit }')
    v6=${own%:*}:101
    ip address add "$v4/32" dev eth0
    # Without nodad, the address could not be used for a second.
    ip -6 address add "$v6/128" dev eth0 nodad
    export PREFERRED="$v4:443 [$v6]:443"
}

case ${ROLE:?the runner sets it} in
    server)
        [[ ${TESTCASE-} != connectionmigration ]] || prefer_second_addresses
        exec courser interop server
        ;;
    client)
        # The simulator drops everything until it is up.
        /wait-for-it.sh sim:57832 -s -t 30
        exec courser interop client
        ;;
    *) exit 127 ;;
esac
