/* card_nodes.c: see pl_cli_may_have_card. */
#include "base/file.h"
#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A display or 3D controller has class 0x03 on the bus. */
static void look_at_bus(void *found, const char *name)
{
    char path[PL_PATH_BYTES], text[32];
    size_t bytes;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/class", name);
    if (!pl_file_read_into(path, text, sizeof text, &bytes, NULL) &&
        strncmp(text, "0x03", 4) == 0)
        *(int *)found = 1;
}

int pl_cli_may_have_card(void)
{
    static const char *const nodes[] = { "/dev/nvidiactl", "/dev/kfd",
                                         "/dev/dri/renderD128", "/dev/dxg" };
    int found = getenv("PLIMSOLL_LOOK_FOR_CARDS") != NULL;
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        pl_file_kind kind;
        found |= !pl_file_look(nodes[i], &kind, NULL) && kind != PL_FILE_ABSENT;
    }
    if (!found &&
        pl_folder_walk("/sys/bus/pci/devices", look_at_bus, &found, NULL))
        return 1; /* nobody knows */
    return found;
}
