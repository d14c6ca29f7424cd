#!/usr/bin/env python3
"""Draws the screen of a program as SVG: runs it in a terminal of 130 columns, presses keys, and ends it by q.

usage: draw_screen.py OUTPUT.svg ROWS KEY,KEY... COMMAND...     a key is pressed each second and a half; there are
                                                               down, enter, and all that are a letter
"""

import fcntl
import html
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from pathlib import Path

COLUMNS = 130
WIDTH, HEIGHT = 7.3, 16  # Of a character, in pixels.
KEYS = {"down": "\x1bOB", "enter": "\r"}
# What a vt100 is told: a sequence that begins with ESC, or one character.
TOKEN = re.compile(r"\x1b\[\??([\d;]*)([A-Za-z])|\x1b[()][AB0]|\x1b[=>78]|[\x0e\x0f]|(.)", re.DOTALL)


def run(command, rows, keys):
    """Everything that the command has written to its terminal."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ["TERM"] = "vt100"
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, COLUMNS, 0, 0))
    written = b""
    for key in [*keys, None]:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            if select.select([terminal], [], [], 0.1)[0]:
                written += os.read(terminal, 65536)
        if key is not None:
            os.write(terminal, key.encode())
    os.write(terminal, b"q")
    os.waitpid(process, 0)
    return written.decode(errors="replace")


class Screen:
    """What stands on a vt100 after a text."""

    def __init__(self, rows):
        self.cells = [[(" ", False)] * COLUMNS for _ in range(rows)]
        self.y = self.x = 0
        self.reverse = False

    def write(self, text):
        for token in TOKEN.finditer(text):
            arguments, command, character = token.groups()
            if command is not None:
                self.obey(command, [int(word) for word in arguments.split(";") if word])
            elif character is not None:
                self.put(character)

    def put(self, character):
        if character == "\r":
            self.x = 0
        elif character == "\n":
            self.y = min(self.y + 1, len(self.cells) - 1)
        elif character == "\b":
            self.x = max(self.x - 1, 0)
        elif character >= " " and self.x < COLUMNS:
            self.cells[self.y][self.x] = (character, self.reverse)
            self.x += 1

    def obey(self, command, numbers):
        first = numbers[0] if numbers else 0
        row = self.cells[self.y]
        if command == "H":
            self.y = min(max(first, 1), len(self.cells)) - 1
            self.x = min(numbers[1] if len(numbers) > 1 else 1, COLUMNS) - 1
        elif command in "CDAB":
            step = max(first, 1)
            self.x = min(max(self.x + {"C": step, "D": -step}.get(command, 0), 0), COLUMNS - 1)
            self.y = min(max(self.y + {"B": step, "A": -step}.get(command, 0), 0), len(self.cells) - 1)
        elif command == "K":
            begin, end = {0: (self.x, COLUMNS), 1: (0, self.x + 1)}.get(first, (0, COLUMNS))
            row[begin:end] = [(" ", False)] * (end - begin)
        elif command == "J":
            for y in range(0 if first == 2 else self.y, len(self.cells)):
                begin = self.x if y == self.y and first == 0 else 0
                self.cells[y][begin:] = [(" ", False)] * (COLUMNS - begin)
        elif command == "m":
            self.reverse = 7 in numbers

    def svg(self):
        rows = self.cells
        while rows and all(cell == (" ", False) for cell in rows[-1]):
            rows = rows[:-1]
        width, height = COLUMNS * WIDTH + 16, len(rows) * HEIGHT + 16
        lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-family="monospace" '
                 f'font-size="12" fill="#d8dee9"><rect width="100%" height="100%" rx="6" fill="#20242c"/>']
        for y, row in enumerate(rows):
            text = "".join(character for character, _ in row).rstrip()
            below = 8 + (y + 1) * HEIGHT - 4
            marked = any(reverse for _, reverse in row)
            if marked:
                lines.append(f'<rect x="8" y="{below - 12}" width="{len(text) * WIDTH:.0f}" height="{HEIGHT}" fill="#d8dee9"/>')
            if text:
                colour = ' fill="#20242c"' if marked else ""
                lines.append(f'<text x="8" y="{below}" xml:space="preserve" textLength="{len(text) * WIDTH:.0f}"{colour}>'
                             f"{html.escape(text)}</text>")
        return "\n".join([*lines, "</svg>\n"])


def main():
    output, rows, keys, *command = sys.argv[1:]
    screen = Screen(int(rows))
    screen.write(run(command, int(rows), [KEYS.get(key, key) for key in keys.split(",")]))
    Path(output).write_text(screen.svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
