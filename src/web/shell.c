/* shell.c: see shell.h. */
#include "web/shell.h"

void pl_shell_begin(pl_html *h, const char *title, const char *under)
{
    pl_html_doctype(h);
    pl_html_open(h, PL_TAG_html);
    pl_html_attr(h, PL_ATTR_xmlns, "http://www.w3.org/1999/xhtml");
    pl_html_attr(h, PL_ATTR_lang, "en");
    pl_html_open(h, PL_TAG_head);
    pl_html_open(h, PL_TAG_meta);
    pl_html_attr(h, PL_ATTR_charset, "utf-8");
    pl_html_close(h);
    pl_html_open(h, PL_TAG_meta);
    pl_html_attr(h, PL_ATTR_name, "generator");
    pl_html_attr(h, PL_ATTR_content, PL_SHELL_GENERATOR " " PL_VERSION);
    pl_html_close(h);
    pl_html_open(h, PL_TAG_meta);
    pl_html_attr(h, PL_ATTR_name, "viewport");
    pl_html_attr(h, PL_ATTR_content, "width=device-width, initial-scale=1");
    pl_html_close(h);
    pl_html_open(h, PL_TAG_meta);
    pl_html_attr(h, PL_ATTR_name, "color-scheme");
    pl_html_attr(h, PL_ATTR_content, "light dark");
    pl_html_close(h);
    pl_html_put(h, PL_TAG_title, NULL, title);
    pl_html_sheet(h, "report.css");
    pl_html_sheet(h, "chart.css");
    pl_html_close(h);
    pl_html_open(h, PL_TAG_body);
    pl_html_open(h, PL_TAG_main);
    pl_html_open(h, PL_TAG_header);
    pl_html_put(h, PL_TAG_h1, NULL, title);
    if (under)
        pl_html_put(h, PL_TAG_p, "under", under);
    pl_html_close(h);
}

void pl_shell_end(pl_html *h)
{
    pl_html_open(h, PL_TAG_footer);
    pl_html_text(h, "Written by Plimsoll " PL_VERSION
                    ". This page is one file: no script, nothing is fetched.");
    pl_html_close(h);
    pl_html_close(h);
    pl_html_close(h);
    pl_html_close(h);
}

void pl_shell_section(pl_html *h, const char *id, const char *heading)
{
    pl_html_open(h, PL_TAG_section);
    pl_html_attr(h, PL_ATTR_id, id);
    pl_html_put(h, PL_TAG_h2, NULL, heading);
}

void pl_shell_head(pl_html *h, const char *scope, const char *class,
                   const char *text)
{
    pl_html_open(h, PL_TAG_th);
    pl_html_attr(h, PL_ATTR_scope, scope);
    if (class)
        pl_html_attr(h, PL_ATTR_class, class);
    pl_html_text(h, text);
    pl_html_close(h);
}

void pl_shell_row(pl_html *h, const char *name, const char *text)
{
    pl_html_open(h, PL_TAG_tr);
    pl_shell_head(h, "row", NULL, name);
    pl_html_put(h, PL_TAG_td, NULL, text);
    pl_html_close(h);
}

/* ---- the config ---- */

static int is_shown(const pl_config *config, int key, unsigned commands,
                    int were_set)
{
    const pl_key_info *row = pl_key_row((pl_key)key);
    return (row->commands & commands) && row->type != PL_TYPE_IGNORED &&
           pl_config_was_set(config, (pl_key)key) == were_set;
}

static void key_rows(pl_html *h, const pl_config *config, unsigned commands,
                     int were_set)
{
    enum { TEXT_BYTES = 1024 };
    pl_html_open(h, PL_TAG_table);
    pl_html_attr(h, PL_ATTR_class, "keys");
    pl_html_open(h, PL_TAG_tbody);
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char value[TEXT_BYTES], origin[TEXT_BYTES];
        if (!is_shown(config, key, commands, were_set))
            continue;
        pl_config_value_text(config, (pl_key)key, value, sizeof value);
        pl_config_origin_text(config, (pl_key)key, origin, sizeof origin);
        pl_html_open(h, PL_TAG_tr);
        pl_shell_head(h, "row", NULL, pl_key_row((pl_key)key)->name);
        pl_html_open(h, PL_TAG_td);
        pl_html_put(h, PL_TAG_code, NULL, value);
        pl_html_close(h);
        pl_html_put(h, PL_TAG_td, "origin", were_set ? origin : "");
        pl_html_close(h);
    }
    pl_html_close(h);
    pl_html_close(h);
}

void pl_shell_config(pl_html *h, const pl_config *config, unsigned commands)
{
    int set = 0;
    for (int key = 0; key < PL_KEY_COUNT; key++)
        set += is_shown(config, key, commands, 1);
    if (set)
        key_rows(h, config, commands, 1);
    else
        pl_html_put(h, PL_TAG_p, NULL, "Every key has its default.");
    pl_html_open(h, PL_TAG_details);
    pl_html_put(h, PL_TAG_summary, NULL, "Keys that have their default");
    key_rows(h, config, commands, 0);
    pl_html_close(h);
}
