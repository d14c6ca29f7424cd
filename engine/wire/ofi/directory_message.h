#pragma once
// What a node is asked about its control queues and gates, and what it answers: datagrams of directory_socket.h.

#include <cstdint>
#include <type_traits>

namespace portofu {

enum class DirectoryKind : std::uint32_t {
  kAsk = 1,     ///< Who has it?
  kFound = 2,   ///< This process.
  kNobody = 3,  ///< None of this node.
};

/// Question and answer.
struct DirectoryMessage {
  std::uint32_t magic;    ///< kDirectoryMagic.
  std::uint32_t job_key;  ///< Of the sender; another one is not answered, and not believed.
  std::uint32_t uid;      ///< The same.
  DirectoryKind kind;
  std::uint64_t key;    ///< Claim key of a queue or gate.
  std::uint64_t nonce;  ///< Random; an answer repeats it.
  std::uint32_t pid;    ///< kFound: of the owner.
  std::uint32_t ear;    ///< kAsk: port where the asking process can be told. kFound: 1 if it will be; else 0.
};
static_assert(sizeof(DirectoryMessage) == 40 && std::is_trivially_copyable_v<DirectoryMessage>);

/// "PoD" and the version of the format.
inline constexpr std::uint32_t kDirectoryMagic = 0x02446f50;

}  // namespace portofu
