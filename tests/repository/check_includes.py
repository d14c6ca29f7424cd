#!/usr/bin/env python3
"""No file includes a standard header of which it uses nothing.

Only headers are looked at whose names are easily told: whatever else a header has must be added here before it is used.
"""

import re

import repository as repo

# Header and what of it is used, as a pattern. Names of the library that many headers have stand with std::.
USES = {
    "array": r"std::(array|to_array)\b",
    "atomic": r"atomic|memory_order",
    "cerrno": r"\berrno\b|\bE[A-Z0-9]{2,}\b",
    "chrono": r"chrono",
    "cstring": r"\b(mem(cpy|pcpy|cmp|set|move|chr|rchr|mem)|str(n?(len|cmp|cpy|cat|dup|casecmp)|r?chr|str|tok\w*|c?spn|pbrk|"
               r"error\w*|signal)|sig(abbrev|descr)_np|explicit_bzero)\b",
    "deque": r"std::deque\b",
    "fstream": r"fstream",
    "functional": r"std::(\w*function|hash|bind\w*|less|greater|equal_to|plus|minus|multiplies|invoke|c?ref|not_fn|identity|"
                  r"mem_fn|bit_\w+)\b",
    "iostream": r"std::(cout|cerr|cin|clog)\b",
    "limits": r"numeric_limits",
    "map": r"std::(multi)?map\b",
    "memory": r"std::(\w+_ptr|make_(unique|shared)\w*|addressof|(construct|destroy)\w*|uninitialized_\w+|assume_aligned|"
              r"enable_shared_from_this|\w*allocator\w*|default_delete|to_address|pointer_traits|align)\b",
    "mutex": r"std::(\w*mutex|\w+_lock|lock_guard|once_flag|call_once|lock)\b",
    "numeric": r"std::(accumulate|iota|gcd|lcm|midpoint|\w*reduce|\w+_(sum|scan|product|difference))\b",
    "optional": r"std::(optional|nullopt|make_optional)\b",
    "set": r"std::(multi)?set\b",
    "span": r"std::(span|as_bytes|as_writable_bytes|dynamic_extent)\b",
    "string": r"std::(w?string|to_string|sto[a-z]+|getline|char_traits|basic_string)\b|\bto_string\(|\"s\b",
    "string_view": r"string_view|\"sv\b",
    "thread": r"std::(j?thread|this_thread)\b",
    "tuple": r"std::(tuple\w*|tie|make_tuple|forward_as_tuple|apply)\b",
    "unordered_map": r"std::unordered_(multi)?map\b",
    "unordered_set": r"std::unordered_(multi)?set\b",
    "utility": r"std::(move|swap|forward|exchange|\w*pair|\w*index_sequence\w*|\w*integer_sequence|declval|in_place\w*|"
               r"to_underlying|as_const|cmp_\w+|in_range|piecewise_construct|unreachable)\b",
    "vector": r"std::vector\b",
}
SAME = {"errno.h": "cerrno", "string.h": "cstring"}
INCLUDE = re.compile(r"^#\s*include\s*<([^>]+)>", flags=re.MULTILINE)


def main():
    problems = []
    paths = repo.files(".h", ".cpp", ".c")
    for path in paths:
        text = repo.without_comments(repo.read(path))
        body = re.sub(r"^#\s*include[^\n]*", "", text, flags=re.MULTILINE)
        for header in INCLUDE.findall(text):
            pattern = USES.get(SAME.get(header, header))
            if pattern is not None and not re.search(pattern, body):
                problems.append(f"{path} includes <{header}> and uses nothing of it")
    repo.finish(problems, f"{len(paths)} files")


if __name__ == "__main__":
    main()
