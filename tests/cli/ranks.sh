#!/usr/bin/env bash
# Several processes that share a run, over sockets instead of MPI
# (tests/ranks/sockets_engine.c), so that sanitizers can look on: the bits of
# one process, also after a stop and with workers that meet now and then.
set -eu
. tests/support/cli.sh
work_on_disk

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
settings=(--dataset=cats "${tiny[@]}" --batch_size=4
    --gradient_accumulation_steps=4 --gradient_groups=4 --dropout=0.1
    --device=cpu --max_iters=4 --eval_interval=2 --keep=5)
export PLIMSOLL_COMM=$SOCKETS_ENGINE

# several N ARGUMENTS...: as N processes; $out is what rank 0 says
several() {
    local i code=0 processes=()
    rm -rf sockets
    mkdir sockets
    for ((i = $1 - 1; i >= 0; i--)); do
        OMPI_COMM_WORLD_SIZE=$1 PL_SOCKETS_FOLDER=$PWD/sockets \
            PL_SOCKETS_RANK=$i PL_SOCKETS_RANKS=$1 \
            "$PLIMSOLL" "${@:2}" >"rank$i.txt" 2>&1 &
        processes+=($!)
    done
    for i in "${processes[@]}"; do
        wait "$i" || code=$?
    done
    out=$(cat rank?.txt)
    return "$code"
}

sum() {
    (cd "$1/latest" && cat ./*.safetensors | md5sum)
}

same() {
    [ "$(sum "$1")" = "$(sum "$2")" ] || fail "$1 and $2 have other bits"
}

expect 0 "$PLIMSOLL" train "${settings[@]}" --threads=2 --out_dir=one
for ranks in 2 4; do
    several $ranks train "${settings[@]}" --threads=2 --out_dir=of$ranks ||
        fail "$out"
    says "^$ranks ranks by sockets: "
    says 'each rank sent [0-9]+ bytes per update, 0\.[0-9]+ % more'
    same one of$ranks
done

# Muon's matrices have one owner each; stopped, and gone on with on others.
muon=("${settings[@]}" --architecture=qwen3 --optimizer=muon --threads=1)
expect 0 "$PLIMSOLL" train "${muon[@]}" --out_dir=muon
several 4 train "${muon[@]}" --max_iters=2 --out_dir=moved || fail "$out"
several 2 train --resume moved --max_iters=4 || fail "$out"
same muon moved

# Workers.
several 4 train "${settings[@]}" --sync_interval=2 --out_dir=workers ||
    fail "$out"
several 4 train "${settings[@]}" --sync_interval=2 --threads=2 \
    --grad_checkpoint=3 --fit=exact --out_dir=again || fail "$out"
same workers again

# A launcher and an engine that don't know each other: nobody trains alone.
rm -rf sockets
mkdir sockets
OMPI_COMM_WORLD_SIZE=4 PL_SOCKETS_FOLDER=$PWD/sockets PL_SOCKETS_RANK=0 \
    PL_SOCKETS_RANKS=1 expect 7 "$PLIMSOLL" train "${settings[@]}" \
    --gradient_groups=1 --out_dir=alone
says 'the launcher has started 4 processes, and sockets finds 1 of them: '
says 'Start with that MPI.s own mpirun, or under srun with the --mpi that'
says 'the run had not begun'
says_not 'nan'
[ ! -e alone ] || fail "it has trained alone"
# one process within a launcher's step is one, whatever started it
OMPI_COMM_WORLD_SIZE=1 SLURM_STEP_NUM_TASKS=4 PL_SOCKETS_RANKS=1 \
    PL_SOCKETS_RANK=0 PL_SOCKETS_FOLDER=$PWD/sockets \
    expect 0 "$PLIMSOLL" train "${settings[@]}" --out_dir=single
says_not 'nan'

# Who is another one is named.
! several 2 train "${settings[@]}" --gradient_groups=1 || fail 'too few groups'
says '--gradient_groups=2 the run has the same bits'
