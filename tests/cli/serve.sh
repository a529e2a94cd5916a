#!/usr/bin/env bash
# serve: OpenAI's completions with the bits of `sample`, errors that say what is
# wrong, and a storm of rude clients that leaves nothing behind.
set -eu
. tests/support/cli.sh
storm=$STORM
work_on_disk

make_text >cats.txt
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=300 --out=bpe cats.txt
expect 0 "$PLIMSOLL" prepare --tokenizer=bpe --out=data/cats cats.txt
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --block_size=48 \
    --out_dir=out

# start KEY...: a server in the background, $pid and $port
start() {
    : >serve.log
    "$PLIMSOLL" serve out --port=0 "$@" >>serve.log 2>&1 &
    pid=$!
    local i
    for ((i = 0; i < 300; i++)); do
        port=$(sed -n 's/^serve: .*:\([0-9]*\)\/.*/\1/p' serve.log)
        [ -z "$port" ] || return 0
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    fail "no server: $(cat serve.log)"
}

# stop: Ctrl-C, and what it said
stop() {
    local got=0
    kill -INT "$pid"
    wait "$pid" || got=$?
    out=$(cat serve.log)
    [ "$got" -eq 130 ] || fail "the server ended with $got"$'\n'"$out"
}

# ask METHOD PATH [BODY [HEADER]]: the whole answer in $out
ask() {
    local body=${3:-} header=${4:-X-None: 1}
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf '%s %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n' \
        "$1" "$2" "$port" >&3
    printf '%s\r\nContent-Length: %s\r\n\r\n%s' "$header" "${#body}" \
        "$body" >&3
    out=$(tr -d '\0' <&3)
    exec 3>&-
}

complete() {
    ask POST /v1/completions "$1"
}

# texts: those of the choices in $out, one a line, as JSON has them
texts() {
    grep -o '"text": "\([^"\\]\|\\.\)*"' <<<"$out" |
        sed 's/^"text": "//; s/"$//'
}

start
says_in_log() {
    out=$(cat serve.log)
    says "$1"
}
says_in_log '^plan: 8 texts at once, prompts in parts of 48 tokens'
says_in_log '^memory: weights .* kv cache .* arena .* \+ requests up to'

# ---- what is there ----

ask GET /health
says '^HTTP/1.1 200 '
says '"status": "ok", "slots": 8, "busy_slots": 0, "requests": 0'
ask GET /v1/models
says '"object": "list", "data": \[\{"id": "out", "object": "model"'
ask GET /v1/models/out
says '^\{"id": "out"'
for page in / /serve.js /serve.css; do
    ask GET "$page"
    says '^HTTP/1.1 200 '
    says '^Content-Security-Policy: default-src .none.'
done
ask GET /nowhere
says '^HTTP/1.1 404 '
ask POST /v1/chat/completions '{}'
says '^HTTP/1.1 404 '
says 'no chat template'

# ---- the bits of sample ----

complete '{"prompt": "the cat", "max_tokens": 12, "seed": 7, "n": 3,
    "temperature": 0.8, "top_k": 5, "echo": true}'
says '"usage": \{"prompt_tokens": [0-9]+, "completion_tokens": 36, '
served=$(texts)
expect 0 "$PLIMSOLL" sample out --start='the cat' --seed=7 --num_samples=3 \
    --max_new_tokens=12 --temperature=0.8 --top_k=5
sampled=$(sed ':a;N;$!ba;s/\n-\{15\}\n/\x01/g; s/\n-\{15\}$//; s/\n/\\n/g
    s/\x01/\n/g' <<<"$out")
[ "$served" = "$sampled" ] ||
    fail "not what sample writes:"$'\n'"$served"$'\n'"$sampled"

# several prompts at once have the bits of each alone
complete '{"prompt": ["the cat", "sat on mat"], "max_tokens": 9, "seed": 3}'
both=$(texts)
complete '{"prompt": "the cat", "max_tokens": 9, "seed": 3}'
alone=$(texts)
complete '{"prompt": "sat on mat", "max_tokens": 9, "seed": 3}'
[ "$both" = "$alone"$'\n'"$(texts)" ] || fail "other bits together: $both"

# a stream has the same text, in parts
complete '{"prompt": "sat on mat", "max_tokens": 9, "seed": 3,
    "stream": true, "stream_options": {"include_usage": true}}'
