#!/usr/bin/env bash
# The scripts of docs/ranks.md that start a run again, as they stand on the
# page, beside an mpirun, an srun and an scontrol that pretend: they go on where
# a rank was lost, start anew where there is no checkpoint, and end where once
# more would end alike, or somebody has stopped the run.
set -eu
. tests/support/cli.sh
page=$PWD/docs/ranks.md
cd "$TMP_DIR"

# script NAME: the block of the page that has the line "# NAME: "
script() {
    awk -v name="# $1: " '
        /^```/ { if (found) exit; inside = !inside; text = ""; next }
        inside { text = text $0 "\n" }
        inside && index($0, name) == 1 { found = 1 }
        END { if (found) printf "%s", text }' "$page"
}
for name in again.sh again.sbatch; do
    script $name >$name
    [ -s $name ] || fail "$name is not in docs/ranks.md"
done

# Each call takes a line of `plan`: its exit code, and what it does before.
mkdir bin
cat >bin/mpirun <<'END'
#!/bin/bash
echo "${0##*/} $*" >>calls
read -r code does <plan || exit 99
sed -i 1d plan
eval "$does"
exit "$code"
END
cp bin/mpirun bin/srun
cat >bin/scontrol <<'END'
#!/bin/bash
echo "scontrol $*" >>calls
END
cat >bin/sleep <<'END'
#!/bin/bash
echo "sleep $*" >>slept
END
chmod +x bin/*

# ends CODE SCRIPT STEP...: it ends with that code, and each step of the plan
# was called for, none more; the calls are in $out
ends() {
    local code=$1 name=$2 got=0
    shift 2
    rm -rf out calls slept
    printf '%s\n' "$@" >plan
    # in a session of its own: it may send signals to all of its group
    PATH=$PWD/bin:$PATH setsid -w "${shell[@]}" "$name" || got=$?
    out=$(cat calls)
    [ "$got" = "$code" ] || fail "$name: exit code $got, not $code: $out"
    [ ! -s plan ] || fail "$name ended early, before $(cat plan): $out"
}

# calls N PATTERN: so many do
calls() {
    [ "$(grep -Ec -- "$2" <<<"$out")" = "$1" ] || fail "not $1 of $2: $out"
}

saves='mkdir -p out/step-00000010'
resumes='plimsoll train --resume out$'
starts='plimsoll train config/mine.py --gradient_groups=4 --out_dir=out$'

# ---- mpirun ----

shell=(sh)
ends 0 again.sh 0
calls 1 "$starts"
# lost before there is a checkpoint, and behind one
ends 0 again.sh 7 "137 $saves" 139 0
calls 2 "$starts"
calls 2 "$resumes"
[ "$(grep -c 'sleep 30' slept)" = 3 ] || fail "it didn't wait: $(cat slept)"
# mpirun has lost a machine, or a disk was full; MPICH's own codes
ends 0 again.sh "1 $saves" 9 11 0
calls 3 "$resumes"
# six times, and no more
ends 7 again.sh 7 7 7 7 7 7
# what would end alike, or was meant
for code in 2 3 4 5 6 130 138 143; do
    ends $code again.sh "$code $saves"
done
# Ctrl-C goes to all of the terminal; what mpirun makes of it is its own
for code in 0 1 7 137; do
    ends 130 again.sh "$code trap : INT; $saves; kill -INT 0"
done

# ---- Slurm ----

shell=(bash)
export SLURM_JOB_ID=77 SLURM_RESTART_COUNT=0
for code in 7 137 138; do
    ends $code again.sbatch "$code $saves"
    calls 1 "$starts"
    calls 1 '^scontrol requeue 77$'
done
for code in 0 1 2 3 4 5 6 130 143; do
    ends $code again.sbatch "$code $saves"
    calls 0 scontrol
done
# not for ever, but where the time limit is why
SLURM_RESTART_COUNT=50 ends 7 again.sbatch 7
calls 0 scontrol
SLURM_RESTART_COUNT=50 ends 138 again.sbatch 138
calls 1 '^scontrol requeue 77$'
# once more behind a checkpoint
sed -i '1i mkdir -p out/step-00000010' again.sbatch
ends 7 again.sbatch 7
calls 1 "$resumes"
calls 0 "$starts"

# ---- what they call is there ----

"$PLIMSOLL" train --help | grep -q -- '--resume' || fail "train has no --resume"
grep -Eq '^\| 7 \| another process of the run ended' \
    "$(dirname "$page")/commands.md" || fail "7 means something else"
