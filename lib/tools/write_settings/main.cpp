// Writes the table of settings into lib/environment.md, whose other text stays. Not installed: the target
// settings_page runs it, after a change of engine/config/settings_table.cpp.

#include <fstream>
#include <iostream>
#include <string>

#include "engine/config/settings.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_settings PAGE\n";
    return 2;
  }
  std::ifstream page(argv[1]);
  std::string text;
  bool written = false;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `PORTOFU_")) {
      text.append(line).append("\n");
    } else if (!written) {
      text.append(portofu::settings_markdown());
      written = true;
    }
  }
  page.close();
  if (written && (std::ofstream(argv[1]) << text).flush()) return 0;
  std::cerr << argv[1] << " has no table of settings, or cannot be written\n";
  return 1;
}
