/* own_names.c: see own_names.h. */
#include "cli/own_names.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

const char *const *pl_own_names_find(pl_own_names *names)
{
    size_t bytes;
    *names = (pl_own_names){ .list = { NULL } };
    if (pl_file_read_into("/proc/sys/kernel/hostname", names->name,
                          sizeof names->name, &bytes, NULL))
        return NULL;
    names->name[strcspn(names->name, "\n")] = '\0';
    snprintf(names->local, sizeof names->local, "%s.local", names->name);
    names->list[0] = names->name;
    names->list[1] = names->local;
    return names->list;
}
