#pragma once
// The door of models of networks: where links lie, which of them a packet takes, and nodes as a job arranges them.

#include "engine/queue/assert.h"
#include "engine/topology/node_shape.h"
#include "engine/wire/sim/topology.h"
