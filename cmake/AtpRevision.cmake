# The library atp_revision: one source with the revision of the sources, `git describe --always`, for `atp --version`.
# Only programs link it, so a new commit compiles this source and no other. Git appends each change of HEAD to a log,
# on which the source depends. Without git or its folder, as in a release's archive, the revision is empty.
find_package(Git QUIET)
set(ATP_HEAD_LOG "")
if(GIT_FOUND AND EXISTS ${CMAKE_SOURCE_DIR}/.git)
  execute_process(
    COMMAND ${GIT_EXECUTABLE} rev-parse --path-format=absolute --git-path logs/HEAD
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(EXISTS "${log}")
    set(ATP_HEAD_LOG ${log})
  endif()
endif()
set(revision_source ${CMAKE_BINARY_DIR}/revision.cc)
add_custom_command(
  OUTPUT ${revision_source}
  COMMAND ${CMAKE_COMMAND} -DGIT=$<$<BOOL:${ATP_HEAD_LOG}>:${GIT_EXECUTABLE}> -DSOURCE_DIR=${CMAKE_SOURCE_DIR}
          -DOUTPUT=${revision_source} -P ${CMAKE_CURRENT_LIST_DIR}/write_revision.cmake
  DEPENDS ${ATP_HEAD_LOG} ${CMAKE_CURRENT_LIST_DIR}/write_revision.cmake
  VERBATIM)
add_library(atp_revision STATIC ${revision_source})
target_link_libraries(atp_revision PRIVATE atp_flags atp_apps_common)
