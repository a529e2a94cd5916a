/* import.c: other files that a config names, and modules. Files are read as
 * configs are; nothing is run. */
#include "config/statement.h"

#include "base/path.h"

#include <stdio.h>
#include <string.h>

enum { MODULE_BYTES = 256 };

/* ---- files ---- */

/* "a.py -> b.py -> a.py" */
static void chain_text(const pl_scope *scope, const char *path, char *text,
                       size_t size)
{
    size_t used = 0;
    for (int i = 0; i < scope->depth && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s -> ",
                                 pl_path_shown(scope->chain[i]));
    if (used < size)
        snprintf(text + used, size - used, "%s", pl_path_shown(path));
}

static pl_status check_chain(const pl_parser *parser, size_t at,
                             const char *path, pl_error *err)
{
    const pl_scope *scope = parser->scope;
    char chain[512];
    bool cycle = false;
    for (int i = 0; i < scope->depth; i++)
        cycle |= strcmp(scope->chain[i], path) == 0;
    chain_text(scope, path, chain, sizeof chain);
    if (cycle)
        return pl_lexer_fail(&parser->lexer, at, err,
                             "files that include each other: %s", chain);
    if (scope->depth == PL_MAX_CHAIN)
        return pl_lexer_fail(&parser->lexer, at, err,
                             "more than %d files inside each other: %s",
                             PL_MAX_CHAIN, chain);
    if (scope->files == PL_MAX_INCLUDED)
        return pl_lexer_fail(&parser->lexer, at, err,
                             "more than %d files are included: %s",
                             PL_MAX_INCLUDED, chain);
    return PL_OK;
}

/* The file `path` as seen from `folder`; *found whether it is there. */
static pl_status try_file(pl_parser *parser, pl_config *cfg, size_t at,
                          const char *folder, const char *path, bool *found,
                          pl_error *err)
{
    const pl_config_host *host = parser->scope->host;
    char place[PL_PATH_BYTES];
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_path_join(place, folder, path, err);
    if (status == PL_OK)
        status = host->read(host->context, place, &text, &bytes, parser->heap,
                            err);
    *found = text != NULL;
    if (status != PL_OK)
        return pl_lexer_place(&parser->lexer, at, status, err);
    if (!text)
        return PL_OK;
    status = check_chain(parser, at, place, err);
    if (status != PL_OK)
        return status;
    parser->scope->files++;
    return pl_scope_read(parser->scope, cfg, text, bytes, place, parser->heap,
                         err);
}

/* From the working folder, from that of the file, from the one around that
 * (where config/a.py names config.b, and is read from elsewhere). */
static pl_status include(pl_parser *parser, pl_config *cfg, size_t at,
                         const char *path, int up, pl_error *err)
{
    const pl_scope *scope = parser->scope;
    char folder[PL_PATH_BYTES];
    bool found = false;
    pl_status status = PL_OK;
    if (!scope->host || !scope->host->read)
        return pl_lexer_fail(&parser->lexer, at, err,
                             "no other file is read from here");
    if (up == 0)
        status = try_file(parser, cfg, at, "", path, &found, err);
    if (status != PL_OK || found)
        return status;
    status = pl_path_add(folder, scope->chain[scope->depth - 1], "", err);
    if (status != PL_OK)
        return status;
    for (int i = 0; i < (up ? up : 2); i++) {
        pl_path_cut_to_parent(folder);
        if (up && i + 1 < up)
            continue;
        status = try_file(parser, cfg, at,
                          strcmp(folder, ".") == 0 ? "" : folder, path, &found,
                          err);
        if (status != PL_OK || found)
            return status;
    }
    return pl_lexer_fail(&parser->lexer, at, err,
                         "%s is neither in the working folder nor beside this "
                         "file: what it would set is not known. Put it there, "
                         "write the settings here, or, of a library, import "
                         "by name",
                         path);
}

/* ---- imports ---- */

/* a.b.c, with dots before it that are counted in *dots. */
static pl_status read_module(pl_parser *parser, char out[MODULE_BYTES],
                             int *dots, pl_error *err)
{
    size_t used = 0;
    pl_status status = PL_OK;
    *dots = 0;
    out[0] = '\0';
    for (; status == PL_OK; status = pl_parser_advance(parser, err)) {
        size_t bytes = parser->token.end - parser->token.begin;
        if (pl_parser_sees(parser, ".") || pl_parser_sees(parser, "...")) {
            if (used == 0)
                *dots += (int)bytes;
            else
                out[used++] = '.';
        } else if (parser->token.kind == PL_TOKEN_NAME &&
                   (used == 0 || out[used - 1] == '.') &&
                   !pl_parser_sees(parser, "import")) {
            if (used + bytes + 8 > MODULE_BYTES)
                return pl_lexer_fail(&parser->lexer, parser->token.begin, err,
                                     "the name of a module is too long");
            memcpy(out + used, parser->lexer.text + parser->token.begin, bytes);
            used += bytes;
        } else {
            break;
        }
        out[used] = '\0';
    }
    return status;
}

/* Binds a name to what an import gives. One that is a key would set it. */
static pl_status bind(pl_parser *parser, pl_token name, const char *module,
                      const char *member, size_t member_bytes, pl_error *err)
{
    const pl_lexer *lexer = &parser->lexer;
    const char *text = lexer->text + name.begin;
    size_t bytes = name.end - name.begin;
    const pl_value none = pl_value_none();
    pl_variable *variable = NULL;
    char path[MODULE_BYTES + 64];
    if (pl_key_find(text, bytes) != PL_KEY_COUNT)
        return pl_lexer_fail(lexer, name.begin, err,
                             "an import would set the key '%.*s', and imports "
                             "are not run: write its value here, or from %s "
                             "import *, if that is a config file",
                             (int)bytes, text, module);
    pl_status status = pl_scope_set(parser->scope, text, bytes, &none,
                                    &variable, parser->heap, err);
    if (status != PL_OK)
        return status;
    variable->used = true;
    snprintf(path, sizeof path, "%s%s%.*s", module, member_bytes ? "." : "",
             member_bytes < 60 ? (int)member_bytes : 60, member);
    return pl_heap_text(parser->heap, &variable->module, path, strlen(path),
                        err);
}

