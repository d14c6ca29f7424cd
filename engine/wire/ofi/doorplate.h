#pragma once
// Whether a process is there. Fabrics hide it: an RDM endpoint tries again for ever where nobody listens, and a peer
// that is slow, stopped, or dead looks the same. The kernel knows. Every process with an endpoint owns the datagram
// port of the same number; a datagram to a port that nobody owns comes back as an error (ICMP). Nobody reads knocks,
// so nothing depends on what the peer does.
//
// A fabric also hides why nobody opens: a process without descriptors accepts no connection, and looks stopped. So who
// waits for a connection asks, in a letter, and who cannot open says so in another.

#include <cstddef>
#include <cstdint>

#include "engine/segment/own_descriptor.h"

namespace portofu {

/// Somebody who is not there.
struct Absent {
  std::uint32_t nid = 0;
  std::uint16_t port = 0;
  bool says_node = false;  ///< The node itself says that nobody has the port; else that it was not reached.
  /// Front of the datagram that found nobody, and how much of it came back: all of it, or what routers quote.
  alignas(8) char datagram[128];
  std::uint32_t datagram_bytes = 0;

  /// @return when the knock left that found nobody, or the letter that asks; 0: it was neither, or did not come back
  std::uint64_t knocked_ns() const;
};

/// What is in a knock: nothing that anybody reads but who knocked.
struct Knock {
  std::uint64_t sent_ns;  ///< By the clock of whoever knocks.
};

/// What a letter says.
enum class LetterKind : std::uint32_t {
  kAsk = 1,    ///< I wait for a connection to you.
  kShort = 2,  ///< I am here, and lack what a connection takes. An answer to kAsk.
};

/// "PoL" and the version of letters.
inline constexpr std::uint32_t kLetterMagic = 0x014c6f50;

/// What is read, unlike a knock, from which its length tells it apart. As it lies in a datagram.
struct Letter {
  std::uint32_t magic;  ///< kLetterMagic.
  LetterKind kind;
  std::uint64_t sent_ns;  ///< Of kAsk, by the clock of whoever asks; an answer repeats it, so only who was asked can.
};
static_assert(sizeof(Letter) != sizeof(Knock));

/// Used by one thread at a time.
class Doorplate {
 public:
  /// Takes the port; 0: any, for one who only knocks. @return false if somebody else has it
  bool open(std::uint32_t nid, std::uint16_t port);

  /// Looks for another socket of this process at this place, which somebody else has made and sends by: what finds
  /// nobody from there is known here, too. Without it only knocks find out. @return false if there is none
  bool watch_socket(std::uint32_t nid, std::uint16_t port);

  /// Knocks at another one. If nobody is there, take_absent says so, some time after.
  void knock(std::uint32_t nid, std::uint16_t port, Knock content = {});

  /// @return false if there is no more news of that kind
  bool take_absent(Absent* absent);

  /// Sends a letter; it may be lost.
  void send(std::uint32_t nid, std::uint16_t port, LetterKind kind, std::uint64_t sent_ns);

  /// @return false if no letter is there
  bool take_letter(std::uint32_t* nid, std::uint16_t* port, Letter* letter);

  /// Has an error (POLLERR) when take_absent would find something by a knock; readable when a letter is there.
  int fd() const { return fd_.number(); }

 private:
  void send_bytes(std::uint32_t nid, std::uint16_t port, const void* bytes, std::size_t count);

  OwnDescriptor fd_;
  int watched_fd_ = -1;  ///< Somebody else's; -1: none.
};

}  // namespace portofu
