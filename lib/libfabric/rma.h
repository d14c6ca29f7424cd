#pragma once
// Calls on memory of others, as rma.cpp and trigger.cpp make them.

#include <rdma/fi_rma.h>

#include "lib/libfabric/transmit.h"

namespace portofu::fabric {

/// A read or write with several remote pieces goes as several operations, of which the last tells of all.
ssize_t access_memory(Endpoint& ep, const TransmitCall& call, const Descriptor& like, const fi_rma_iov* remote,
                      std::size_t remote_count);

}  // namespace portofu::fabric