/* "as name", if it is there. */
static pl_status read_alias(pl_parser *parser, pl_token *name, pl_error *err)
{
    if (!pl_parser_sees(parser, "as"))
        return PL_OK;
    pl_status status = pl_parser_advance(parser, err);
    if (status == PL_OK && parser->token.kind != PL_TOKEN_NAME)
        return pl_parser_refuse(parser, err);
    *name = parser->token;
    return status == PL_OK ? pl_parser_advance(parser, err) : status;
}

/* import a.b as c, d */
static pl_status import_modules(pl_parser *parser, pl_error *err)
{
    pl_status status = PL_OK;
    do {
        char module[MODULE_BYTES];
        int dots;
        pl_token name = { PL_TOKEN_NAME, 0, 0 }, whole;
        status = pl_parser_advance(parser, err);
        if (status != PL_OK)
            return status;
        whole = parser->token;
        if (whole.kind != PL_TOKEN_NAME)
            return pl_parser_refuse(parser, err);
        status = read_module(parser, module, &dots, err);
        if (status == PL_OK)
            status = read_alias(parser, &name, err);
        if (status != PL_OK)
            return status;
        if (name.end == 0) { /* import a.b binds a */
            name = whole;
            module[whole.end - whole.begin] = '\0';
        }
        status = bind(parser, name, module, "", 0, err);
    } while (status == PL_OK && pl_parser_sees(parser, ","));
    return status;
}

/* from module import a as b, (c), d */
static pl_status import_names(pl_parser *parser, const char *module,
                              pl_error *err)
{
    pl_status status = PL_OK;
    while (status == PL_OK && !pl_statement_ends(parser)) {
        pl_token member = parser->token, name = member;
        if (pl_parser_sees(parser, ",") || pl_parser_sees(parser, "(") ||
            pl_parser_sees(parser, ")")) {
            status = pl_parser_advance(parser, err);
            continue;
        }
        if (member.kind != PL_TOKEN_NAME)
            return pl_parser_refuse(parser, err);
        status = pl_parser_advance(parser, err);
        if (status == PL_OK)
            status = read_alias(parser, &name, err);
        if (status == PL_OK)
            status = bind(parser, name, module,
                          parser->lexer.text + member.begin,
                          member.end - member.begin, err);
    }
    return status;
}

pl_status pl_statement_import(pl_parser *parser, pl_config *cfg, pl_error *err)
{
    char module[MODULE_BYTES], path[MODULE_BYTES + 8];
    int dots = 0;
    size_t at = parser->token.begin;
    pl_status status;
    if (pl_parser_sees(parser, "import")) {
        status = import_modules(parser, err);
    } else {
        status = pl_parser_advance(parser, err);
        if (status == PL_OK)
            status = read_module(parser, module, &dots, err);
        if (status == PL_OK && !pl_parser_sees(parser, "import"))
            return pl_parser_refuse(parser, err);
        if (status == PL_OK)
            status = pl_parser_advance(parser, err);
        if (status != PL_OK)
            return status;
        if (!pl_parser_sees(parser, "*"))
            return import_names(parser, module, err);
        snprintf(path, sizeof path, "%s.py", module);
        for (char *c = path; c[3]; c++)
            *c = *c == '.' ? '/' : *c;
        status = pl_parser_advance(parser, err);
        if (status == PL_OK)
            status = include(parser, cfg, at, path, dots, err);
    }
    if (status == PL_OK && !pl_statement_ends(parser))
        status = pl_parser_refuse(parser, err);
    return status;
}

/* ---- exec ---- */

/* Uses up these tokens, or says what is accepted. */
static pl_status expect(pl_parser *parser, const char *const *signs,
                        size_t begin, pl_error *err)
{
    pl_status status = PL_OK;
    for (; *signs && status == PL_OK; signs++) {
        if (!pl_parser_sees(parser, *signs))
            return pl_lexer_fail(&parser->lexer, begin, err,
                                 "of exec only exec(open('FILE').read()) is "
                                 "understood, where FILE is a config");
        status = pl_parser_advance(parser, err);
    }
    return status;
}

pl_status pl_statement_exec(pl_parser *parser, pl_config *cfg, pl_error *err)
{
    static const char *const before[] = { "exec", "(", "open", "(", NULL };
    static const char *const after[] = {
        ")", ".", "read", "(", ")", ")", NULL
    };
    size_t begin = parser->token.begin;
    pl_value path;
    pl_status status = expect(parser, before, begin, err);
    if (status != PL_OK)
        return status;
    size_t at = parser->token.begin;
    status = pl_parser_expression(parser, &path, err);
    if (status == PL_OK)
        status = expect(parser, after, begin, err);
    if (status != PL_OK)
        return status;
    if (path.kind == PL_VALUE_UNKNOWN)
        return pl_fail(err, PL_E_CONFIG, "%s", path.text);
    if (path.kind != PL_VALUE_TEXT)
        return pl_lexer_fail(&parser->lexer, at, err,
                             "open() needs the name of a file, found %s",
                             pl_value_kind_name(path.kind));
    return include(parser, cfg, begin, path.text, 0, err);
}
