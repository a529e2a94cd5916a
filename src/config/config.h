/* config.h: the settings of a run and where each came from.
 *
 * Owns the typed struct, nanoGPT's .py config files, `--key=value` and the
 * checks. Opens no file and prints nothing: the caller gives text, and a way
 * to more of it, and takes text. Later calls win, and later lines within a
 * file.
 *
 *     pl_config cfg = pl_config_make_default();
 *     pl_config_parse(&cfg, text, bytes, "config/train_x.py", &heap, &err);
 *     pl_config_override(&cfg, "--n_layer=6", PL_FOR_TRAIN, &heap, &err);
 *     pl_config_check(&cfg, &err);
 *     ... cfg.n_layer ... */
#ifndef PL_CONFIG_CONFIG_H
#define PL_CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/log.h"
#include "base/status.h"
#include "config/keys.h"
#include "config/value.h"

/* grad_checkpoint: False, True, one level for all layers, or one per layer. */
typedef enum pl_checkpointing_kind {
    PL_CHECKPOINTING_OFF,
    PL_CHECKPOINTING_ON,
    PL_CHECKPOINTING_LEVEL,
    PL_CHECKPOINTING_LIST,
} pl_checkpointing_kind;

typedef struct pl_checkpointing {
    pl_checkpointing_kind kind;
    int level;              /* of LEVEL: 0 to PL_MAX_LEVEL */
    const pl_value *levels; /* of LIST: ints, each 0 to PL_MAX_LEVEL */
    size_t count;           /* of LIST: n_layer, after pl_config_check */
} pl_checkpointing;

/* sample_prompts: one text, or a list of them. */
typedef struct pl_texts {
    const char *text;     /* of one */
    const pl_value *list; /* of a list: texts; else NULL */
    size_t count;         /* how many there are */
} pl_texts;

/* Text number `at` < count. */
const char *pl_texts_at(const pl_texts *texts, size_t at);

/* device: what was asked for, and how that was written. */
typedef struct pl_device_wish {
    pl_device_choice kind;
    int number; /* of a word with :N, else PL_NONE */
    const char *text;
} pl_device_wish;

/* A key that has no effect here: what it was set to, as Python. */
typedef struct pl_ignored {
    const char *text;
    bool literal; /* it is a literal, so another key may be made of it */
} pl_ignored;

typedef enum pl_config_source {
    PL_FROM_DEFAULT,
    PL_FROM_ARCHITECTURE, /* a default that the key `architecture` has set */
    PL_FROM_DEPTH,        /* likewise `depth`, by the rules of model/dial.h, */
    PL_FROM_MINUTES,      /* and `max_minutes`, by those and the rate here */
    PL_FROM_FILE,
    PL_FROM_COMMAND_LINE,
} pl_config_source;

typedef struct pl_config_origin {
    pl_config_source source;
    const char *name; /* of the file */
    int line, column; /* in the file, from 1; 0: of a model in a folder */
} pl_config_origin;

#define PL_FIELD_INT(key)      int64_t
#define PL_FIELD_OPTIONAL(key) int64_t
#define PL_FIELD_FLOAT(key)    double
#define PL_FIELD_FLAG(key)     bool
#define PL_FIELD_TEXT(key)     const char *
#define PL_FIELD_TEXTS(key)    pl_texts
#define PL_FIELD_CHOICE(key)   pl_##key##_choice
#define PL_FIELD_DEVICE(key)   pl_device_wish
#define PL_FIELD_LEVELS(key)   pl_checkpointing
#define PL_FIELD_IGNORED(key)  pl_ignored

/* One field per key, named as the key. Texts and lists belong to the heap
 * that pl_config_parse and pl_config_override were given. */
typedef struct pl_config {
#define PL_CONFIG_FIELD(type, key, ...) PL_FIELD_##type(key) key;
    PL_CONFIG_TABLE(PL_CONFIG_FIELD)
#undef PL_CONFIG_FIELD
    pl_config_origin origin[PL_KEY_COUNT];
    /* Not a key: the arithmetic of the checkpoint that a run goes on from, or
     * whose model is used (a pl_arithmetic); 0: there is none, or it is
     * unknown. It is what products = 'auto' means. */
    uint64_t kept_arithmetic;
} pl_config;

enum {
    PL_CONFIG_MAX_BYTES = 65536,  /* of a file, of an argument */
    PL_CONFIG_MOST_WORKERS = 256, /* of DiLoCo: each has a file of its own */
};

/* Every key at its default. */
pl_config pl_config_make_default(void);

