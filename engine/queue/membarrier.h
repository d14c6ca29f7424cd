#pragma once
// The system call membarrier(2): one side of a rare race pays for the fences of the other one, which is on the short
// path. Commands are those of linux/membarrier.h.

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace portofu {

/// @return as the system call
inline long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

/// Lets this process use pass_private_barrier. Costs some microseconds; may be called again.
/// @return false: the kernel has no such thing
inline bool register_private_barrier() { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0; }

/// Every running thread of this process has passed a full barrier when it returns. @pre registered
inline void pass_private_barrier() { membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }

/// The same for all processes that have called register_wake_barrier. @return false: the kernel has no such thing
inline bool pass_shared_barrier() { return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0; }

}  // namespace portofu
