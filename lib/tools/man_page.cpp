#include "lib/tools/man_page.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace portofu::tools {
namespace {

std::string whole_page(const CLI::App& app, const ManPage& page) {
  std::string text = "NAME\n    " + page.name + " - " + page.sentence + "\n\nSYNOPSIS\n    " + page.name + ' ' +
                     page.synopsis + "\n\nDESCRIPTION\n" + page.description + "\nOPTIONS\n";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() && option->get_snames().empty()) continue;
    text += "    " + option->get_name(false, true);
    if (option->get_items_expected_max() > 0) text += ' ' + option->get_option_text();
    text += "\n        " + option->get_description() + '\n';
  }
  return text + (page.rest.empty() ? "" : '\n' + page.rest);
}

}  // namespace

int parse_command_line(CLI::App& app, const ManPage& page, int argc, char** argv, int usage_status) {
  app.set_help_flag("-h,--help", "Prints this page.");
  app.set_version_flag("--version", page.name + " of Portofu " PORTOFU_VERSION, "Prints the version.");
  try {
    app.parse(argc, argv);
    return -1;
  } catch (const CLI::CallForHelp&) {
    std::fputs(whole_page(app, page).c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion& version) {
    std::printf("%s\n", version.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s: %s. %s --help explains.\n", page.name.c_str(), error.what(), page.name.c_str());
    return usage_status;
  }
}

int status_of_output(const ManPage& page, int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  std::fprintf(stderr, "%s: standard output cannot be written%s%s\n", page.name.c_str(), errno != 0 ? ": " : "",
               errno != 0 ? std::strerror(errno) : "");
  return status != 0 ? status : 1;
}

}  // namespace portofu::tools
