# Writes OUT, a C++ source with the text of FILES (separated by |) as raw strings, which can be looked up by file name.
string(REPLACE "|" ";" files "${FILES}")
set(text "// Made from files by cmake/embed.cmake.\n#include \"gyre/report/html/assets.h\"\n\n#include <array>\n\nnamespace gyre {\nnamespace {\n\n")
string(APPEND text "struct Asset {\n  std::string_view name, text;\n};\nconstexpr auto kAssets = std::to_array<Asset>({\n")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" content)
  # Removes source map comments, for which a browser's developer tools would use the network.
  string(REGEX REPLACE "(//|/[*])# sourceMappingURL=[^\n]*" "" content "${content}")
  string(APPEND text "{\"${name}\", R\"gyre_asset(${content})gyre_asset\"},\n")
endforeach()
string(APPEND text "});\n\n}  // namespace\n\nstd::string_view find_asset(std::string_view name) {\n  for (const Asset& asset : kAssets) {\n    if (asset.name == name) return asset.text;\n  }\n  return {};\n}\n\n}  // namespace gyre\n")
file(WRITE "${OUT}" "${text}")
