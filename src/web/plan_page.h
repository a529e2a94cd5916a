/* plan_page.h: a plan as a picture and as a page of its own, which people can
 * post: no script, no request, the same bytes for the same plan. */
#ifndef PL_WEB_PLAN_PAGE_H
#define PL_WEB_PLAN_PAGE_H

#include "advise/remedies.h"
#include "advise/runplan.h"
#include "advise/savings.h"
#include "web/plan_picture.h"

typedef struct pl_plan_page {
    const pl_config *config;
    const pl_machine *machine;
    const pl_run_plan *run;
    const char *vocab_from;
    const pl_saving *fixes;
    size_t n_fixes;
    const pl_remedy *changes;
    size_t n_changes;
} pl_plan_page;

pl_plan_picture pl_plan_page_picture(const pl_plan_page *page);
void pl_plan_page_write(pl_html *h, const pl_plan_page *page);

#endif
