# Who packages, from DEBFULLNAME and DEBEMAIL. Without them a name that is
# nobody's: a package for others needs a real one.
if("$ENV{DEBFULLNAME}" STREQUAL "" OR "$ENV{DEBEMAIL}" STREQUAL "")
    set(CPACK_DEBIAN_PACKAGE_MAINTAINER
        "The Plimsoll authors <plimsoll@example.org>")
else()
    set(CPACK_DEBIAN_PACKAGE_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
