/* man.c: see man.h. What a command is and takes comes from its row and from
 * the table of keys; typed here is only what stands in neither. */
#include "describe/man.h"

#include "cli/command.h"
#include "describe/roff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_head(pl_sheet *page, const char *name, int section,
                     const char *summary)
{
    pl_sheet_put(page, ".\\\" Written by tools/describe from the tables of "
                       "commands and keys.\n.TH ");
    for (const char *at = name; *at; at++)
        pl_sheet_put_char(page,
                          *at >= 'a' && *at <= 'z' ? (char)(*at - 32) : *at);
    pl_sheet_put(page, " %d \"\" \"Plimsoll " PL_VERSION "\" \"%s\"\n", section,
                 section == 1 ? "User Commands" : "File Formats");
    pl_sheet_put(page, ".SH NAME\n");
    pl_roff_literal(page, name, strlen(name));
    pl_sheet_put(page, " \\- ");
    pl_roff_words(page, summary, strlen(summary));
    pl_sheet_put(page, "\n");
}

static void put_text(pl_sheet *page, const char *title, const char *text)
{
    pl_sheet_put(page, ".SH %s\n", title);
    pl_roff_text(page, text);
}

static void put_usage(pl_sheet *page, const char *name, const char *arguments)
{
    pl_sheet_put(page, ".SH SYNOPSIS\n.B ");
    pl_roff_literal(page, name, strlen(name));
    pl_sheet_put(page, "\n");
    pl_roff_literal(page, arguments, strlen(arguments));
    pl_sheet_put(page, "\n");
}

/* ---- the pages of the commands ---- */

static void put_key(pl_sheet *page, pl_key key)
{
    const pl_key_info *row = pl_key_row(key);
    pl_config standard = pl_config_make_default();
    char value[256], takes[PL_TAKES_BYTES];
    pl_config_value_text(&standard, key, value, sizeof value);
    pl_key_takes(key, takes, sizeof takes);
    pl_sheet_put(page, ".TP\n\\fB");
    pl_roff_literal(page, "--", 2);
    pl_roff_literal(page, row->name, strlen(row->name));
    pl_sheet_put(page, "=\\fR\\fI");
    pl_roff_literal(page, value, strlen(value));
    pl_sheet_put(page, "\\fR\n");
    pl_roff_words(page, row->help, strlen(row->help));
    pl_sheet_put(page, "\n.br\n(");
    pl_roff_words(page, takes, strlen(takes));
    pl_sheet_put(page, ")\n");
}

static void put_keys(pl_sheet *page, unsigned commands)
{
    pl_sheet_put(page, ".SH KEYS\nEach is shown with its default.\n");
    for (pl_key_group group = 0; group < PL_GROUP_COUNT; group++) {
        int titled = 0;
        for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
            const pl_key_info *row = pl_key_row(key);
            if (!(row->commands & commands) || row->group != group)
                continue;
            if (!titled)
                pl_sheet_put(page, ".SS %s\n", pl_key_group_title(group));
            titled = 1;
            put_key(page, key);
        }
    }
}

static void write_command(const char *folder, const pl_command *command)
{
    pl_sheet page;
    char path[256], name[128], called[128];
    snprintf(path, sizeof path, "man/man1/plimsoll-%s.1", command->name);
    snprintf(name, sizeof name, "plimsoll-%s", command->name);
    snprintf(called, sizeof called, "plimsoll %s", command->name);
    pl_sheet_open(&page, folder, path, PL_SHEET_PACKED);
    put_head(&page, name, 1, command->summary);
    put_usage(&page, called, command->arguments);
    put_text(&page, "DESCRIPTION", command->text);
    put_keys(&page, command->keys);
    pl_sheet_put(&page, ".SH SEE ALSO\n.BR plimsoll (1),\n"
                        ".BR plimsoll (5)\n");
    pl_sheet_close(&page);
}

/* ---- plimsoll(1) ---- */

/* clang-format off */
static const char about[] =
"Trains small GPTs on an ordinary machine, from nanoGPT's config files, and "
"knows\nevery byte of training, evaluation, sampling and saving before the "
"first step.\nIt takes that memory once, before it begins, and never asks for "
"more.\n\n"
"A config is a file as nanoGPT reads it; settings on the command line come "
"after it\nand win. `--help` behind a command explains it and lists its keys, "
"as its manual\npage does; `plimsoll --version` prints the version.\n";

static const char example[] =
"  plimsoll tokenizer train --vocab_size=4096 --out=data/bpe mine.txt\n"
"  plimsoll prepare --tokenizer=data/bpe --out=data/mine mine.txt\n"
"  plimsoll plan   config/demo.py --dataset=mine\n"
"  plimsoll train  config/demo.py --dataset=mine --out_dir=out\n"
"  plimsoll sample --out_dir=out --start=\"Once upon\"\n"
"  plimsoll train  --resume out --max_iters=9000\n"
"  plimsoll export out --out=mine.gguf\n";

typedef struct entry {
    const char *name, *text;
} entry;

static const entry variables[] = {
    { "PLIMSOLL_ISA",
      "the instruction set to use, if the processor has it: `base`, `avx2`, "
      "`avx512`, `avx512bf16` or `amx`; without it, the best there is" },
    { "XDG_CACHE_HOME, HOME",
      "`plimsoll` in the cache folder, or in .cache of the home folder, "
      "keeps how fast this machine was found to be" },
    { "HF_HUB_CACHE, HF_HOME",
      "where Hugging Face's libraries keep models, for `--init_from=gpt2`" },
    { "NO_COLOR", "no colours, if it is set" },
};

