#pragma once
// The door of uTofu: VCQs, STADDs, one-sided operations as descriptors, their fast ways, barrier gates.

#include "engine/atomic/atomic_unit.h"  // Which operations a word knows.
#include "engine/core/steps.h"          // Calls that are recorded.
#include "engine/descriptor/tofu_descriptor.h"
#include "engine/initiator/barrier.h"
#include "engine/initiator/circuit.h"
#include "engine/initiator/send.h"         // Starts a descriptor.
#include "engine/initiator/tofu_direct.h"  // Operations without the duty.
#include "engine/initiator/tofu_owner.h"   // Whose control queue a number is.
#include "engine/initiator/tofu_send.h"
#include "engine/target/tofu_request.h"
