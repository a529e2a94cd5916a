/* markdown.c: docs/config.md, written from the table. */
#include "config/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const char head[] =
"# Configuration\n"
"\n"
"<!-- Written by `plimsoll config --markdown > docs/config.md`: change the\n"
"table in src/config/keys.h or the text in src/config/markdown.c. -->\n"
"\n"
"A run is described by keys. Each has a default, a config file changes some\n"
"of them, and `--key=value` changes them last:\n"
"\n"
"```\n"
"plimsoll train config/train_shakespeare_char.py --n_layer=4 --dropout=0.1\n"
"```\n"
"\n"
"A later value wins, within a file and among files; the command line wins\n"
"over all files, wherever it stands. `plimsoll config FILE --key=value`\n"
"prints the final values and where each came from.\n"
"\n"
"## Files\n"
"\n"
"Config files are nanoGPT's. They are Python, of which the following is\n"
"understood. They are read, and nothing in them is run.\n"
"\n"
"```python\n"
"\"\"\"strings that stand alone, comments and print(...) are skipped\"\"\"\n"
"import time\n"
"from config.base import *                  # config/base.py, likewise\n"
"exec(open('config/more.py').read())        # the same\n"
"\n"
"batch_size = 12                            # a whole number\n"
"gradient_accumulation_steps = 5 * 8        # + - * / // % ** << >> & | ^ ~\n"
"max_iters = 600_000; eval_interval = 1000  # several on a line\n"
"lr_decay_iters = max_iters                 # a key: the value it has by now\n"
"learning_rate = 6e-4                       # a float; 1 will do as 1.0\n"
"depth = 12                                 # a variable\n"
"n_layer = n_head = depth\n"
"beta1, beta2 = 0.9, 0.95\n"
"n_embd = 64 * depth if depth < 24 else 1600\n"
"warmup_iters = int(0.01 * max_iters)       # float str bool min max round\n"
"                                           # abs len sum math.sqrt ...\n"
"batch_size *= 2\n"
"out_dir = f'out-{dataset}-{depth}'         # ''' r'' f'' + % .format\n"
"seed = int(os.environ.get('SEED', '1337'))\n"
"eval_batch_size = None\n"
"grad_checkpoint = [0] * 6 + [3] * 6        # a list of whole numbers\n"
"wandb_run_name = 'run-' + str(time.time()) # without effect: anything\n"
"assert n_embd % n_head == 0\n"
"```\n"
"\n"
"- An expression that has no value without being run (a clock, a function of\n"
"  your own) is an error only if a key with an effect needs the value. The\n"
"  error names its place.\n"
"- A name that is no key is a variable. A variable that nothing uses was\n"
"  probably meant to be a key: it stops the run, and the error names the\n"
"  nearest key. `wandb_*` may have any name.\n"
"- Included files are looked for in the working folder, beside the file that\n"
"  names them, and in the folder around that. They may be nested 8 deep, and\n"
"  there may be 16 in all. An included file that is not there stops the run,\n"
"  as does an import of a name that is a key. Other imports are skipped;\n"
"  `os`, `time`, `math` and `torch` need none, as in nanoGPT.\n"
"- `if`, loops, functions and dictionaries are refused.\n"
"- `/` gives a float, so `batch_size = 64 / 4` is refused; `64 // 4` is 16.\n"
"- Whole numbers have 64 bits, and going over is an error. Strings have at\n"
"  most 65536 bytes, lists 10000 items.\n"
"- Wrong types and values out of range stop the run.\n"
"- Any key may be in any file, so that one file serves all commands.\n"
"- A file has at most 65536 bytes of UTF-8.\n"
"\n"
"## Arguments\n"
"\n"
"`--key=value`, or `--key value`, takes the same values as a file. Strings\n"
"need no quotes: `--out_dir=out-small`, `--start=\"It is a truth\"`. Flags\n"
"need a value: `--eval_only=True`. A value that begins with `--`, or is the\n"
"name of a config file, is written with `=`. Everything behind `--` is the\n"
"name of a file or folder. A key that the command does not read is refused.\n"
"\n"
"## Keys\n"
"\n"
"The column *read by* says which commands take the key as an argument;\n"
"`explain` and `bench` take what `train` takes. The column *in a run* says\n"
"what another value does to a run that goes on from a checkpoint (`--resume`,\n"
"`init_from = 'resume'`):\n"
"\n";

static const char levels[] =
"\n"
"`grad_checkpoint` chooses what a layer keeps for its backward pass. At level\n"
"0 it keeps everything; at 1 everything but layernorms and GELUs; at 2 it\n"
"doesn't keep the MLP's hidden layer either; at 3, or `True`, it keeps its\n"
"input only. `False` leaves the choice between 0 and 1 to the planner. A list\n"
"has one level per layer, the first layer first. The results of the run are\n"
"the same, to the bit, at every level.\n";

static const char consents[] =
"\n"
"These keys allow what is refused otherwise. Each holds for the one command\n"
"that it is given to, and no checkpoint keeps it.\n";

static const char ignored[] =
"\n"
"These keys mean nothing here. They are accepted, whatever the expression, so\n"
"that nanoGPT's files can be used as they are, and the run says so once.\n";
/* clang-format on */

typedef struct page {
    pl_config_sink *sink;
    void *context;
} page;

PL_PRINTF(2, 3)
static void put(const page *out, const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    int bytes = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (bytes > 0)
        out->sink(out->context, line,
                  (size_t)bytes < sizeof line ? (size_t)bytes
                                              : sizeof line - 1);
}

static void put_row(const page *out, const pl_config *cfg, pl_key key)
{
    const pl_key_info *row = pl_key_row(key);
    char value[PL_VALUE_BRIEF_BYTES], takes[PL_TAKES_BYTES];
    char readers[PL_COMMANDS_BYTES];
    pl_config_value_text(cfg, key, value, sizeof value);
    pl_key_takes(key, takes, sizeof takes);
    pl_key_commands(key, readers, sizeof readers);
    put(out, "| `%s` | `%s` | %s | %s | %s | %s |\n", row->name, value, takes,
        readers, pl_effect_name(row->effect), row->help);
}

void pl_config_markdown(pl_config_sink *sink, void *context)
{
    const page out = { sink, context };
    pl_config cfg = pl_config_make_default();
    sink(context, head, strlen(head));
    for (pl_effect effect = 0; effect < PL_EFFECT_COUNT; effect++)
        put(&out, "- %s: %s\n", pl_effect_name(effect),
            pl_effect_meaning(effect));
    for (pl_key_group group = 0; group < PL_GROUP_COUNT; group++) {
        put(&out, "\n### %s\n", pl_key_group_title(group));
        if (group == PL_GROUP_CONSENT)
            sink(context, consents, strlen(consents));
        if (group == PL_GROUP_IGNORED)
            sink(context, ignored, strlen(ignored));
        put(&out, "\n| key | default | takes | read by | in a run | meaning |\n"
                  "|---|---|---|---|---|---|\n");
        for (pl_key key = 0; key < PL_KEY_COUNT; key++)
            if (pl_key_row(key)->group == group)
                put_row(&out, &cfg, key);
        if (group == PL_GROUP_MACHINE)
            sink(context, levels, strlen(levels));
    }
}
