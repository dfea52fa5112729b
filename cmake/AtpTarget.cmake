# One target a box. Headers are included as "box/file.h"; a box's include path holds nothing but the box itself (a link
# to its folder), so "box/file.h" is found only by targets that link atp_box: the link graph is the floor plan.
set(ATP_FLOORS_DIR ${CMAKE_BINARY_DIR}/floors)

add_library(atp_flags INTERFACE)
target_compile_options(atp_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -fno-omit-frame-pointer>
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast>
  # At -O3 gcc 12 and 13 warn of overflows on paths that inlining invented, inside the standard library's own headers;
  # what these warnings are meant to find, AddressSanitizer finds in the preset `asan`.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow -Wno-array-bounds -Wno-restrict>)
if(ATP_SANITIZE)
  add_compile_options(-fsanitize=${ATP_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ATP_SANITIZE})
elseif(ATP_WARNINGS_AS_ERRORS)
  # Sanitizers rewrite expressions before gcc warns of them; the other presets judge the code as it was written.
  target_compile_options(atp_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()

# For folders whose code sets up, prints or judges: with sanitizers it compiles in half the time without optimisation.
macro(atp_need_not_be_fast)
  if(ATP_SANITIZE)
    add_compile_options(-O0)
  endif()
endmacro()

# atp_box(NAME SOURCES ... USES box ... PRIVATE_LINKS target ...): the library atp_NAME from this folder.
function(atp_box name)
  cmake_parse_arguments(arg "" "VARIANT" "SOURCES;USES;PRIVATE_LINKS;PUBLIC_LINKS;DEFINITIONS" ${ARGN})
  set(target atp_${name}${arg_VARIANT})
  set(root ${ATP_FLOORS_DIR}/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${name} SYMBOLIC)
  list(TRANSFORM arg_USES PREPEND atp_)
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    target_include_directories(${target} PUBLIC ${root})
    target_link_libraries(${target} PUBLIC ${arg_USES} ${arg_PUBLIC_LINKS} PRIVATE atp_flags ${arg_PRIVATE_LINKS})
    target_compile_definitions(${target} PUBLIC ${arg_DEFINITIONS})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${root})
    target_link_libraries(${target} INTERFACE ${arg_USES} ${arg_PUBLIC_LINKS})
    target_compile_definitions(${target} INTERFACE ${arg_DEFINITIONS})
  endif()
endfunction()
