/* prepare_state.c: see prepare_state.h. Owns the names in the file. */
#include "data/prepare_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 1024, COUNT = 13 };

static const char *const row_names[COUNT] = {
    "settings",   "file",      "record",     "offset",    "inside",
    "to_val",     "documents", "text_bytes", "val_bytes", "train_tokens",
    "val_tokens", "sum",       "stamps",
};

static uint64_t *row(pl_prepare_state *s, size_t i)
{
    pl_crew_tally *t = &s->tally;
    uint64_t *const rows[COUNT] = {
        &s->settings,     &t->place.file,   &t->place.record, &t->place.offset,
        &t->in_document,  &t->mark,         &t->documents,    &t->text_bytes,
        &t->marked_bytes, &s->train_tokens, &s->val_tokens,   &t->sum,
        &s->stamps,
    };
    return rows[i];
}

pl_status pl_prepare_state_write(const pl_prepare_state *state,
                                 const char *folder, pl_error *err)
{
    pl_prepare_state copy = *state;
    char path[PL_PATH_BYTES], text[TEXT_BYTES];
    size_t used = 0;
    for (size_t i = 0; i < COUNT; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s %" PRIu64 "\n", row_names[i],
                                 *row(&copy, i));
    used += (size_t)snprintf(text + used, sizeof text - used, "end\n");
    pl_status status = pl_path_join(path, folder, PL_PREPARE_STATE_FILE, err);
    return status ? status : pl_file_replace(path, text, used, err);
}

/* "name number\n"; behind it, or NULL. */
static const char *read_row(const char *at, const char *name, uint64_t *number)
{
    size_t bytes = strlen(name), digits = 0;
    if (strncmp(at, name, bytes) != 0 || at[bytes] != ' ')
        return NULL;
    at += bytes + 1;
    *number = 0;
    for (; *at >= '0' && *at <= '9' && digits < 20; at++, digits++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (*number > (UINT64_MAX - digit) / 10)
            return NULL;
        *number = 10 * *number + digit;
    }
    return digits > 0 && *at == '\n' ? at + 1 : NULL;
}

pl_status pl_prepare_state_read(pl_prepare_state *state, const char *folder,
                                pl_prepare_found *found, pl_error *err)
{
    char path[PL_PATH_BYTES], text[TEXT_BYTES];
    size_t bytes;
    pl_file_kind kind;
    pl_prepare_state read = { 0 };
    *found = PL_PREPARE_NOTHING;
    pl_status status = pl_path_join(path, folder, PL_PREPARE_STATE_FILE, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (status || kind != PL_FILE_PLAIN)
        return status;
    status = pl_file_read_into(path, text, sizeof text, &bytes, err);
    if (status == PL_E_FORMAT)
        return PL_OK; /* too long to be one */
    if (status)
        return status;
    const char *at = text;
    for (size_t i = 0; i < COUNT && at; i++)
        at = read_row(at, row_names[i], row(&read, i));
    if (!at || strcmp(at, "end\n") != 0 || read.tally.in_document > 1 ||
        read.tally.mark > 1)
        return PL_OK;
    *found = read.settings == state->settings ? PL_PREPARE_SAME
                                              : PL_PREPARE_OTHER;
    if (*found == PL_PREPARE_SAME)
        *state = read;
    return PL_OK;
}
