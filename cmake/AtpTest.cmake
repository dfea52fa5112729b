# Defines test programs. Each has a timeout, so no test can block a run.
include(GoogleTest)
find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)

# atp_test(NAME SOURCES ... USES target ... [TIMEOUT seconds] [APART source ...]): a GoogleTest program whose cases are
# single tests of ctest. Their label is the name of the folder. Property tests: USES rapidcheck, #include
# <rapidcheck/gtest.h>.
function(atp_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;USES;DEFINITIONS;APART" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME label)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_USES} atp_flags GTest::gtest GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)  # for "support/..."
  target_compile_definitions(${name} PRIVATE ${arg_DEFINITIONS})
  atp_group(${name} ${arg_APART})
  gtest_discover_tests(${name} NO_PRETTY_VALUES PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS ${label} DISCOVERY_TIMEOUT 60)
endfunction()
