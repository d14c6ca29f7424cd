#pragma once
// The door of the library that shows programs virtual time (lib/clock).

#include "engine/run/program_time.h"
