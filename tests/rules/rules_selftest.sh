#!/usr/bin/env bash
# rules_selftest.sh: the rules can fail. Plants one violation of each kind in a
# small tree of its own and expects its checker to name it; the same tree
# without it must pass.
set -uo pipefail

rules=$(cd "$(dirname "$0")" && pwd)
cc=${CC:-cc}
dir=$(mktemp -d "${TMPDIR:-/tmp}/plimsoll-rules.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failures=0
checks=0

# A tree that keeps every rule.
fresh() {
    rm -rf "$dir/tree"
    mkdir -p tree/src/{base,plan,kernels/ref,model,data,cli} tree/docs
    printf '#include "base/status.h"\n' >tree/src/base/status.c
    printf 'int pl_status_of(int x);\n' >tree/src/base/status.h
    printf 'int pl_plan(int x);\n' >tree/src/plan/plan.h
    printf '#include "kernels/ref/k.h"\n' >tree/src/kernels/ref/k.c
    printf '#include <stddef.h>\nsize_t pl_k(size_t x);\n' \
        >tree/src/kernels/ref/k.h
    printf '#include "base/status.h"\n#include "plan/plan.h"\n' \
        >tree/src/model/gpt.c
    printf 'plain prose\n' >tree/docs/a.md
}

# put FILE: standard input becomes that file of the tree
put() {
    mkdir -p "tree/$(dirname "$1")"
    cat >"tree/$1"
}

# compile FILE...: the objects where CMake puts them
compile() {
    local file
    for file; do
        mkdir -p "tree/build/x.dir/$(dirname "$file")"
        "$cc" -std=c11 -D_GNU_SOURCE -w -fno-builtin -Itree/src \
            -c "tree/$file" -o "tree/build/x.dir/$file.o" || exit 1
    done
}

# refuses WHAT MESSAGE CHECKER ARGS...: fails, and its output has MESSAGE
refuses() {
    local what=$1 message=$2 said
    shift 2
    checks=$((checks + 1))
    if said=$(bash "$rules/$1" "${@:2}" 2>&1); then
        echo "FAILED: $1 let pass: $what"
        failures=$((failures + 1))
    elif ! grep -qF -e "$message" <<<"$said"; then
        echo "FAILED: $1 refused $what without saying \"$message\":"
        printf '%s\n' "$said"
        failures=$((failures + 1))
    fi
}

accepts() {
    local what=$1 said
    shift
    checks=$((checks + 1))
    if ! said=$(bash "$rules/$1" "${@:2}" 2>&1); then
        echo "FAILED: $1 refused $what:"
        printf '%s\n' "$said"
        failures=$((failures + 1))
    fi
}

# ---- layers ----

fresh
accepts 'a clean tree' layers.sh tree/src
refuses 'an empty folder' 'no sources' layers.sh tree/docs
put src/base/up.c <<<'#include "plan/plan.h"'
refuses 'an include upwards' 'src/base/up.c:1: base (level 0) must not' \
    layers.sh tree/src
fresh
put src/kernels/ref/up.c <<<'#  include  "plan/plan.h"'
refuses 'a stranger of the same level' 'kernels (level 1) must not' \
    layers.sh tree/src
fresh
put src/data/angle.c <<<'#include <model/gpt.h>'
refuses 'an include in angle brackets' 'data (level 2) must not' \
    layers.sh tree/src
fresh
put src/attic/a.c </dev/null
put src/attic/b.c <<<'int x;'
refuses 'an unknown folder' 'src/attic is no folder' layers.sh tree/src
fresh
put src/model/a.c <<<'#include "attic/a.h"'
refuses 'an include from an unknown folder' 'src/attic is no folder' \
    layers.sh tree/src
fresh
put src/model/a.c <<<'#include "../train/train.h"'
refuses 'a way around' 'relative to src' layers.sh tree/src
put src/model/a.c <<<'#include "gpt.h"'
refuses 'an include without its folder' 'relative to src' layers.sh tree/src
put src/model/a.c <<<'#include HEADER'
refuses 'a computed include' 'can not be checked' layers.sh tree/src
fresh
put src/model/a.h <<<'#include "model/b.h"'
put src/model/b.h </dev/null
put src/model/b.c <<<'#include "model/b.h"'
accepts 'a module that needs another' layers.sh tree/src
put src/model/b.c <<<'#include "model/a.h"'
refuses 'two modules that need each other' 'src/model/a' layers.sh tree/src
put src/model/b.c <<<'#include "model/c.h"'
put src/model/c.h </dev/null
put src/model/c_more.c <<<'#include "model/a.h"'
refuses 'a ring of three, closed by a second file' 'in a ring' \
    layers.sh tree/src
fresh
put src/model/a.h </dev/null
put src/model/a.c <<<'#include "model/a_parts.h"'
put src/model/a_parts.h <<<'#include "model/a.h"'
accepts 'a module with a private header' layers.sh tree/src

# ---- messages ----

# says TEXT: a source whose message it is, as written in C
says() {
    printf 'pl_status pl_x(pl_error *err)\n{\n    %s\n}\n' \
        "return pl_fail(err, PL_E_IO, $1);" | put src/base/says.c
}

fresh
says '"cannot open %s: it is gone", path'
accepts 'a message' messages.sh tree/src
says '"it is gone. " /* not so: "." */ "Look for it", path'
accepts 'a message of two sentences' messages.sh tree/src
says 'a ? "one, %s" : "two %s (or ?: three)", path'
accepts 'a choice between messages' messages.sh tree/src
says '"it is gone.", path'
refuses 'a period at the end' 'says.c:3: a message: it ends with a period' \
    messages.sh tree/src
says 'a ? "one. " "two." : "three", path'
refuses 'a period in a choice' 'it ends with a period' messages.sh tree/src
says '"it is gone%s%s", b, c'
refuses 'fragments' 'it is glued from fragments' messages.sh tree/src
says 'text, path'
refuses 'a variable' 'its text is no literal' messages.sh tree/src
says '"it has %s", pl_units_exact(file->size_bytes).text'
accepts 'an amount in units' messages.sh tree/src
says '"byte %llu of %.*s", at, (int)bytes, text'
accepts 'a position, and a precision' messages.sh tree/src
says '"it has %" PRIu64 " bytes", size'
refuses 'a raw amount' 'it has a raw amount: it has %PRIu64 bytes' \
    messages.sh tree/src
says '"%.1f GB are free", room'
refuses 'a raw amount of GB' 'it has a raw amount' messages.sh tree/src
says '"of %zu x %s", (unsigned long long)file->size_bytes, b'
refuses 'an amount by its name' \
    'it has a raw amount: (unsigned long long)file->size_bytes' \
    messages.sh tree/src
put src/base/says.c <<<'void f(void) { pl_thrift_fail(t, "%d bytes", n); }'
refuses 'a raw amount behind a place' 'it has a raw amount: %d bytes' \
    messages.sh tree/src
put src/base/says.c <<<'static void wrong(int a, const char *fmt, ...)
{
    pl_fail(err, PL_E_IO, "%s", fmt);
}'
accepts 'a function that makes messages' messages.sh tree/src
fresh
refuses 'a tree without messages' '0 messages' messages.sh tree/src

# ---- symbols ----

# calls FILE CALL: a file of the tree that makes the call, compiled
calls() {
    printf 'extern long %s();\nlong pl_x(long a)\n{\n    return %s(a);\n}\n' \
        "$2" "$2" | put "$1"
    compile "$1"
}

# only CALL OWNER STRANGER...: the owner may, the others may not
only() {
    local call=$1 owner=$2 stranger
    fresh
    calls "src/$owner" "$call"
    accepts "$call in $owner" symbols.sh tree tree/build
    for stranger in "${@:3}"; do
        fresh
        calls "src/$stranger" "$call"
        refuses "$call in $stranger" "src/$stranger uses $call: only" \
            symbols.sh tree tree/build
    done
}

fresh
refuses 'a build without objects' 'no objects' symbols.sh tree tree/build
for call in malloc calloc realloc free mmap munmap madvise; do
    only $call base/arena.c base/status.c model/gpt.c cli/main.c
done
for call in open openat read pread write pwrite rename fsync fstat mkdir \
    unlink ftruncate; do
    only $call base/file.c base/status.c data/shard.c
done
for call in printf fprintf vfprintf puts putchar fputs fwrite exit _exit; do
    only $call cli/main.c base/log.c train/loop.c
done
only abort base/check.c base/arena.c cli/main.c
only pthread_create base/threads.c base/arena.c device/cpu.c
only json_loads base/json.c format/header.c
only clock_gettime base/clock.c train/loop.c
for call in exp log; do
    only $call kernels/ref/loss.c base/rng.c config/arith.c model/schedule.c \
        kernels/plain/loss.c kernels/ref/gemm.c train/trainer.c
done
for call in pow cos sin sincos exp2 log2 log10 logf expf powf tanhf cosf sinf \
    erff cbrt tgamma hypot; do
    for file in base/rng.c config/arith.c kernels/plain/loss.c \
        train/trainer.c; do
        fresh
        calls src/$file $call
        refuses "$call in $file" "src/$file uses $call: nobody may" \
            symbols.sh tree tree/build
    done
done
for call in qsort strtok gets sprintf strcpy strcat rand system fopen; do
    for file in base/arena.c base/file.c model/gpt.c cli/main.c; do
        fresh
        calls src/$file $call
        refuses "$call in $file" "src/$file uses $call: nobody may" \
            symbols.sh tree tree/build
    done
done
fresh
put src/model/out.c <<<'extern void *stdout; void *pl_x(void){return stdout;}'
compile src/model/out.c
refuses 'stdout below cli' 'src/model/out.c uses stdout: only cli/' \
    symbols.sh tree tree/build
fresh
calls src/model/gpt.c __printf_chk
refuses 'a fortified printf' 'uses __printf_chk: only cli/' \
    symbols.sh tree tree/build
for call in __open_2 __openat64_2; do
    fresh
    calls src/model/gpt.c $call
    refuses "a fortified $call" "uses $call: only base/file" \
        symbols.sh tree tree/build
    fresh
    calls src/base/file.c $call
    accepts "a fortified $call in base/file" symbols.sh tree tree/build
done
for call in pl_other memcpy __memcpy_chk __asan_load4 __tsan_read4 \
    __ubsan_handle_x __errno_location sqrtf; do
    fresh
    calls src/model/gpt.c $call
    accepts "$call anywhere" symbols.sh tree tree/build
done
fresh
put src/model/name.c <<<'int helper(void) { return 1; }'
compile src/model/name.c
refuses 'a shared name without pl_' 'src/model/name.c gives helper to others' \
    symbols.sh tree tree/build
put src/model/name.c <<<'static int helper(void) { return 1; }
int pl_model_x(void) { return helper(); }'
compile src/model/name.c
accepts 'a static name without pl_' symbols.sh tree tree/build
fresh
put src/model/one.c <<<'int pl_x(void) { return 1; }'
put src/data/two.c <<<'int pl_x(void) { return 2; }'
compile src/model/one.c src/data/two.c
refuses 'one name twice' 'both give pl_x' symbols.sh tree tree/build
fresh
put src/cli/main.c <<<'int main(void) { return 0; }'
compile src/cli/main.c
accepts 'main in cli' symbols.sh tree tree/build
fresh
calls src/model/gone.c malloc
rm tree/src/model/gone.c
compile src/kernels/ref/k.c
calls src/model/gpt.c memcpy
accepts 'the object of a source that is gone' symbols.sh tree tree/build

# ---- lint ----

# lines N TEXT
lines() {
    local i
    for ((i = 0; i < $1; i++)); do
        printf '%s\n' "$2"
    done
}

fresh
accepts 'a clean tree' lint.sh tree
refuses 'an empty tree' 'no sources' lint.sh tree/docs
put src/base/a.c < <(printf 'int pl_a(int x)\n{\n' && lines 71 '    x++;' &&
    printf '    return x;\n}\n')
refuses 'a long function' 'function of 72 lines' lint.sh tree
put src/base/a.c < <(printf 'int pl_a(int x)\n{\n' && lines 69 '    x++;' &&
    printf '    return x;\n}\n')
accepts 'a function of 70 lines' lint.sh tree
put src/base/a.c < <(printf 'static const int t[] = {\n' &&
    lines 200 '    1,' && printf '};\n\nint pl_a(void)\n{\n' &&
    printf '    static const int u[] = {\n' && lines 100 '        1,' &&
    printf '    };\n    return t[0] + u[0];\n}\n')
accepts 'long tables' lint.sh tree
put src/base/a.c < <(lines 601 'extern int pl_a;')
refuses 'a long file' 'more than 600 lines' lint.sh tree
put src/base/a.c < <(printf '#if 0\n#endif\n')
refuses 'disabled code' 'disabled code' lint.sh tree
put src/base/a.c < <(printf 'int\tpl_a;\n')
refuses 'a tab' 'tab' lint.sh tree
put src/base/a.c < <(printf 'int pl_a; \n')
refuses 'a trailing blank' 'blank at the end' lint.sh tree
put src/base/a.c < <(printf '/* %s */\n' "$(printf 'x%.0s' {1..75})")
refuses 'a long line' 'line of 81 columns' lint.sh tree
put src/base/a.c < <(printf '/* %s */\n' "$(printf 'é%.0s' {1..74})")
accepts '80 columns in UTF-8' lint.sh tree
put src/base/a.c < <(printf '/* https://%s */\n' "$(printf 'x%.0s' {1..90})")
accepts 'a long address' lint.sh tree
put script/x < <(printf 'a\tb\n')
refuses 'a tab in a script' 'script/x:1: tab' lint.sh tree
rm -r tree/script
for call in qsort strcpy alloca sprintf rand; do
    put src/base/a.c < <(
        printf 'int pl_a(char *x)\n{\n    return %s(x);\n}\n' $call)
    refuses "$call" "nobody calls $call" lint.sh tree
done
put src/base/a.c < <(printf '/* qsort(x) and\n * strcpy(y) */\n' &&
    printf 'const char *pl_a = "system(1)";\n')
accepts 'banned words in comments and strings' lint.sh tree
put src/base/a.c < <(printf 'int pl_grand(int x);\n')
accepts 'a name that ends like a banned one' lint.sh tree
put src/config/keys.h <<<'#define PL_TABLE(X) X(TEXT, memory, "auto")'
# compares CALL: a file of the tree with it
compares() {
    put src/model/words.c <<<"int pl_w(void)
{
    return $1;
}"
}
for call in 'strcmp(c->memory, "auto")' 'strcmp(p->config.memory, "auto")' \
    'strncmp("auto", c->memory, 4)' 'strcmp(two(c, 1),
                  c->memory)'; do
    compares "$call"
    refuses "$call" 'words.c:3: a setting is compared' lint.sh tree
