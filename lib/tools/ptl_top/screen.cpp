#include "lib/tools/ptl_top/screen.h"

#include <curses.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "lib/tools/ptl_top/rates.h"

namespace portofu::tools {
namespace {

/// The terminal is as it was when this ends.
class Terminal {
 public:
  Terminal() : screen_(newterm(nullptr, stdout, stdin)) {
    if (screen_ == nullptr) return;
    noecho();
    cbreak();
    keypad(stdscr, TRUE);
    curs_set(0);
  }
  ~Terminal() {
    if (screen_ == nullptr) return;
    endwin();
    delscreen(screen_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  bool is_there() const { return screen_ != nullptr; }

 private:
  SCREEN* screen_;
};

/// What the keys have chosen.
struct View {
  std::uint32_t job_key = 0;
  Order order = Order::kRank;
  std::uint32_t chosen = 0;  ///< Number of the process; 0: the first row.
  bool details = false;
  bool ended = false;
};

std::size_t chosen_row(const View& view, const std::vector<Row>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].process.os_pid == view.chosen) return i;
  }
  return 0;
}

void take_key(int key, const std::vector<Row>& rows, View* view) {
  const std::size_t row = chosen_row(*view, rows);
  switch (key) {
    case 'q': view->ended = true; break;
    case 's': view->order = order_after(view->order); break;
    case 'j':
      if (!rows.empty()) view->job_key = view->job_key != 0 ? 0 : rows[row].process.job_key;
      break;
    case '\n':
    case KEY_ENTER: view->details = !view->details; break;
    case KEY_UP:
      if (row > 0) view->chosen = rows[row - 1].process.os_pid;
      break;
    case KEY_DOWN:
      if (row + 1 < rows.size()) view->chosen = rows[row + 1].process.os_pid;
      break;
    default: break;
  }
}

void put_line(int y, const std::string& line, bool marked) {
  if (marked) attron(A_REVERSE);
  mvaddnstr(y, 0, line.c_str(), COLS);
  if (marked) attroff(A_REVERSE);
}

void draw(const View& view, const std::vector<Row>& rows) {
  erase();
  const std::time_t now = std::time(nullptr);
  char clock[16];
  std::strftime(clock, sizeof clock, "%H:%M:%S", std::localtime(&now));
  put_line(0,
           "ptl_top  " + std::string(clock) + "  " + std::to_string(rows.size()) + " processes, by " +
               order_name(view.order) + (view.job_key != 0 ? ", of one job" : ""),
           false);
  put_line(1, "up, down: choose   Enter: details   s: sort   j: this job only   q: quit", false);
  const std::vector<std::string> table = table_of(rows);
  const std::size_t chosen = chosen_row(view, rows);
  // The half of the screen, if details follow; the chosen row is always there.
  const int room = std::max(1, view.details ? (LINES - 4) / 2 : LINES - 4);
  const std::size_t shown = static_cast<std::size_t>(room);
  const std::size_t first = chosen >= shown ? chosen - shown + 1 : 0;
  int y = 3;
  put_line(y++, table.front(), false);
  for (std::size_t i = first; i < rows.size() && i < first + shown; ++i) put_line(y++, table[i + 1], i == chosen);
  if (rows.empty()) put_line(y, "No process of this user has an interface open.", false);
  if (view.details && !rows.empty()) {
    ++y;
    for (const std::string& line : details_of(rows[chosen], rows)) put_line(y++, line, false);
  }
  refresh();
}

}  // namespace

int show_on_screen(const TopOptions& options) {
  Look before;
  Look now;
  if (!look_at_node(options.directory, &now)) {
    std::fprintf(stderr, "ptl_top: cannot read %s\n", options.directory.c_str());
    return 1;
  }
  before = now;
  const Terminal terminal;
  if (!terminal.is_there()) {
    std::fprintf(stderr, "ptl_top: this is no terminal that it knows (TERM); --once prints a table\n");
    return 1;
  }
  View view{.job_key = options.job_key};
  const auto interval_ns = static_cast<std::uint64_t>(options.interval_s * 1e9);
  std::vector<Row> rows = rows_between(before, now, view.job_key, view.order);
  while (!view.ended) {
    draw(view, rows);
    timeout(static_cast<int>(std::clamp(options.interval_s * 1000, 50.0, 250.0)));
    const int key = getch();
    if (key != ERR) take_key(key, rows, &view);
    Look next;
    if (!look_at_node(options.directory, &next)) break;
    if (next.time_ns - now.time_ns >= interval_ns) {
      before = std::move(now);
      now = std::move(next);
    }
    rows = rows_between(before, now, view.job_key, view.order);
  }
  return 0;
}

}  // namespace portofu::tools
