# Compiler flags that all targets share.
add_library(atp_flags INTERFACE)
target_compile_options(atp_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -fno-omit-frame-pointer>
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast>
  # At -O3 gcc 12 and 13 warn of overflows on paths that inlining invented, inside the standard library's own headers;
  # what these warnings are meant to find, AddressSanitizer finds in the preset `asan`.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow -Wno-array-bounds -Wno-restrict>)
if(ATP_SANITIZE)
  add_compile_options(-fsanitize=${ATP_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ATP_SANITIZE})
elseif(ATP_WARNINGS_AS_ERRORS)
  # Sanitizers rewrite expressions before gcc warns of them; the other presets judge the code as it was written.
  target_compile_options(atp_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()

# For folders whose code sets up, prints or checks: with sanitizers it compiles in half the time without optimisation.
macro(atp_need_not_be_fast)
  if(ATP_SANITIZE)
    add_compile_options(-O0)
  endif()
endmacro()