done
for call in 'strcmp(c->memory_text, "auto")' 'strcmp(memory, "auto")' \
    'strcmp(name, "auto") && c->memory'; do
    compares "$call"
    accepts "$call" lint.sh tree
done
rm tree/src/model/words.c
put src/config/words.c <<<'int pl_w(void) { return strcmp(c->memory, "a"); }'
accepts 'a setting that src/config compares' lint.sh tree
put src/model/words.c <<<'int pl_w(void) { return c->eval_only; }'
refuses 'a purpose that is asked for again' 'pl_run has a purpose' lint.sh tree
rm tree/src/model/words.c
put src/cli/words.c <<<'int pl_w(void) { return c->eval_only; }'
accepts 'a command that decides the purpose' lint.sh tree
rm tree/src/cli/words.c
put src/config/keys.h <<<'#define PL_TABLE(Y) Y(TEXT, memory, "auto")'
refuses 'a table that is not found' 'no table of keys' lint.sh tree
rm -r tree/src/config
put src/base/a.h < <(printf 'size_t pl_a(void);\n')
refuses 'a header that needs another' 'src/base/a.h: does not compile' \
    lint.sh tree
fresh
for formatter in clang-format-14 clang-format; do
    if command -v $formatter >/dev/null &&
        $formatter --version | grep -q 'version 14\.'; then
        printf 'BasedOnStyle: LLVM\n' >tree/.clang-format
        put src/base/a.c <<<'int   pl_a ;'
        refuses 'bad formatting' 'src/base/a.c:1: not formatted' lint.sh tree
        break
    fi
