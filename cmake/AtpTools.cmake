# Uses ccache if it is installed. The build uses the default linker, because the programs are small. Debian 12's mold
# has produced programs that do not start, and has hung.
find_program(ATP_CCACHE ccache)
if(ATP_CCACHE)
  # ccache hashes paths inside the project relative to the build folder, so that all clones on a host share the cache.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${ATP_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
