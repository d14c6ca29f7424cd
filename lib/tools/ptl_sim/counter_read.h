#pragma once
// Whether a program reads the processor's counter itself, which nobody can make show virtual time.

#include <span>
#include <string>

namespace portofu::tools {

/// Looks for the instructions that read it. Bytes are compared, since the text of a program does not say where its
/// instructions begin: `rdtscp`, and `rdtsc` if its halves are joined behind it, as compilers' functions and most
/// programs do; on ARM the read of cntvct_el0. So what is found is hardly anything else, and an `rdtsc` of which only
/// one half is used is missed.
/// @return names of the instructions, with commas; "": none
std::string counter_reads(std::span<const unsigned char> text);

/// The same of all executable parts of a file; "" also if it is no 64-bit ELF file of this machine's processor.
std::string counter_reads_of(const std::string& path);

/// The file of a program as execvp finds it; "" if there is none.
std::string program_file(const std::string& name);

}  // namespace portofu::tools
