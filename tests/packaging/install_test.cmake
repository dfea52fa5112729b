# SPDX-License-Identifier: Apache-2.0
# Installs into a temporary prefix, runs the program, builds a program in C with pkg-config's flags and runs it.
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
file(REMOVE_RECURSE ${prefix})

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

file(GLOB_RECURSE pc ${prefix}/atp.pc)
cmake_path(GET pc PARENT_PATH folder)
set(ENV{PKG_CONFIG_PATH} ${folder})
run(flags ${PKG_CONFIG} --cflags --libs atp)
run(libraries ${PKG_CONFIG} --variable=libdir atp)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(ignored ${C_COMPILER} -std=c99 -o ${FOLDER}/version ${SOURCE} ${flags} -Wl,-rpath,${libraries})
run(printed ${FOLDER}/version)
require_version("${printed}" "the program in C")

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
