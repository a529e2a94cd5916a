# The Debian package: `cpack -G DEB` in the build folder. It has what
# `cmake --install` brings, in Debian's places, and needs the packages of the
# libraries that the program is linked with, as dpkg-shlibdeps finds them.
# Who packages it is said to cpack as to other Debian tools: in DEBFULLNAME and
# DEBEMAIL (packaging/debian/maintainer.cmake).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME plimsoll)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "The Plimsoll authors")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE
    OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_INSTALL_CMAKE_PROJECTS
    "${CMAKE_BINARY_DIR};plimsoll;common;/"
    "${CMAKE_BINARY_DIR};plimsoll;debian;/")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# opened at run time, by `live` and `serve` alone
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libmicrohttpd12 | libmicrohttpd12t64")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-pip") # plimsoll-vocab asks it
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "GPT trainer that never runs out of memory
Trains small GPTs on an ordinary machine, from nanoGPT's config files, and
knows every byte of training, evaluation, sampling and saving before the
first step. It takes that memory once, before it begins, and never asks for
more. Text becomes tokens, tokens a model, and the model runs here, in
llama.cpp or with Hugging Face's libraries.")
set(CPACK_PROJECT_CONFIG_FILE
    ${CMAKE_SOURCE_DIR}/packaging/debian/maintainer.cmake)

install(FILES packaging/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR}
    COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${described}/zsh/site-functions/_plimsoll
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
    COMPONENT debian EXCLUDE_FROM_ALL)
install(CODE "set(source \"${CMAKE_SOURCE_DIR}\")
    set(version \"${PROJECT_VERSION}\")
    set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    string(APPEND folder \"/${CMAKE_INSTALL_DATADIR}/doc/plimsoll\")
    include(\"${CMAKE_SOURCE_DIR}/packaging/debian/changelog.cmake\")"
    COMPONENT debian EXCLUDE_FROM_ALL)

include(CPack)
