#!/usr/bin/env python3
"""No id travels as a pointer, and no pointer of a caller's is read as a number.

A pointer becomes void* without a cast, so what is cast to it is a number or a function: the list says where that is an
address."""

import re

import repository as repo

TO_POINTER = re.compile(r"reinterpret_cast<(?:const )?void\s*\*>\((?!\s*&)[^\n;]*")
FROM_CALLER = re.compile(r"reinterpret_cast<std::\w+>\([^\n;]*\b(?:user_ptr|callback_data|cbdata|context)\b")

# Where a number is an address, and why.
ADDRESSES = {
    "engine/queue/line_aligned.h": "the next line of a block",
    "engine/run/engine_node.cpp": "the address of a region",
    "engine/segment/mark_page.cpp": "where a page is wanted",
    "engine/segment/process_memory.cpp": "addresses of another process, for the kernel",
    "engine/segment/shared_heap.cpp": "where the heap is mapped",
    "engine/wire/ofi/ofi_lending.cpp": "the page of an address",
    "lib/funi/program_image.cpp": "a place in the program",
    "lib/heap/malloc.cpp": "a function, to be asked where it is",
    "lib/utofu/stadd.cpp": "the page of an address",
}
# Where a pointer of the caller's has something beside it, and why.
WORDS = {
    "lib/libfabric/word.h": "a context and its kind share one word, which comes back in an event",
}


def main():
    problems, used = [], set()
    allowed = {**ADDRESSES, **WORDS}
    paths = repo.files(".h", ".cpp", places=("engine", "lib"))
    for path in paths:
        text = repo.without_comments(repo.read(path))
        for pattern, known in ((TO_POINTER, allowed), (FROM_CALLER, WORDS)):
            for match in pattern.finditer(text):
                used.add(path)
                if path not in known:
                    line = text.count("\n", 0, match.start()) + 1
                    problems.append(f"{path}:{line}: {match[0]}: an id has a field of its own type")
    repo.shrinking(problems, used, allowed, "tests/repository/check_casts.py")
    repo.finish(problems, f"{len(paths)} files")


if __name__ == "__main__":
    main()
