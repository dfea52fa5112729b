# Builds the switch inside the kernel. With ATP_XDP=AUTO, this file sets ATP_XDP to ON or OFF.
if(NOT ATP_XDP)
  return()
endif()
find_program(ATP_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14)
find_program(ATP_BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin)
find_path(ATP_LIBBPF_INCLUDE bpf/libbpf.h)
find_library(ATP_LIBBPF bpf)
if(ATP_SELF_CONTAINED)
  find_library(ATP_STATIC_BPF libbpf.a)
  find_library(ATP_STATIC_ELF libelf.a)
  find_library(ATP_STATIC_ZLIB libz.a)
  find_library(ATP_STATIC_ZSTD libzstd.a) # libelf 0.189 and later
endif()

set(missing "")
if(ATP_CLANG)
  execute_process(COMMAND ${ATP_CLANG} --print-targets OUTPUT_VARIABLE targets ERROR_QUIET)
endif()
if(NOT targets MATCHES "bpf")
  string(APPEND missing " clang for the target bpf,")
endif()
if(ATP_BPFTOOL)
  execute_process(COMMAND ${ATP_BPFTOOL} version OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE bpftool_failed)
endif()
if(NOT ATP_BPFTOOL OR bpftool_failed)
  string(APPEND missing " bpftool,")
endif()
if(ATP_LIBBPF AND EXISTS ${ATP_LIBBPF_INCLUDE}/bpf/libbpf_version.h)
  file(STRINGS ${ATP_LIBBPF_INCLUDE}/bpf/libbpf_version.h libbpf_major REGEX "LIBBPF_MAJOR_VERSION [1-9]")
endif()
if(NOT libbpf_major)
  string(APPEND missing " libbpf 1.0,")
endif()
if(ATP_SELF_CONTAINED AND NOT (ATP_STATIC_BPF AND ATP_STATIC_ELF AND ATP_STATIC_ZLIB))
  string(APPEND missing " libbpf.a, libelf.a and libz.a,")
endif()
if(missing AND ATP_XDP STREQUAL AUTO)
  message(STATUS "No switch inside the kernel: without${missing} it cannot be built")
  set(ATP_XDP OFF)
  return()
endif()
if(missing)
  message(FATAL_ERROR "ATP_XDP=ON, but these are missing:${missing}")
endif()
set(ATP_XDP ON)

add_library(atp_libbpf INTERFACE)
target_include_directories(atp_libbpf SYSTEM INTERFACE ${ATP_LIBBPF_INCLUDE})
if(ATP_SELF_CONTAINED)
  target_link_libraries(atp_libbpf INTERFACE ${ATP_STATIC_BPF} ${ATP_STATIC_ELF} ${ATP_STATIC_ZLIB}
                                             $<$<BOOL:${ATP_STATIC_ZSTD}>:${ATP_STATIC_ZSTD}>)
else()
  target_link_libraries(atp_libbpf INTERFACE ${ATP_LIBBPF})
endif()

# atp_bpf_program(TARGET NAME SOURCE): compiles SOURCE for the kernel, with its types, and gives TARGET the header
# NAME.skel.h, which contains the object.
function(atp_bpf_program target name source)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/skeletons)
  set(object ${folder}/${name}.bpf.o)
  set(skeleton ${folder}/${name}.skel.h)
  file(MAKE_DIRECTORY ${folder})
  # The kernel's headers are the same for every target, but Debian keeps some of them in a folder named after the
  # host's.
  add_custom_command(OUTPUT ${skeleton}
    COMMAND ${ATP_CLANG} -target bpf -mcpu=v3 -std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror
            -I${CMAKE_SOURCE_DIR}/src/machines -I${CMAKE_SOURCE_DIR}/src/drivers -isystem ${ATP_LIBBPF_INCLUDE} -isystem /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
            -MD -MF ${object}.d -MT ${skeleton} -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}.debug
    COMMAND ${ATP_BPFTOOL} gen object ${object} ${object}.debug # without the sections for debuggers
    COMMAND ${ATP_BPFTOOL} gen skeleton ${object} name ${name} > ${skeleton}
    DEPENDS ${source} DEPFILE ${object}.d VERBATIM
    COMMENT "Building ${name} for the kernel")
  target_sources(${target} PRIVATE ${skeleton})
  target_include_directories(${target} SYSTEM PRIVATE ${folder})
endfunction()
