// Turns outcomes into a page in Markdown, and holds the sentences against them.
#pragma once

#include <string>

#include "play.h"
#include "row.h"

namespace compare {

/// @return what the run showed against the presumptions of the row, one line each; empty if nothing
std::string contradictions(const Row& row, const Outcome& outcome);

std::string page_head(int repetitions);
std::string theme_head(const Theme& theme);
std::string section(const Row& row, const Outcome& outcome);

}  // namespace compare
