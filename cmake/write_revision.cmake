# Writes OUTPUT, a C++ source with the revision of SOURCE_DIR. An empty GIT, or one that fails, gives no revision.
if(GIT)
  execute_process(
    COMMAND ${GIT} describe --always WORKING_DIRECTORY ${SOURCE_DIR}
    OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(WRITE ${OUTPUT} "#include \"apps/common/revision.h\"

namespace atp::apps {
const char* revision() { return \"${revision}\"; }
}  // namespace atp::apps
")
