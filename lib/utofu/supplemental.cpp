// 3.9 Supplemental features.

#include <cstring>

#include "lib/utofu/library.h"

using namespace portofu::utofu;

extern "C" UTOFU_API int utofu_get_last_error(char* text);

void utofu_query_tofu_version(int* major_ver, int* minor_ver) {
  if (major_ver != nullptr) *major_ver = 3;
  if (minor_ver != nullptr) *minor_ver = 0;
}

void utofu_query_utofu_version(int* major_ver, int* minor_ver) {
  if (major_ver != nullptr) *major_ver = UTOFU_VERSION_MAJOR;
  if (minor_ver != nullptr) *minor_ver = UTOFU_VERSION_MINOR;
}

int utofu_query_my_coords(uint8_t coords[]) {
  if (coords == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "coords is NULL");
  std::memcpy(coords, my_coordinates().data(), my_coordinates().size());
  return UTOFU_SUCCESS;
}

/// Not in the guide, and not in the header; some programs declare and call it.
/// @param text  room for 1024 bytes; set to this thread's last argument error in words
int utofu_get_last_error(char* text) {
  constexpr std::size_t kTextBytes = 1024;
  if (text == nullptr) return UTOFU_ERR_INVALID_POINTER;
  std::strncpy(text, last_error(), kTextBytes - 1);
  text[kTextBytes - 1] = '\0';
  return UTOFU_SUCCESS;
}
