/* memory_cgroup.c: the limits of the cgroups that enclose this process.
 *
 * /proc/self/cgroup says where the process is in each hierarchy,
 * /proc/self/mountinfo where the hierarchies are mounted, and how much of them
 * (in a container often only a part). From the process's own cgroup upwards,
 * to the top of what the mount shows, each one may set a limit. A machine may
 * have both versions mounted (hybrid); the one without the memory controller
 * has no such files. */
#include "base/memory_parts.h"
#include "base/path.h"

#include <string.h>

typedef enum version { V1, V2, VERSIONS } version;

typedef struct hierarchy {
    int present, mounted;
    char own[PL_PATH_BYTES];   /* where the process is, within the hierarchy */
    char mount[PL_PATH_BYTES]; /* the folder where a part of it is seen */
    char top[PL_PATH_BYTES];   /* which part: the cgroup that `mount` shows */
} hierarchy;

typedef struct hierarchies {
    hierarchy of[VERSIONS];
} hierarchies;

static int copy_path(char to[PL_PATH_BYTES], const char *from)
{
    size_t bytes = strlen(from);
    if (bytes >= PL_PATH_BYTES)
        return 0;
    memcpy(to, from, bytes + 1);
    while (bytes > 0 && to[bytes - 1] == '/') /* "/" becomes "" */
        to[--bytes] = '\0';
    return 1;
}

/* Whether `word` is one of a list with commas between. */
static int lists(const char *list, const char *word)
{
    size_t bytes = strlen(word);
    for (;;) {
        size_t length = strcspn(list, ",");
        if (length == bytes && memcmp(list, word, bytes) == 0)
            return 1;
        if (list[length] == '\0')
            return 0;
        list += length + 1;
    }
}

/* ---- where the process is ---- */

/* "4:memory:/path" for v1, "0::/path" for v2. */
static void note_own(void *context, char *line)
{
    static const char gone[] = " (deleted)";
    hierarchies *all = context;
    char *list = strchr(line, ':'), *path;
    if (!list || !(path = strchr(list + 1, ':')))
        return;
    *list++ = '\0';
    *path++ = '\0';
    hierarchy *h = NULL;
    if (*list == '\0' && strcmp(line, "0") == 0)
        h = &all->of[V2];
    else if (lists(list, "memory"))
        h = &all->of[V1];
    if (!h || path[0] != '/')
        return;
    size_t bytes = strlen(path), tail = sizeof gone - 1;
    if (bytes > tail && strcmp(path + bytes - tail, gone) == 0)
        path[bytes - tail] = '\0';
    h->present = copy_path(h->own, path);
}

/* ---- where the hierarchies are mounted ---- */

