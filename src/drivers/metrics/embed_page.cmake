# Writes FROM as a constant of C++ into TO.
file(READ ${FROM} text)
file(WRITE ${TO} "#include \"metrics/page.h\"

namespace atp::metrics {
extern const std::string_view page = R\"PAGE(${text})PAGE\";
}
")
