# cuda.cmake: machine code for NVIDIA's cards (src/device/cuda_images.h), made by
# nvcc from the same text that drivers and tests compile: PTX for what is newer
# than nvcc, and for what has no code of its own, and machine code for the cards
# of today. nvcc takes 20 to 40 s for each; make does them side by side.
#
# PL_CUDA: ON needs nvcc; AUTO is ON for a release build where nvcc is found,
# and OFF for all others, whose tests bring a compiler of their own. Without it
# NVRTC compiles where the program runs.
set(PL_CUDA AUTO CACHE STRING
    "code for NVIDIA's cards: ON, OFF, or AUTO (release builds with nvcc)")
set(PL_CUDA_IMAGES "" CACHE STRING
    "which of this code, as PTX-80 or CUBIN-89; empty for all of it")
set(wanted ${PL_CUDA_IMAGES})
if(NOT wanted)
    set(wanted PTX-75 PTX-80 CUBIN-89 CUBIN-120)
endif()
set(images "")
if(NOT PL_CUDA STREQUAL "OFF")
    find_program(PL_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH
        PATH_SUFFIXES bin PATHS /usr/local/cuda/bin)
    mark_as_advanced(PL_NVCC)
    if(PL_NVCC AND (PL_CUDA STREQUAL "ON" OR (CMAKE_BUILD_TYPE STREQUAL
            "Release" AND NOT PL_SANITIZE AND NOT CMAKE_CROSSCOMPILING)))
        # what this nvcc knows of them: 11.8 knows no 120
        execute_process(COMMAND ${PL_NVCC} --list-gpu-code
            OUTPUT_VARIABLE known ERROR_QUIET)
        foreach(image IN LISTS wanted)
            string(REGEX REPLACE ".*-" "sm_" code ${image})
            if("${known}" MATCHES "${code}\n" OR "${known}" MATCHES
                    "${code}$")
                list(APPEND images ${image})
            endif()
        endforeach()
        if(NOT images AND PL_CUDA STREQUAL "ON")
            message(FATAL_ERROR "PL_CUDA=ON, and ${PL_NVCC} knows none of "
                "the architectures of today: 11.8 or newer does")
        elseif(NOT images)
            message(STATUS "${PL_NVCC} knows none of the architectures of "
                "today: code for CUDA's cards is compiled where the program "
                "runs, by NVRTC")
        endif()
    elseif(PL_CUDA STREQUAL "ON")
        message(FATAL_ERROR "PL_CUDA=ON, and there is no nvcc: "
            "script/setup --cuda says how to get it")
    elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
        message(STATUS "nvcc is missing: code for CUDA's cards is compiled "
            "where the program runs, by NVRTC")
    endif()
endif()

# Multiplications and additions stay apart, divisions and roots are rounded
# correctly, denormals stay: src/kernels/dialect.h. The same is in cuda_code.c.
set(nvcc_flags -fmad=false -prec-div=true -prec-sqrt=true -ftz=false)

set(cuda_c ${CMAKE_BINARY_DIR}/gpu/cuda_images.c)
set(cuda_files "")
set(cuda_rows "")
foreach(image IN LISTS images)
    string(REGEX MATCH "(.*)-(.*)" unused ${image})
    set(form ${CMAKE_MATCH_1})
    set(arch ${CMAKE_MATCH_2})
    if(form STREQUAL "PTX")
        set(file ${CMAKE_BINARY_DIR}/gpu/compute_${arch}.ptx)
        set(how -arch=compute_${arch} -ptx)
    else()
        set(file ${CMAKE_BINARY_DIR}/gpu/sm_${arch}.cubin)
        set(how -arch=sm_${arch} -cubin)
    endif()
    add_custom_command(OUTPUT ${file}
        COMMAND ${PL_NVCC} ${how} ${nvcc_flags} -x cu -o ${file} ${gpu_text}
        DEPENDS ${gpu_text} VERBATIM
        COMMENT "Code for CUDA's cards: ${image}")
    list(APPEND cuda_files ${file})
    string(APPEND cuda_rows " \\\n    X(${arch}, ${form}, \"${file}\")")
endforeach()

# .incbin, since a compiler would take minutes for these bytes as numbers
file(CONFIGURE OUTPUT ${cuda_c} CONTENT [[
#include "device/cuda_images.h"

#define IMAGES(X)@cuda_rows@

#define BYTES(arch, form, file)                                                \
    extern const unsigned char pl_image_##form##arch[];                        \
    extern const unsigned char pl_image_end_##form##arch[];                    \
    __asm__(".section .rodata\n"                                               \
            ".balign 64\n"                                                     \
            ".global pl_image_" #form #arch "\n"                               \
            ".hidden pl_image_" #form #arch "\n"                               \
            "pl_image_" #form #arch ":\n"                                      \
            ".incbin \"" file "\"\n"                                           \
            ".global pl_image_end_" #form #arch "\n"                           \
            ".hidden pl_image_end_" #form #arch "\n"                           \
            "pl_image_end_" #form #arch ":\n"                                  \
            ".byte 0\n"                                                        \
            ".text\n");
IMAGES(BYTES)

#define ROW(arch, form, file)                                                  \
    { arch, PL_CUDA_##form, pl_image_##form##arch, pl_image_end_##form##arch },
const pl_cuda_image pl_cuda_images[] = { IMAGES(ROW){ 0 } };
const size_t pl_cuda_image_count =
    sizeof pl_cuda_images / sizeof pl_cuda_images[0] - 1;
]] @ONLY)
set_source_files_properties(${cuda_c} PROPERTIES OBJECT_DEPENDS
    "${cuda_files}")
target_sources(plimsoll_core PRIVATE ${cuda_c})
