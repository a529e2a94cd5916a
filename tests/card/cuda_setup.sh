#!/usr/bin/env bash
# script/setup --cuda: says what is here and what is missing, and installs
# nothing.
set -eu
. tests/support/cli.sh
. tests/support/card.sh

export PLIMSOLL_CUDA_DRIVER=/nonexistent PLIMSOLL_NVRTC=/nonexistent
expect 1 script/setup --cuda
says "NVIDIA's driver is missing .libcuda.so.1.: on Debian, nvidia-driver"
says 'NVRTC is missing, .*libnvrtc12'
PLIMSOLL_NVRTC=$CUDA_CARD expect 1 script/setup --cuda
says 'NVRTC is here'
says "NVIDIA's driver is missing"
PLIMSOLL_CUDA_DRIVER=$CUDA_CARD PLIMSOLL_NVRTC=$CUDA_CARD expect 0 \
    script/setup --cuda
says "NVIDIA's driver is here"
expect 2 script/setup --cuda --test
says 'usage: script/setup'
