// Texts for failure messages.
#pragma once

#include <portals4.h>

#include <string>

namespace conformance {

std::string name_of_rc(int rc);
std::string name_of_event(ptl_event_kind_t kind);
std::string name_of_failure(ptl_ni_fail_t failure);

/// All that helps to find out which event this is.
std::string describe(const ptl_event_t& event);

}  // namespace conformance
