#pragma once
// The door of the two heap libraries: memory that peers may map.

#include "engine/segment/shared_heap.h"