done

# ---- tidy ----

# compiled FILE...: the tree's compile_commands.json, as CMake writes it
compiled() {
    local file between='['
    mkdir -p tree/build
    for file; do
        printf '%s\n{\n  "directory": "%s/tree/build",\n' "$between" "$dir"
        printf '  "command": "cc -std=c11 -I%s/tree/src -o x.o -c %s",\n' \
            "$dir" "$dir/tree/$file"
        printf '  "file": "%s/tree/%s"\n}' "$dir" "$file"
        between=,
    done >tree/build/compile_commands.json
    printf '\n]\n' >>tree/build/compile_commands.json
}

# says_tidy WHAT CHECK: a.c of the tree, from standard input, is refused by it
says_tidy() {
    put src/base/a.c
    refuses "$1" "[$2," tidy.sh tree tree/build
}

fresh
cp "$rules/../../.clang-tidy" tree/
refuses 'a tree that was not built' 'compile_commands.json: build' \
    tidy.sh tree tree/build
compiled src/model/gpt.c
rm tree/src/plan/plan.h
refuses 'what does not compile' 'file not found' tidy.sh tree tree/build
CLANG_TIDY=no-such-program refuses 'a machine without it' \
    'there is no no-such-program' tidy.sh tree tree/build
compiled ../elsewhere.c
refuses 'a build of something else' 'no file of' tidy.sh tree tree/build
compiled src/base/a.c src/kernels/ref/k.c
put src/base/a.c <<<'int pl_a(int x) { return x + 1; }'
accepts 'a clean tree' tidy.sh tree tree/build
says_tidy 'a null pointer that is followed' \
    clang-analyzer-core.NullDereference <<<'int pl_a(const int *x)
{
    if (!x)
        return *x;
    return 0;
}'
says_tidy 'what is read before it is written' \
    clang-analyzer-core.uninitialized.UndefReturn <<<'int pl_a(int x)
{
    int y;
    if (x)
        y = 1;
    return y;
}'
says_tidy 'the size of a pointer' \
    bugprone-sizeof-expression <<<'#include <string.h>
