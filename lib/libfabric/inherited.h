#pragma once
// What the child of a fork has of its parent's objects. It has no engine (library.h), and their file descriptors are
// its parent's, too. So each call on them is refused, and closing does nothing. A fabric has neither: it is the child's
// own, and whoever needs it there has opened it there.

#include <rdma/fabric.h>

namespace portofu::fabric {

/// A member of each object, behind its fid: it is known as long as it lives.
class Inheritable {
 public:
  explicit Inheritable(struct fid& object);
  ~Inheritable();
  Inheritable(const Inheritable&) = delete;
  Inheritable& operator=(const Inheritable&) = delete;

 private:
  friend void refuse_inherited();

  void link();                          ///< Puts it before all others.
  void link_behind(Inheritable* last);  ///< nullptr: it is the first.

  struct fid& object_;
  Inheritable* previous_ = nullptr;
  Inheritable* next_ = nullptr;
};

/// Around a fork, and in its child.
void hold_inherited();
void give_inherited();
void refuse_inherited();

}  // namespace portofu::fabric