/* Reads a nanoGPT config file, `bytes` bytes of it at `text`; `name` is what
 * messages and origins call it. PL_E_CONFIG says file, line, column, what is
 * accepted, and shows the line; what stood before it is then set already. */
PL_MUST_CHECK pl_status pl_config_parse(pl_config *cfg, const char *text,
                                        size_t bytes, const char *name,
                                        pl_heap *heap, pl_error *err);

/* What a config file may ask of the world around it. */
typedef struct pl_config_host {
    /* The text of the file at `path`; *text is NULL where there is none. */
    pl_status (*read)(void *context, const char *path, char **text,
                      size_t *bytes, pl_heap *heap, pl_error *err);
    /* A variable of the environment, or NULL. */
    const char *(*variable)(void *context, const char *name);
    void *context;
    const pl_log *log; /* may be NULL */
} pl_config_host;

/* The same for a file that may read others (from config.x import *) and the
 * environment. These are read as config files are, never run; messages and
 * origins name the file that really has the line. */
PL_MUST_CHECK pl_status pl_config_read(pl_config *cfg, const char *text,
                                       size_t bytes, const char *name,
                                       const pl_config_host *host,
                                       pl_heap *heap, pl_error *err);

/* One argument "--key=value". A string may be quoted or not; other values are
 * written as in a file. `commands` has the bits of the command that asks: a
 * key of another command, an unknown one or a missing value is PL_E_USAGE,
 * a wrong value PL_E_CONFIG. */
PL_MUST_CHECK pl_status pl_config_override(pl_config *cfg, const char *argument,
                                           unsigned commands, pl_heap *heap,
                                           pl_error *err);

/* What no key can know alone. To be called once all have been set. */
PL_MUST_CHECK pl_status pl_config_check(const pl_config *cfg, pl_error *err);

/* Tokens of an update. */
int64_t pl_config_update_tokens(const pl_config *cfg);

/* Whether what is done every `interval` updates is done after `step` of them:
 * where several workers meet every sync_interval updates (DiLoCo) there is one
 * model only then, and it is done the first time after it was due. */
bool pl_config_is_due(const pl_config *cfg, int64_t interval, uint64_t step);

/* The largest gradient_groups that the update can be cut into, a power of two;
 * every smaller one will do, too. A group is whole batches, or an equal part of
 * one. */
int64_t pl_config_most_groups(const pl_config *cfg);

/* Sets a key, as if it stood at `origin`; with `architecture` also the keys
 * that follow it (family.h) and weren't set themselves. The text and items of
 * `value` stay where they are. The message names no place. IGNORED keys take a
 * literal's value too, for which `heap` is needed. */
PL_MUST_CHECK pl_status pl_config_set(pl_config *cfg, pl_key key,
                                      const pl_value *value,
                                      pl_config_origin origin, pl_heap *heap,
                                      pl_error *err);

/* Whether a file or an argument has set it, and not a default. */
bool pl_config_was_set(const pl_config *cfg, pl_key key);
/* It isn't, any more: its value is a default's. */
void pl_config_call_default(pl_config *cfg, pl_key key);

/* The value of a key, for those who iterate. Borrowed from the config. An
 * IGNORED key yields its source as a text. */
pl_value pl_config_get(const pl_config *cfg, pl_key key);

/* The word that a CHOICE or DEVICE key was set to, or a TEXT key's text:
 * "float32". */
const char *pl_config_word(const pl_config *cfg, pl_key key);

/* Writes "n_layer"'s value as a Python literal that reads back as the same
 * value. Returns the length that it needs, as snprintf does. */
size_t pl_config_value_text(const pl_config *cfg, pl_key key, char *text,
                            size_t size);

/* Whether both hold the same value, as it would be written. */
bool pl_config_same_value(const pl_config *a, const pl_config *b, pl_key key);

/* The strongest effect of the keys in which they differ; PL_EFFECT_CALL where
 * they don't. */
pl_effect pl_config_difference(const pl_config *a, const pl_config *b);

/* "default", "architecture 'llama'", "depth 8", "max_minutes 30",
 * "config/x.py:3:1" or "command line"; returns as snprintf does. */
size_t pl_config_origin_text(const pl_config *cfg, pl_key key, char *text,
                             size_t size);

/* The keys that were set and have no effect; returns how many. */
size_t pl_config_without_effect(const pl_config *cfg, pl_key out[PL_KEY_COUNT]);

/* Takes pieces of text, in order. */
typedef void pl_config_sink(void *context, const char *text, size_t bytes);

/* The whole of docs/config.md. */
void pl_config_markdown(pl_config_sink *sink, void *context);

#endif
