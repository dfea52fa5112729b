# Tools that only make the build quicker: used where they are installed, missed by nobody where they are not.
find_program(ATP_CCACHE ccache)
if(ATP_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${ATP_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ATP_CCACHE})
endif()
find_program(ATP_MOLD mold)
if(ATP_MOLD)
  add_link_options(-fuse-ld=mold)
  execute_process(COMMAND ${ATP_MOLD} --version OUTPUT_VARIABLE ATP_MOLD_VERSION)
  # Older ones can place what is to be read-only across the border of a page, and the program does not start: "cannot
  # apply additional memory protection after relocation".
  if(ATP_MOLD_VERSION MATCHES "^mold ([0-9]+)[.]" AND CMAKE_MATCH_1 LESS 2)
    add_link_options(-Wl,-z,norelro)
  endif()
endif()
