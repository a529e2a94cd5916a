# What `cmake --install` brings: the program, its manual pages, completions,
# configs, documents, and the way to GPT-2's vocabulary. Pages and completions
# are written by tools/describe from the program's own tables.
include(GNUInstallDirs)

file(GLOB describe_sources CONFIGURE_DEPENDS tools/describe/*.c)
add_executable(describe ${describe_sources})
target_include_directories(describe PRIVATE tools)
target_compile_definitions(describe PRIVATE PL_VERSION="${PROJECT_VERSION}")
# the commands, without the program's main
target_link_libraries(describe PRIVATE
    $<FILTER:$<TARGET_OBJECTS:plimsoll>,EXCLUDE,/main\\.c\\.o$> plimsoll_core)
add_dependencies(describe plimsoll)

# Sanitizers may not be able to run where a build runs (script/test turns the
# address space's randomisation off for them), and nobody installs them.
if(PL_SANITIZE)
    return()
endif()

set(described ${CMAKE_BINARY_DIR}/share)
file(GLOB describe_templates CONFIGURE_DEPENDS packaging/completion.*)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/described
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${described}
    COMMAND describe ${described} ${CMAKE_SOURCE_DIR}/packaging
    COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/described
    DEPENDS describe ${describe_templates}
    COMMENT "Writing manual pages and completions"
    VERBATIM)
add_custom_target(descriptions ALL DEPENDS ${CMAKE_BINARY_DIR}/described)

# COMPONENT common is for everybody; `local` is left out of the Debian package
# and `debian` is in that alone.
install(TARGETS plimsoll RUNTIME COMPONENT common)
# not in the package, which would need MPI by it: who has several machines builds
if(TARGET plimsoll_mpi)
    install(TARGETS plimsoll_mpi
        LIBRARY DESTINATION lib/plimsoll COMPONENT local)
endif()
install(PROGRAMS script/vocab DESTINATION ${CMAKE_INSTALL_BINDIR}
    RENAME plimsoll-vocab COMPONENT common)
install(DIRECTORY ${described}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}
    COMPONENT common)
install(DIRECTORY ${described}/bash-completion ${described}/fish
    DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT common)
install(DIRECTORY ${described}/zsh
    DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT local)
install(DIRECTORY config DESTINATION ${CMAKE_INSTALL_DATADIR}/plimsoll
    COMPONENT common FILES_MATCHING PATTERN "*.py")
install(FILES tools/nanogpt_to_folder.py
    DESTINATION ${CMAKE_INSTALL_DATADIR}/plimsoll/tools COMPONENT common)
file(GLOB documents docs/*.md docs/*.png)
install(FILES ${documents} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs
    COMPONENT common)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT common)
install(FILES CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}
    COMPONENT local)

include(cmake/package.cmake)
