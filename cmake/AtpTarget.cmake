# Compiler flags that all targets share, and unity builds.

# -Wshadow reports a local variable that hides another name. In a unity build a local variable may have the name of a
# constant of another source. Only gcc has a check that permits this case.
set(ATP_SHADOW_IN_GROUPS $<$<NOT:$<CXX_COMPILER_ID:Clang>>:-Wshadow=local>)

add_library(atp_flags INTERFACE)
target_compile_options(atp_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -fno-omit-frame-pointer>
  $<$<COMPILE_LANGUAGE:C,CXX>:$<IF:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,${ATP_SHADOW_IN_GROUPS},-Wshadow>>
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast>
  # At -O3, gcc 12 and 13 report overflows in the standard library's headers on paths that exist only after inlining.
  # In the preset `asan`, AddressSanitizer finds real errors of this kind.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow -Wno-array-bounds -Wno-restrict>)
if(ATP_SANITIZE)
  add_compile_options(-fsanitize=${ATP_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ATP_SANITIZE})
elseif(ATP_WARNINGS_AS_ERRORS)
  # Not with sanitizers, which rewrite expressions before gcc checks them. The other presets check the code as written.
  target_compile_options(atp_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()

# A wheel runs on hosts without the packages of its build. fmt is header-only in every target; libbpf, libelf and zlib
# are linked statically (AtpXdp.cmake); src/machines/numeric/highway_targets.cc replaces libhwy.
option(ATP_SELF_CONTAINED "Link no shared library that is neither of the compiler, the C library nor torch" OFF)

# What makes an error in memory end the process instead of serving an attacker: writes behind the end of an array on the
# stack, or behind an object whose size a call of the C library shows; on x86-64, jumps to where no function begins. Tables
# of functions are read-only once a program or library is loaded. With sanitizers, these find more.
add_library(atp_hardening INTERFACE)
if(NOT ATP_SANITIZE)
  set(ATP_FORTIFY 2) # 3 also where the size is known only at run time
  if((CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
     OR (CMAKE_CXX_COMPILER_ID MATCHES Clang AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13))
    set(ATP_FORTIFY 3)
  endif()
  target_compile_options(atp_hardening INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong>
    # It needs optimisation, and distributions' compilers may have another value.
    $<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<CONFIG:Release,RelWithDebInfo>>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${ATP_FORTIFY}>)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(atp_hardening INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fcf-protection>)
  endif()
  target_link_options(atp_hardening INTERFACE LINKER:-z,relro,-z,now)
endif()
# Also checks of indices and of empty containers by the standard library, for modules that are not on the path of
# packets. Not in a wheel: with gcc 12 and later they need a libstdc++ that some of its hosts lack.
add_library(atp_checks INTERFACE)
if(NOT ATP_SELF_CONTAINED)
  target_compile_definitions(atp_checks INTERFACE $<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_ASSERTIONS>)
endif()

# Inline functions that no source of a machine calls also count, so machines keep them (AtpModule.cmake). Some of these
# functions need symbols that no library has, and the linker drops them.
if(ATP_COVERAGE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:--coverage>)
  add_link_options(--coverage LINKER:--gc-sections)
endif()

# For folders whose code is not on the path of packets. Without optimisation, a build with sanitizers takes half the
# time.
macro(atp_need_not_be_fast)
  if(ATP_SANITIZE)
    add_compile_options(-O0)
  elseif(CMAKE_BUILD_TYPE STREQUAL Release)
    add_compile_options(-O1)
  endif()
endmacro()

# Unity builds. A group of sources is compiled as one file, so that the compiler reads the headers of the standard
# library, GoogleTest, fmt and JSON once per group. Two sources of one target cannot define the same name in an
# anonymous namespace: rename one, or list its source under APART.
option(ATP_UNITY "Compile the sources of a target in groups, so that headers are read once per group" ON)
set(ATP_UNITY_SOURCES 8) # per group; two compilers then need at most 3 GB of memory
# Modules on the path of packets. A release compiles each of their sources by itself, so that no neighbour changes what
# the compiler inlines.
set(ATP_UNGROUPED_MODULES numeric protocol endpoint tensor net switchd switchml sim)

# atp_group(TARGET [source ...]): compiles TARGET in groups, but each source in the list by itself.
function(atp_group target)
  if(ATP_UNITY)
    # Makes groups of about equal size, so that the last group is not much smaller than the others.
    get_target_property(sources ${target} SOURCES)
    list(LENGTH sources count)
    math(EXPR groups "(${count} + ${ATP_UNITY_SOURCES} - 1) / ${ATP_UNITY_SOURCES}")
    math(EXPR size "(${count} + ${groups} - 1) / ${groups}")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

if(ATP_SELF_CONTAINED)
  find_package(HWY REQUIRED)
  add_library(atp_highway_targets STATIC ${CMAKE_SOURCE_DIR}/src/machines/numeric/highway_targets.cc)
  target_include_directories(atp_highway_targets SYSTEM PRIVATE $<TARGET_PROPERTY:hwy::hwy,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(atp_highway_targets PRIVATE atp_flags)
  set_target_properties(atp_highway_targets PROPERTIES POSITION_INDEPENDENT_CODE ON)
endif()
