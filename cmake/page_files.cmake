# page_files.cmake: the files of src/web/page as C, for src/web/page.h.
#   cmake -DPAGE=src/web/page -DC=page_files.c -P page_files.cmake
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")

file(GLOB names RELATIVE ${PAGE} ${PAGE}/*)
list(SORT names)
set(arrays "")
set(rows "")
set(count 0)
foreach(name IN LISTS names)
    string(REGEX REPLACE ".*\\." "" ending "${name}")
    if(NOT DEFINED type_${ending})
        message(FATAL_ERROR "${name}: page_files.cmake knows no such type")
    endif()
    file(READ ${PAGE}/${name} bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" bytes
        "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND arrays
        "static const unsigned char file_${count}[] = {\n${bytes}0\n};\n")
    string(APPEND rows "    { \"${name}\", \"${type_${ending}}\", "
        "file_${count}, sizeof file_${count} - 1 },\n")
    math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${C}.new "#include \"web/page.h\"

${arrays}
const pl_page_file pl_page_files[] = {
${rows}};
const size_t pl_page_file_count = ${count};
")
file(COPY_FILE ${C}.new ${C} ONLY_IF_DIFFERENT)
