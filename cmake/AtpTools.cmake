# What only makes the build quicker: used where it is installed, missed by nobody where it is not. (No other linker: these
# programs are small, and Debian 12's mold has made some that do not start, and hung.)
find_program(ATP_CCACHE ccache)
if(ATP_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${ATP_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ATP_CCACHE})
endif()
