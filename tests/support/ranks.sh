# ranks.sh: what the tests of several processes share. Sourced behind cli.sh.
# Needs no root and no network; root may run it, too.

command -v mpirun >/dev/null ||
    fail "mpirun is missing: script/setup --test installs it"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# its files of a run go where the test's own are
export OMPI_MCA_orte_tmpdir_base=$TMP_DIR
# more ranks than processors, none of them tied to one: Open MPI's options
launch=(mpirun)
mpi=MPICH
if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
    mpi='Open MPI'
    launch+=(--oversubscribe --bind-to none)
fi

# on RANKS COMMAND...: so many processes of it; one is started by no launcher
on() {
    local ranks=$1
    shift
    if [ "$ranks" -eq 1 ]; then
        "$@" </dev/null
    else
        "${launch[@]}" -n "$ranks" "$@" </dev/null
    fi
}

# in_own_mounts ARGUMENTS...: begins the test anew where it may mount a disk
# that gets full; $PL_MOUNTED is no where the system allows no such thing
in_own_mounts() {
    [ -z "${PL_MOUNTED:-}" ] || return 0
    PL_MOUNTED=no
    if unshare -rm true 2>/dev/null; then
        PL_MOUNTED=yes exec unshare -rm bash "$0" "$@"
    fi
    echo "no name spaces for users here: no disk is full"
}

# A model that is trained in a moment, in four groups.
four=(--n_layer=2 --n_head=2 --n_embd=16 --block_size=16 --batch_size=4
    --gradient_accumulation_steps=4 --gradient_groups=4 --eval_iters=3
    --eval_interval=1000000 --warmup_iters=2 --lr_decay_iters=200
    --learning_rate=1e-2 --dropout=0.1 --threads=1 --device=cpu)

# one WORD...: one of them, by chance, in $chosen
one() {
    shift $((RANDOM % $#))
    chosen=$1
}

# describe NUMBER: another config each time, in $settings; in turn all dtypes,
# families and optimizers
describe() {
    local dtypes=(float32 bfloat16 float16) families=(qwen3 gpt2 llama)
    local optimizers=(muon adamw)
    settings=("--seed=$RANDOM" "--dtype=${dtypes[$1 % 3]}"
        "--architecture=${families[($1 + $1 / 3) % 3]}"
        "--optimizer=${optimizers[$1 % 2]}")
    one float32 8bit
    settings+=("--optimizer_state=$chosen")
    one bf16 float32 bf16
    settings+=("--weights=$chosen")
    one 32 48 160
    settings+=("--n_embd=$chosen")
    one 2 4
    settings+=("--n_head=$chosen")
    one 1 2 3
    settings+=("--n_layer=$chosen")
    one 2 4
    settings+=("--batch_size=$chosen")
    one 4 8
    settings+=("--gradient_accumulation_steps=$chosen")
    one 0.0 0.1
    settings+=("--dropout=$chosen")
}

# processes MARK [RANK]: the ids of those that were started with
# PL_TEST_RUN=MARK in the environment, the launcher's as well; or of the one
# that is that rank
processes() {
    local file
    for file in $(grep -lzsx "PL_TEST_RUN=$1" /proc/[0-9]*/environ); do
        [ -z "${2:-}" ] ||
            grep -qzsEx "(OMPI_COMM_WORLD_RANK|PMI_RANK)=$2" "$file" || continue
        file=${file#/proc/}
        echo "${file%/environ}"
    done
}

# same OUT_DIR OUT_DIR: the newest checkpoints are the same, byte for byte
same() {
    local file
    for file in model optimizer; do
        cmp "$1/latest/$file.safetensors" "$2/latest/$file.safetensors" ||
            fail "$1 and $2 differ in $file"
    done
}

# timeless OUT_DIR: its metrics without what clocks say
timeless() {
    sed 's/, "step_ms": [^}]*//' "$1/metrics.jsonl"
}

milliseconds() {
    echo $(($(date +%s%N) / 1000000))
}

# pause MILLISECONDS
pause() {
    sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"
}
