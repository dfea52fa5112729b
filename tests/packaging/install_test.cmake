# SPDX-License-Identifier: Apache-2.0
# Installs into a prefix, runs the program, moves the prefix, and builds the examples in C and C++ with what pkg-config
# and find_package say there. tests/examples runs them.
cmake_minimum_required(VERSION 3.22)

function(run output)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE text ERROR_VARIABLE complaint RESULT_VARIABLE status
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "`${command}` ended with ${status}:\n${text}\n${complaint}")
  endif()
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

function(require_version text what)
  if(NOT text MATCHES "(^|[^0-9.])${VERSION}($|[^0-9.])")
    message(FATAL_ERROR "${what} prints \"${text}\", without the version ${VERSION}")
  endif()
endfunction()

if(NOT PKG_CONFIG)
  message(FATAL_ERROR "pkg-config is not installed")
endif()
set(prefix ${FOLDER}/prefix)
set(moved ${FOLDER}/moved)
set(programs ${FOLDER}/programs)
file(REMOVE_RECURSE ${prefix} ${moved} ${programs})

# The documented target builds every file that is installed.
if(NINJA)
  run(inputs ${NINJA} -C ${BUILD} -t query product)
  foreach(file bin/atp libatp.so)
    if(NOT inputs MATCHES "[ /]${file}\n")
      message(FATAL_ERROR "the target `product` does not build ${file}")
    endif()
  endforeach()
endif()

run(ignored ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(printed ${prefix}/bin/atp --version)
require_version("${printed}" "the installed program")
if(EXISTS ${SOURCES}/.git AND NOT printed MATCHES "^atp ${VERSION} \\([^ ()]+\\)$")
  message(FATAL_ERROR "the installed program prints \"${printed}\", without the revision of its sources")
endif()

file(RENAME ${prefix} ${moved})
file(GLOB_RECURSE pc ${moved}/atp.pc)
cmake_path(GET pc PARENT_PATH folder)
set(ENV{PKG_CONFIG_PATH} ${folder})
run(printed ${PKG_CONFIG} --modversion atp)
require_version("${printed}" "pkg-config")
run(flags ${PKG_CONFIG} --cflags --libs atp)
run(libraries ${PKG_CONFIG} --variable=libdir atp)
separate_arguments(flags UNIX_COMMAND "${flags} -Wall -Wextra -Wpedantic -Werror -Wl,-rpath,${libraries}")
file(MAKE_DIRECTORY ${programs}/pkg-config)
run(ignored ${C_COMPILER} -std=c99 -o ${programs}/pkg-config/hello_c ${EXAMPLES}/hello.c ${flags})
run(ignored ${CXX_COMPILER} -std=c++17 -o ${programs}/pkg-config/hello_cc ${EXAMPLES}/hello.cc ${flags})

run(ignored ${CMAKE_COMMAND} -S ${EXAMPLES} -B ${programs}/find_package -D CMAKE_PREFIX_PATH=${moved}
    -D CMAKE_C_COMPILER=${C_COMPILER} -D CMAKE_CXX_COMPILER=${CXX_COMPILER})
run(ignored ${CMAKE_COMMAND} --build ${programs}/find_package)

# The program alone, with its man pages and completions, without the C library.
file(REMOVE_RECURSE ${prefix})
run(ignored ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} --component program)
run(printed ${prefix}/bin/atp --version)
file(GLOB_RECURSE libraries ${prefix}/*libatp* ${prefix}/*atp.h)
if(libraries)
  message(FATAL_ERROR "the component `program` installs ${libraries}")
endif()
foreach(file man/man1/atp.1 man/man1/atp-switch.1 bash-completion/completions/atp zsh/site-functions/_atp
             fish/vendor_completions.d/atp.fish)
  if(NOT EXISTS ${prefix}/share/${file})
    message(FATAL_ERROR "the component `program` does not install share/${file}")
  endif()
endforeach()
file(REMOVE_RECURSE ${prefix})
