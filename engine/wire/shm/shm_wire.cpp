// What concerns both halves of the wire at once.

#include "engine/wire/shm/shm_wire.h"

namespace portofu {

int ShmWire::check_peers() {
  peers_.check_alive();
  sources_.close_dead_sources();
  return links_.mark_lost();
}

}  // namespace portofu