says '^Content-Type: text/event-stream'
says '^data: \[DONE\]'
says '"choices": \[\], "usage": \{"prompt_tokens"'
[ "$(texts | tr -d '\n')" = "$(sed -n 2p <<<"$both")" ] ||
    fail "another text in a stream: $out"

# echo and logprobs, without a new token
complete '{"prompt": "the cat sat", "max_tokens": 0, "echo": true,
    "logprobs": 2}'
says '"text": "the cat sat", "index": 0, "logprobs": \{"tokens": \["'
says '"token_logprobs": \[null, -[0-9.e-]+'
says '"top_logprobs": \[null, \{"'
says '"finish_reason": "length"'

# ---- what is wrong is said ----

complete '{"prompt": "the cat", "max_tokens": 4000}'
says '^HTTP/1.1 400 '
says '"param": "prompt", "code": "context_length_exceeded"'
complete '{"prompt": "the cat", "logit_bias": {"5": 1}}'
says '^HTTP/1.1 400 '
says '"param": "logit_bias"'
complete '{"prompt": [999999]}'
says '"The tokens of a .prompt. are whole numbers from 0 to '
complete '{"prompt": "", "max_tokens": 1}' # from <|endoftext|>
says '"prompt_tokens": 1, "completion_tokens": 1'
ask GET /v1/completions
says '^HTTP/1.1 405 '

# ---- the storm ----

requests=400 slow=20
if [ -n "${PL_TEST_LONG:-}" ]; then
    requests=10000 slow=100
fi
expect 0 "$storm" "$port" "$requests" "$slow"
echo "$out"
before=$(awk '/VmRSS/ {print $2}' "/proc/$pid/status")
expect 0 "$storm" "$port" "$requests" "$slow"
after=$(awk '/VmRSS/ {print $2}' "/proc/$pid/status")
echo "resident: $before kB, after as many again $after kB"
complete '{"prompt": "the cat", "max_tokens": 9, "seed": 3}'
[ "$(texts)" = "$alone" ] || fail "other bits after the storm"
stop
says '^peak memory: '
if ! grep -q __asan "$PLIMSOLL"; then
    [ "$after" -lt $((before + 4096)) ] || fail "memory leaks"
    peak=$(exact 'planned (')
    planned=$(sed -n 's/.* of the \([0-9.]*\) MB that were.*/\1/p' <<<"$out")
    [ "$peak" -le "${planned%.*}999999" ] || fail "more than was planned: $out"
fi

# ---- full, closed and too small ----

start --serve_queue=1 --serve_slots=1 --token=a-long-secret
says_in_log '^serve: http://127.0.0.1:[0-9]+/\?token=a-long-secret '
ask GET /health
says '^HTTP/1.1 401 '
ask GET /health '' 'Authorization: Bearer a-long-secret'
says '"slots": 1, .* "most_requests": 1,'

# One that takes long is alone, until it goes away.
secret='Authorization: Bearer a-long-secret'
long='{"prompt": ["the", "cat"], "n": 128, "max_tokens": 40}'
exec 4<>"/dev/tcp/127.0.0.1/$port"
printf 'POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n' >&4
ask POST /v1/completions '{"prompt": "the", "max_tokens": 2}' "$secret"
says '^HTTP/1.1 200 ' # half a request is none
printf '%s\r\nContent-Length: %s\r\n\r\n%s' "$secret" "${#long}" "$long" >&4
for ((i = 0; i < 100; i++)); do
    ask GET /health '' "$secret"
    ! grep -q '"requests": 1,' <<<"$out" || break
done
ask POST /v1/completions '{"prompt": "the", "max_tokens": 2}' "$secret"
says '^HTTP/1.1 429 '
says '^Retry-After: 1'
says '"code": "queue_full"'
exec 4>&-
for ((i = 0; i < 100; i++)); do
    ask GET /health '' "$secret"
    ! grep -q '"busy_slots": 0, "requests": 0,' <<<"$out" || break
    sleep 0.1
done
ask POST /v1/completions '{"prompt": "the", "max_tokens": 2}' "$secret"
says '^HTTP/1.1 200 '
expect 1 "$PLIMSOLL" serve out --port="$port"
stop
expect 2 "$PLIMSOLL" serve out --port=0 --host=0.0.0.0
says 'token'
expect 5 "$PLIMSOLL" serve out --port=0 --memory=20MB
says 'of which .* are for requests'
