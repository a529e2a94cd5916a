# gpu_source.cmake: the text of a GPU's program, which is compiled where it runs:
# the files of src/kernels that it consists of, without their #includes.
#   cmake -DROOT=src -DTEXT=gpu.cl -DC=gpu_source.c -P gpu_source.cmake
# TEXT gets it as it is, C as the bytes of pl_gpu_source.
set(parts
    kernels/dialect.h base/philox.h kernels/halves.h kernels/vmath.h
    kernels/gelu.h kernels/swiglu.h
    kernels/gpu/words.clh kernels/gpu/args.h kernels/gpu/memory.clh
    kernels/gpu/gelu.clh kernels/gpu/lanes.clh kernels/gpu/double.clh
    kernels/gpu/gemm.cl kernels/gpu/layernorm.cl kernels/gpu/rmsnorm.cl
    kernels/gpu/qk.cl kernels/gpu/glu.cl
    kernels/gpu/attention.clh kernels/gpu/attention.cl
    kernels/gpu/attention_bwd.clh kernels/gpu/attention_bwd.cl
    kernels/gpu/loss.cl kernels/gpu/embed.cl
    kernels/gpu/elementwise.cl kernels/gpu/add.cl kernels/gpu/rounding.clh
    kernels/gpu/optimizer.cl kernels/gpu/muon.cl kernels/gpu/outer.cl
    kernels/gpu/tensor.clh kernels/gpu/tensor.cl
    kernels/gpu/attention_tensor.cl kernels/gpu/attention_tensor_bwd.cl)

set(text "")
foreach(part IN LISTS parts)
    file(READ ${ROOT}/${part} one)
    string(REGEX REPLACE "#include [^\n]*" "" one "${one}")
    string(APPEND text "/* ---- ${part} ---- */\n${one}")
endforeach()
file(WRITE ${TEXT}.new "${text}")
file(COPY_FILE ${TEXT}.new ${TEXT} ONLY_IF_DIFFERENT)

file(READ ${TEXT} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes
    "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${C}.new "#include \"kernels/gpu_source.h\"

const unsigned char pl_gpu_source[] = {
${bytes}0
};
const size_t pl_gpu_source_bytes = sizeof pl_gpu_source - 1;
")
file(COPY_FILE ${C}.new ${C} ONLY_IF_DIFFERENT)
