# What only makes the build quicker: used if it is installed. (No other linker: these programs are small, and Debian 12's
# mold has made some that do not start, and hung.)
find_program(ATP_CCACHE ccache)
if(ATP_CCACHE)
  # Paths inside the project are hashed relative to the build folder, so that all clones of a machine share the cache.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${ATP_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
