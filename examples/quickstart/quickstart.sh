#!/usr/bin/env bash
# The quick start of docs/quickstart.md as a script. PORT and DATA choose where it runs.
set -euo pipefail
cd "$(dirname "$0")"
data=${DATA:-$(mktemp -d)}
trap 'lockstep down --data "$data"' EXIT

lockstep up --detach --data "$data" --port "${PORT:-0}" --simulate 64x8,nodes-per-leaf=8,leaves-per-spine=4
export KUBECONFIG=$data/kubeconfig

lockstep top | tail -1
lockstep submit plain --name hello --workers 2 --follow -- python -c 'import socket; print("hello from", socket.gethostname())'
lockstep submit -f ../gangs/large.yaml
lockstep submit plain --name too-large --simulated --workers 33 --gpus 8 --topology spine -- true
lockstep list
lockstep explain too-large
lockstep top jobs
lockstep delete too-large large hello
