#pragma once
// What the tools share on their command lines: help in the form of a manual page, and what happens to a wrong option.

#include <CLI/CLI.hpp>
#include <string>

namespace portofu::tools {

/// The sections of a manual page; OPTIONS comes from the options themselves.
struct ManPage {
  std::string name;         ///< Of the tool.
  std::string sentence;     ///< What it does, without a capital and a full stop.
  std::string synopsis;     ///< Behind the tool's name.
  std::string description;  ///< Whole lines.
  std::string rest;         ///< Further sections with their headings.
};

/// Parses the command line, and answers --help and --version.
/// @param usage_status  exit status for a wrong command line
/// @return -1 if the tool shall go on, else its exit status
int parse_command_line(CLI::App& app, const ManPage& page, int argc, char** argv, int usage_status);

/// The exit status of a tool that has printed all it has to say.
/// @return `status`, or 1 if standard output cannot be written, which is said
int status_of_output(const ManPage& page, int status);

}  // namespace portofu::tools