static const entry files[] = {
    { "PREFIX/share/plimsoll/config",
      "the configs that the examples name `config/...`: copy the folder to "
      "where you work, or give the whole name" },
    { "PREFIX/share/plimsoll/tools",
      "`nanogpt_to_folder.py`, which turns nanoGPT's ckpt.pt into a folder "
      "to train from" },
    { "PREFIX/share/doc/plimsoll",
      "README.md, and the pages that texts name `docs/...`" },
    { "data/NAME", "tokens of a dataset, written by `prepare`" },
    { "out", "checkpoints and metrics of a run: `out_dir`" },
};

static const char vocab_text[] =
"Fetches GPT-2's vocabulary, OpenAI's ranks, to FILE. `plimsoll` finds it as\n"
"`--tokenizer=gpt2` if it is named gpt2.tiktoken and lies in data/, in the\n"
"folder of the output or in this one:\n\n"
"  plimsoll-vocab data/gpt2.tiktoken\n"
"  plimsoll prepare --tokenizer=gpt2 --out=data/mine mine.txt\n\n"
"The file comes out of the Python package openai-whisper, which has it under\n"
"the MIT licence. The package is fetched with pip, not installed, and the\n"
"file is compared with a checksum. Where the right file is there already,\n"
"nothing is done.\n";
/* clang-format on */

static void put_entries(pl_sheet *page, const char *title, const entry *rows,
                        size_t count)
{
    pl_sheet_put(page, ".SH %s\n", title);
    for (size_t i = 0; i < count; i++) {
        pl_sheet_put(page, ".TP\n.B ");
        pl_roff_literal(page, rows[i].name, strlen(rows[i].name));
        pl_sheet_put(page, "\n");
        pl_roff_words(page, rows[i].text, strlen(rows[i].text));
        pl_sheet_put(page, "\n");
    }
}

static void put_exit_codes(pl_sheet *page)
{
    pl_sheet_put(page, ".SH EXIT STATUS\n");
    for (int i = 0; i < PL_STATUS_COUNT; i++) {
        const char *meaning = pl_status_meaning((pl_status)i);
        pl_sheet_put(page, ".TP\n.B %d\n", pl_status_exit_code((pl_status)i));
        pl_roff_words(page, meaning, strlen(meaning));
        pl_sheet_put(page, "\n");
    }
}

static void write_main(const char *folder)
{
    pl_sheet page;
    pl_sheet_open(&page, folder, "man/man1/plimsoll.1", PL_SHEET_PACKED);
    put_head(&page, "plimsoll", 1, "trains GPTs up to the line, never over it");
    put_usage(&page, "plimsoll", "COMMAND [CONFIG.py ...] [--key=value ...]");
    put_text(&page, "DESCRIPTION", about);
    pl_sheet_put(&page, ".SH COMMANDS\n");
    for (int i = 0; pl_commands[i]; i++) {
        const pl_command *command = pl_commands[i];
        pl_sheet_put(&page, ".TP\n.BR plimsoll\\-%s (1)\n", command->name);
        pl_roff_words(&page, command->summary, strlen(command->summary));
        pl_sheet_put(&page, "\n");
    }
    put_text(&page, "EXAMPLE", example);
    put_entries(&page, "ENVIRONMENT", variables,
                sizeof variables / sizeof variables[0]);
    put_entries(&page, "FILES", files, sizeof files / sizeof files[0]);
    put_exit_codes(&page);
    pl_sheet_put(&page, ".SH SEE ALSO\n.BR plimsoll (5),\n");
    for (int i = 0; pl_commands[i]; i++)
        pl_sheet_put(&page, ".BR plimsoll\\-%s (1),\n", pl_commands[i]->name);
    pl_sheet_put(&page, ".BR plimsoll\\-vocab (1)\n");
    pl_sheet_close(&page);
}

static void write_vocab(const char *folder)
{
    pl_sheet page;
    pl_sheet_open(&page, folder, "man/man1/plimsoll-vocab.1", PL_SHEET_PACKED);
    put_head(&page, "plimsoll-vocab", 1, "fetches GPT-2's vocabulary");
    put_usage(&page, "plimsoll-vocab", "FILE");
    put_text(&page, "DESCRIPTION", vocab_text);
    pl_sheet_put(&page, ".SH SEE ALSO\n.BR plimsoll (1),\n"
                        ".BR plimsoll\\-prepare (1)\n");
    pl_sheet_close(&page);
}

/* ---- plimsoll(5) ---- */

typedef struct gathered {
    char text[256 * 1024];
    size_t bytes;
} gathered;

static void gather(void *context, const char *text, size_t bytes)
{
    gathered *all = context;
    if (bytes >= sizeof all->text - all->bytes) {
        fprintf(stderr, "describe: the page of keys is longer than %zu bytes\n",
                sizeof all->text);
        exit(1);
    }
    memcpy(all->text + all->bytes, text, bytes);
    all->bytes += bytes;
    all->text[all->bytes] = '\0';
}

static void write_config(const char *folder)
{
    static gathered all;
    pl_sheet page;
    pl_config_markdown(gather, &all);
    pl_sheet_open(&page, folder, "man/man5/plimsoll.5", PL_SHEET_PACKED);
    put_head(&page, "plimsoll", 5, "config files of plimsoll, and all keys");
    pl_roff_markdown(&page, all.text);
    pl_sheet_put(&page, ".SH SEE ALSO\n.BR plimsoll (1),\n"
                        ".BR plimsoll\\-config (1)\n");
    pl_sheet_close(&page);
}

void pl_man_write(const char *folder)
{
    write_main(folder);
    write_vocab(folder);
    write_config(folder);
    for (int i = 0; pl_commands[i]; i++)
        write_command(folder, pl_commands[i]);
}