struct pl_s { int a, b, c; };
void pl_a(struct pl_s *x) { memset(x, 0, sizeof(x)); }'
says_tidy 'a loop that stands still' \
    bugprone-infinite-loop <<<'int pl_a(int x)
{
    int y = 0, z = 0;
    while (y < 10)
        z += x;
    return z;
}'
says_tidy 'a number that is not looked at' cert-err34-c <<<'#include <stdlib.h>
int pl_a(const char *x) { return atoi(x); }'
put src/base/a.c <<<'#include "base/a.h"
int pl_b(int x) { return pl_a(x); }'
put src/base/a.h <<<'static inline int pl_a(int x) { return x == x; }'
refuses 'what stands in a header' 'a.h:1' tidy.sh tree tree/build

# ---- words ----

fresh
accepts 'a clean tree' words.sh tree
for planted in "/wo""rk/main/x" "/ho""me/somebody/x" "/ro""ot/x" \
    "/t""mp/x" "TO""DO: later" "(FIX""ME)" "X""XX" "deb.debian"".org" \
    "https://registry"".npmjs"".org/x" "registry"".example.com"; do
    put docs/a.md <<<"see $planted"
    refuses "$planted" 'docs/a.md:1:' words.sh tree
done
put docs/a.md <<<'framework/main, mktemp x.XXXXXX, TODOS, /workbench'
accepts 'words that only look alike' words.sh tree
put tests/cli/a.sh <<<"/t""mp/x"
accepts 'the temporary folder in a test' words.sh tree

echo "$checks checks, $failures failed"
[ "$failures" -eq 0 ]
