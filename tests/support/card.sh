# card.sh: what the tests of cards share. Sourced behind cli.sh, with $CARD_API
# the kind of card (opencl, cuda), $CARD the folder of OpenCL's and $CUDA_CARD
# the library of CUDA's.

export XDG_CACHE_HOME="$TMP_DIR/cache"
export PLIMSOLL_LOOK_FOR_CARDS=1 # Linux knows nothing of emulated ones

# on_card COMMAND...: where that card is; what it is like is in $PL_CARD
on_card() {
    case $CARD_API in
    opencl) PL_CARD="${PL_CARD:-},blind" LD_LIBRARY_PATH=$CARD "$@" ;;
    cuda) PL_CARD="${PL_CARD:-},blind" PLIMSOLL_CUDA_DRIVER=$CUDA_CARD \
        PLIMSOLL_NVRTC=$CUDA_CARD "$@" ;;
    esac
}

# on_both COMMAND...: where both are
on_both() {
    LD_LIBRARY_PATH=$CARD PLIMSOLL_CUDA_DRIVER=$CUDA_CARD \
        PLIMSOLL_NVRTC=$CUDA_CARD PL_CARD="${PL_CARD:-},blind" "$@"
}

# same OUT_DIR OUT_DIR: the newest checkpoints are the same, byte for byte
same() {
    local file
    for file in model optimizer; do
        cmp "$1/latest/$file.safetensors" "$2/latest/$file.safetensors" ||
            fail "$1 and $2 differ in $file"
    done
}
