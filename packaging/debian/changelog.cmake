# The package's two changelogs, packed as Debian's policy wants them: ours, and
# one that says who packaged it. Included while `version` of `source` is being
# installed to `folder`.
include(${source}/packaging/debian/maintainer.cmake)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(MAKE_DIRECTORY "${folder}")
file(WRITE "${folder}/changelog.Debian"
    "plimsoll (${version}-1) unstable; urgency=medium\n\n"
    "  * Built from the sources by CPack; changelog.gz says what is new.\n\n"
    " -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${date}\n")
file(COPY "${source}/CHANGELOG.md" DESTINATION "${folder}")
file(RENAME "${folder}/CHANGELOG.md" "${folder}/changelog")
foreach(log changelog changelog.Debian)
    file(CHMOD "${folder}/${log}" PERMISSIONS OWNER_READ OWNER_WRITE
        GROUP_READ WORLD_READ)
    execute_process(COMMAND gzip -9nf "${folder}/${log}"
        RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "gzip ${log}: ${failed}")
    endif()
endforeach()
