// Words that are compared and swapped in vain: locks in memory, and who has them.

#include <algorithm>

#include "engine/inspect/job_view.h"
#include "engine/observe/hex_text.h"

namespace portofu {
namespace {

/// "the word at STADD 0x100000000000 of VCQ 0x1", "the word at offset 8, portal table entry 4, bits 0x10".
std::string word_text(const SwappedWord& word) {
  if (word.interface_index == kTofuInterface) return "the word at STADD " + hex_text(word.offset);
  InterfacePicture ni;
  ni.index = word.interface_index;
  const std::string bits = match_bits_name(ni, word.pt_index, word.bits);
  return "the word at offset " + std::to_string(word.offset) + " of " + portal_name(ni, word.pt_index) +
         (bits.empty() ? "" : ", " + bits);
}

/// How its events name the process of an initiator: by its rank, where the interface is logical.
ProcessId initiator_of(const ProcessPicture& owner, const WordUse& use) {
  const auto is_it = [&use](const InterfacePicture& ni) { return ni.index == use.word.interface_index; };
  const auto found = std::ranges::find_if(owner.core.interfaces, is_it);
  return found != owner.core.interfaces.end() ? JobView::physical(*found, use.initiator) : use.initiator;
}

/// Who has changed a word last. @return nullptr if nobody has, as far as that is known
const WordUse* last_change(const ProcessPicture& owner, const SwappedWord& word) {
  const WordUse* last = nullptr;
  for (const WordPicture& other : owner.core.words) {
    const bool is_later = last == nullptr || other.use.changed > last->changed;
    if (other.use.word == word && other.use.changed != 0 && is_later) last = &other.use;
  }
  return last;
}

}  // namespace

std::vector<HeldWord> held_words_of(const ProcessPicture& owner) {
  std::vector<HeldWord> held;
  for (const WordPicture& tried : owner.core.words) {
    if (!tried.goes_on) continue;
    const WordUse* const last = last_change(owner, tried.use.word);
    held.push_back({&tried.use, initiator_of(owner, tried.use),
                    last != nullptr ? initiator_of(owner, *last) : ProcessId{}, last != nullptr ? last->changed : 0});
  }
  return held;
}

void find_held_words(const JobView& job, std::vector<Finding>* findings) {
  for (const ProcessPicture& owner : job.processes()) {
    for (const HeldWord& held : held_words_of(owner)) {
      Finding finding;
      finding.kind = FindingKind::kWordHeld;
      finding.where = held.who;
      finding.object = word_text(held.use->word) + " of " + job.name(owner.id());
      finding.other = held.holder;
      finding.progress = held.changed;
      finding.sentence = job.name(held.who) + " has tried " + since_text(held.use->since_ns) + " to compare and swap " +
                         finding.object + ", and has found another value " + std::to_string(held.use->vain) + " times";
      if (held.changed != 0) {
        finding.sentence += "; the last atomic operation that changed it was one of " +
                            (held.holder == held.who ? "its own" : job.name(held.holder));
      }
      findings->push_back(std::move(finding));
    }
  }
}

}  // namespace portofu
