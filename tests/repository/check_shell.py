#!/usr/bin/env python3
"""shellcheck finds nothing in the shell scripts (.shellcheckrc)."""

import repository as repo


def main():
    repo.need("shellcheck")
    scripts = ["run", *repo.files(".sh")]
    status, output = repo.run(["shellcheck", "--format=gcc", *scripts])
    problems = output.splitlines()
    if status != 0 and not problems:
        problems.append(f"shellcheck ended with status {status}")
    repo.finish(problems, f"{len(scripts)} scripts")


if __name__ == "__main__":
    main()