/* mountinfo writes blanks and backslashes as \040 and the like. */
static void decode_octal(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' &&
            from[2] >= '0' && from[2] <= '7' && from[3] >= '0' &&
            from[3] <= '7') {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 +
                         (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* The next word of a line, ended; NULL if there is none. */
static char *next_word(char **line)
{
    char *word = *line + strspn(*line, " ");
    size_t bytes = strcspn(word, " ");
    if (bytes == 0)
        return NULL;
    *line = word + bytes + (word[bytes] != '\0');
    word[bytes] = '\0';
    return word;
}

/* How many bytes of `path` name the cgroup `top`; -1 if it isn't above. */
static long covers(const char *top, const char *path)
{
    size_t bytes = strlen(top);
    if (strncmp(path, top, bytes) != 0 ||
        (path[bytes] != '\0' && path[bytes] != '/'))
        return -1;
    return (long)bytes;
}

/* Of several mounts of one hierarchy, the one that shows the process's own
 * cgroup and the most of what is above it. */
static int is_better(const hierarchy *h, const char *top)
{
    long now = covers(h->top, h->own), then = covers(top, h->own);
    if (!h->mounted)
        return 1;
    return then >= 0 && (now < 0 || then < now);
}

/* "id parent dev TOP MOUNT options tags... - TYPE source OPTIONS" */
static void note_mount(void *context, char *line)
{
    hierarchies *all = context;
    char *word[5], *type, *options, shown[PL_PATH_BYTES];
    for (int i = 0; i < 5; i++)
        if (!(word[i] = next_word(&line)))
            return;
    while ((type = next_word(&line)) && strcmp(type, "-") != 0)
        continue;
    type = next_word(&line);
    if (!type || !next_word(&line) || !(options = next_word(&line)))
        return;
    hierarchy *h = NULL;
    if (strcmp(type, "cgroup2") == 0)
        h = &all->of[V2];
    else if (strcmp(type, "cgroup") == 0 && lists(options, "memory"))
        h = &all->of[V1];
    if (!h || !h->present)
        return;
    decode_octal(word[3]);
    decode_octal(word[4]);
    if (copy_path(shown, word[3]) && is_better(h, shown) &&
        copy_path(h->mount, word[4])) {
        memcpy(h->top, shown, strlen(shown) + 1);
        h->mounted = 1;
    }
}

/* ---- what one cgroup says ---- */

typedef struct use {
    size_t limit, current, anon;
    size_t active_file, inactive_file, dirty, writeback;
} use;

static size_t less(size_t from, size_t what)
{
    return from > what ? from - what : 0;
}

/* What the kernel takes back on its own: clean pages of files. The rest stays:
 * anonymous memory and tmpfs (swap isn't counted on), locked pages, the
 * kernel's own. Slab that might be freed is taken to stay as well. */
static size_t clean_bytes(const use *u)
{
    size_t file = u->active_file + u->inactive_file;
    if (file < u->active_file)
        return 0;
    return less(less(file, u->dirty), u->writeback);
}

static size_t unreclaimable_bytes(const use *u)
{
    return u->current == PL_MEMORY_UNLIMITED ? u->anon
                                             : less(u->current, clean_bytes(u));
}

static size_t free_bytes(const use *u)
{
    return less(u->limit, unreclaimable_bytes(u));
}

static void add_v2(pl_memory_offer *offer, const char *folder, const char *name)
{
    use u = { .limit = PL_MEMORY_UNLIMITED, .current = PL_MEMORY_UNLIMITED };
    size_t high = PL_MEMORY_UNLIMITED;
    const pl_memory_key keys[] = {
        { "anon", &u.anon },
        { "active_file", &u.active_file },
        { "inactive_file", &u.inactive_file },
        { "file_dirty", &u.dirty },
        { "file_writeback", &u.writeback },
    };
    pl_memory_read_number(folder, "/memory.high", &high);
    if (high < offer->high_bytes)
        offer->high_bytes = high;
    pl_memory_read_number(folder, "/memory.max", &u.limit);
    if (u.limit == PL_MEMORY_UNLIMITED)
        return;
    pl_memory_read_number(folder, "/memory.current", &u.current);
    pl_memory_read_keys(folder, "/memory.stat", keys,
                        sizeof keys / sizeof keys[0]);
    pl_memory_add_source(offer, PL_MEMORY_CGROUP, name, u.limit,
                         unreclaimable_bytes(&u));
}

static void add_v1(pl_memory_offer *offer, const char *folder, const char *name)
{
    use u = { .limit = PL_MEMORY_UNLIMITED, .current = PL_MEMORY_UNLIMITED };
    size_t above = PL_MEMORY_UNLIMITED;
    const pl_memory_key keys[] = {
        { "hierarchical_memory_limit", &above },
        { "total_rss", &u.anon },
        { "total_active_file", &u.active_file },
        { "total_inactive_file", &u.inactive_file },
        { "total_dirty", &u.dirty },
        { "total_writeback", &u.writeback },
    };
    /* "No limit" is the largest whole number of pages. */
    const size_t unlimited = SIZE_MAX / 16;
    pl_memory_read_number(folder, "/memory.limit_in_bytes", &u.limit);
    pl_memory_read_number(folder, "/memory.usage_in_bytes", &u.current);
    pl_memory_read_keys(folder, "/memory.stat", keys,
                        sizeof keys / sizeof keys[0]);
    /* A container may not see the cgroup whose limit this is. */
    if (above < u.limit)
        u.limit = above;
    /* Memory and swap together: what is swapped out uses this one up. */
    use both = u;
    both.limit = both.current = PL_MEMORY_UNLIMITED;
    pl_memory_read_number(folder, "/memory.memsw.limit_in_bytes", &both.limit);
    pl_memory_read_number(folder, "/memory.memsw.usage_in_bytes",
                          &both.current);
    if (both.current != PL_MEMORY_UNLIMITED &&
        free_bytes(&both) < free_bytes(&u))
        u = both;
    if (u.limit < unlimited)
        pl_memory_add_source(offer, PL_MEMORY_CGROUP, name, u.limit,
                             unreclaimable_bytes(&u));
}

/* ---- from the process's own cgroup upwards ---- */

/* A path like "/../x" leads out of what this process can see. */
static int leads_out(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/..")); at += 3)
        if (at[3] == '\0' || at[3] == '/')
            return 1;
    return 0;
}

static void cut_last_part(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
}

static void walk_up(pl_memory_offer *offer, const char *root,
                    const hierarchy *h, version v)
{
    char folder[PL_PATH_BYTES], name[PL_PATH_BYTES];
    long known = covers(h->top, h->own);
    /* Where the mount shows another part, all that is known of the process is
     * that somebody gave it this view: the view's own top counts. */
    const char *below = known >= 0 ? h->own + known : "";
    if (leads_out(below) || pl_path_add(folder, root, h->mount, NULL))
        return;
    size_t least = strlen(folder);
    char mount[PL_PATH_BYTES];
    memcpy(mount, folder, least + 1);
    if (pl_path_add(folder, mount, below, NULL))
        return;
    const char *own = known >= 0 ? h->own : h->top;
    memcpy(name, own, strlen(own) + 1);
    for (;;) {
        const char *shown = name[0] ? name : "/";
        if (v == V2)
            add_v2(offer, folder, shown);
        else
            add_v1(offer, folder, shown);
        if (strlen(folder) <= least)
            break;
        cut_last_part(folder);
        cut_last_part(name);
        /* Old kernels: without this a v1 cgroup doesn't bind those below. */
        size_t hierarchical = 1;
        if (v == V1)
            pl_memory_read_number(folder, "/memory.use_hierarchy",
                                  &hierarchical);
        if (!hierarchical)
            break;
    }
}

void pl_memory_add_cgroups(pl_memory_offer *offer, const char *root)
{
    static const char *const usual[VERSIONS] = { "/sys/fs/cgroup/memory",
                                                 "/sys/fs/cgroup" };
    hierarchies all;
    char path[PL_PATH_BYTES];
    memset(&all, 0, sizeof all);
    if (pl_path_add(path, root, "/proc/self/cgroup", NULL))
        return;
    pl_memory_read_lines(path, note_own, &all);
    if (pl_path_add(path, root, "/proc/self/mountinfo", NULL))
        return;
    pl_memory_read_lines(path, note_mount, &all);
    for (int v = 0; v < VERSIONS; v++) {
        hierarchy *h = &all.of[v];
        if (!h->present)
            continue;
        if (!h->mounted)
            memcpy(h->mount, usual[v], strlen(usual[v]) + 1);
        walk_up(offer, root, h, (version)v);
    }
}
