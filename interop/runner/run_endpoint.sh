#!/usr/bin/env bash
# The entry point of the image: courser in the role that the runner assigns.
set -euo pipefail

# Routes through the simulator; a part of the base image.
/setup.sh

case ${ROLE:?the runner sets it} in
    server) exec courser interop server ;;
    client)
        # The simulator drops everything until it is up.
        /wait-for-it.sh sim:57832 -s -t 30
        exec courser interop client
        ;;
    *) exit 127 ;;
esac
