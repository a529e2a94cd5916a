/* network.c: see network.h. */
#include "advise/network.h"
#include "base/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- as it is written ---- */

typedef struct unit {
    const char *name;
    double value; /* bytes per second, or seconds */
} unit;

/* "b" alone might be either: bits are spelled out, bytes are capital. */
static const unit rates[] = {
    { "kbit", 125.0 }, { "Mbit", 125e3 }, { "Gbit", 125e6 }, { "Tbit", 125e9 },
    { "kbps", 125.0 }, { "Mbps", 125e3 }, { "Gbps", 125e6 }, { "Tbps", 125e9 },
    { "kB", 1e3 },     { "MB", 1e6 },     { "GB", 1e9 },     { "TB", 1e12 },
    { NULL, 0.0 },
};
static const unit latencies[] = {
    { "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 }, { "s", 1.0 }, { NULL, 0.0 },
};

/* A number with one of the units in `length` characters, or a negative one. */
static double read_value(const char *text, size_t length, const unit *units)
{
    char number[32];
    const size_t digits = strspn(text, "0123456789.");
    char *end;
    if (digits == 0 || digits >= length || digits >= sizeof number)
        return -1.0;
    memcpy(number, text, digits);
    number[digits] = '\0';
    const double value = strtod(number, &end);
    if (*end) /* two points */
        return -1.0;
    for (; units->name; units++)
        if (strlen(units->name) == length - digits &&
            memcmp(units->name, text + digits, length - digits) == 0)
            return value * units->value;
    return -1.0;
}

pl_status pl_network_parse(pl_network *network, const char *text, pl_error *err)
{
    const size_t length = strcspn(text, ",");
    size_t rate = length;
    if (rate > 2 && memcmp(text + rate - 2, "/s", 2) == 0)
        rate -= 2;
    const double bytes = read_value(text, rate, rates);
    if (!(bytes > 0.0))
        return pl_fail(err, PL_E_USAGE,
                       "--network=%.60s: '%.*s' is no rate. Write one such as "
                       "100Mbit, 1Gbit, 25Gbit/s or 12.5GB/s, and its latency "
                       "behind a comma if it isn't 50us: --network=1Gbit,100us",
                       text, length < 60 ? (int)length : 60, text);
    *network = (pl_network){ bytes, PL_NETWORK_LATENCY };
    if (text[length] == '\0')
        return PL_OK;
    const char *latency = text + length + 1;
    const double seconds = read_value(latency, strlen(latency), latencies);
    if (!(seconds >= 0.0))
        return pl_fail(err, PL_E_USAGE,
                       "--network=%.60s: '%.60s' is no latency. Write one such "
                       "as 5us, 50us or 0.1ms, or nothing for 50us",
                       text, latency);
    network->latency_seconds = seconds;
    return PL_OK;
}

/* ---- the model ---- */

static double rounds_of(size_t ranks)
{
    double rounds = 0.0;
    while (ranks >>= 1)
        rounds += 1.0;
    return rounds;
}

/* Of something that all have, the part that each has to send. */
static double part_of(size_t ranks)
{
    return (double)(ranks - 1) / (double)ranks;
}

/* How long `bytes` of all ranks are on their way, but for the latency. */
static double travel(const pl_network *network, const pl_network_work *work,
                     double bytes)
{
    return work->uneven * part_of(work->ranks) * bytes /
           network->bytes_per_second;
}

/* What all times have in common; a message of each round is waited for. */
static pl_network_times on_the_way(const pl_network *network,
                                   const pl_network_work *work)
{
    const double latency = rounds_of(work->ranks) * network->latency_seconds;
    PL_CHECK(work->ranks > 0 && (work->ranks & (work->ranks - 1)) == 0);
    return (pl_network_times){
        .gradients = travel(network, work,
                            work->early_bytes + work->late_bytes) +
                     latency,
        .weights = travel(network, work, work->weight_bytes) + latency,
        .sums = travel(network, work, work->sum_bytes) + 2.0 * latency,
    };
}

static double added(const pl_network_work *work)
{
    return work->uneven * part_of(work->ranks) * work->add_seconds;
}

pl_network_times pl_network_update(const pl_network *network,
                                   const pl_network_work *work)
{
    pl_network_times t = on_the_way(network, work);
    t.hidden = fmin(travel(network, work, work->early_bytes),
                    work->backward_seconds);
    t.compute = work->compute_seconds + added(work);
    t.waiting = t.gradients - t.hidden + t.weights + t.sums;
    t.update = t.compute + t.waiting;
    return t;
}

pl_network_times pl_network_diloco(const pl_network *network,
                                   const pl_network_work *work, size_t interval)
{
    pl_network_times t = on_the_way(network, work);
    const double share = 1.0 / (double)interval;
    t.gradients *= share;
    t.weights *= share;
    t.sums *= share;
    t.compute = work->compute_seconds + work->all_seconds + share * added(work);
    t.waiting = t.gradients + t.weights + t.sums;
    t.update = t.compute + t.waiting;
    return t;
}

double pl_network_uneven(const size_t *elements, size_t ranks)
{
    double all = 0.0, sent = 0.0;
    PL_CHECK(ranks > 0 && (ranks & (ranks - 1)) == 0);
    for (size_t i = 0; i < ranks; i++)
        all += (double)elements[i];
    for (size_t classes = 2; classes <= ranks; classes *= 2) {
        double most = 0.0;
        for (size_t class = 0; class < classes; class ++) {
            double sum = 0.0;
            for (size_t i = class; i < ranks; i += classes)
                sum += (double)elements[i];
            most = fmax(most, sum);
        }
        sent += most;
    }
    return ranks > 1 && all > 0.0 ? sent / (part_of(ranks) * all) : 1.0;
}

int pl_network_is_worth_it(const pl_network_times *t)
{
    return t->waiting < PL_NETWORK_WORTH_IT * t->update;
}

double pl_network_efficiency(const pl_network_times *t, size_t ranks,
                             double one_seconds)
{
    return one_seconds / ((double)ranks * t->update);
}
