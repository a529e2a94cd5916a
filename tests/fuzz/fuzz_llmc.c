/* A model of llm.c from outside. Refused with a message, or one whose tensors
 * fill the file from its header to its end. */
#include "format/llmc_model.h"
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_tensors(const pl_llmc *llmc)
{
    pl_error err = { .status = PL_OK };
    uint64_t at = 0;
    for (size_t i = 0; i < PL_LLMC_TENSORS; i++) {
        pl_llmc_tensor t = pl_llmc_tensor_at(&llmc->shape, i);
        size_t count = t.layers * t.rows * t.cols;
        require(t.first == at && count > 0);
        at += count;
        float *values = malloc(count * sizeof *values);
        require(values != NULL);
        require(pl_llmc_read(llmc, t.first, count, values, &err) == PL_OK);
        free(values);
    }
    require(PL_LLMC_HEADER_BYTES +
                at * (llmc->version == PL_LLMC_F32 ? 4 : 2) ==
            pl_file_size(&llmc->file));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_error err = { .status = PL_OK };
    pl_llmc llmc;
    char path[64];
    int yes = 0;
    int fd = memfd_create("llmc", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    require(pl_llmc_is_one(path, &yes, &err) == PL_OK);
    pl_status status = pl_llmc_open(&llmc, path, &err);
    if (status) {
        require(status == PL_E_FORMAT || status == PL_E_UNSUPPORTED);
        require(err.status == status && err.text[0] != '\0');
    } else {
        require(yes);
        check_tensors(&llmc);
        pl_llmc_close(&llmc);
    }
    close(fd);
    return 0;
}
