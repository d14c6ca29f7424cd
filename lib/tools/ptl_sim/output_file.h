#pragma once
// A file that a run writes at its end. It is opened before, so that a path that cannot be written is told at once.

#include <cstdio>
#include <memory>
#include <string>

namespace portofu::tools {

class OutputFile {
 public:
  /// @param path  empty: there is no file, and nothing is written
  explicit OutputFile(std::string path) : path_(std::move(path)) {
    if (!path_.empty()) file_.reset(std::fopen(path_.c_str(), "w"));
    failed_ = !path_.empty() && file_ == nullptr;
  }

  bool is_wanted() const { return !path_.empty(); }

  /// @param body  bool(std::FILE*), false: it could not be written
  template <class Body>
  void write(const Body& body) {
    if (file_ == nullptr) return;
    const bool written = body(file_.get());
    const bool closed = std::fclose(file_.release()) == 0;
    failed_ = failed_ || !written || !closed;
  }
  void write_text(const std::string& text) {
    write([&](std::FILE* file) { return std::fwrite(text.data(), 1, text.size(), file) == text.size(); });
  }

  /// A sentence if it could not be opened or written; else empty.
  std::string trouble() const { return failed_ ? "the file " + path_ + " cannot be written" : ""; }

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
  bool failed_ = false;
};

}  // namespace portofu::tools
