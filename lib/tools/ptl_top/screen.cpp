#include "lib/tools/ptl_top/screen.h"

#include <curses.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sstream>
#include <string>
#include <vector>

#include "lib/tools/ptl_top/rates.h"

namespace portofu::tools {
namespace {

/// That Page up and Page down move the panel by.
constexpr std::size_t kPageLines = 10;

/// The signal that has asked for the end; 0: none has.
std::atomic<int> ending_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

/// Signals that ask for the end are noted, so that the terminal is put in order first; curses leaves those alone that
/// have an action. Who ignored one of them when starting us wants it ignored.
void note_ending_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action.sa_handler = [](int noted) { ending_signal.store(noted, std::memory_order_relaxed); };
    sigaction(number, &action, nullptr);
  }
}

/// Control-C ends the tool as q does. Of any other signal it dies behind the terminal, as whoever sent it expects.
int end_by(int number) {
  if (number == 0 || number == SIGINT) return 0;
  signal(number, SIG_DFL);
  raise(number);
  return 128 + number;
}

/// Nobody can press a key any more, and reads fail at once. That comes before SIGHUP, or without it.
bool is_terminal_gone() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) > 0 && (input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

/// The terminal is as it was when this ends.
class Terminal {
 public:
  Terminal() : screen_(has_keys_and_cursor() ? newterm(nullptr, stdout, stdin) : nullptr) {
    if (screen_ == nullptr) return;
    noecho();
    cbreak();
    keypad(stdscr, TRUE);
    intrflush(stdscr, FALSE);  // Else Control-C may throw away what restores the terminal, too.
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
  static bool has_keys_and_cursor() {
    const char* const name = std::getenv("TERM");
    return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 && (name == nullptr || name != std::string("dumb"));
  }

  SCREEN* screen_;
};

/// What stands below the table.
enum class Panel : std::uint8_t { kNone, kDetails, kPeers, kLists };

/// What the keys have chosen.
struct View {
  std::uint32_t job_key = 0;
  Order order = Order::kRank;
  std::uint32_t chosen = 0;  ///< Number of the process; 0: the first row.
  Panel panel = Panel::kNone;
  std::size_t scrolled = 0;  ///< Lines of the panel above the screen.
  bool ended = false;
  const char* failure = nullptr;  ///< Why it has ended by itself.
};

std::size_t chosen_row(const View& view, const std::vector<Row>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].process.os_pid == view.chosen) return i;
  }
  return 0;
}

/// The same key again closes it.
void show_panel(Panel panel, View* view) {
  view->panel = view->panel == panel ? Panel::kNone : panel;
  view->scrolled = 0;
}

void choose(const Row& row, View* view) {
  view->chosen = row.process.os_pid;
  view->scrolled = 0;
}

/// To the first process that the chosen one waits for.
void follow(const std::vector<Row>& rows, View* view) {
  if (rows.empty()) return;
  const Row& row = rows[chosen_row(*view, rows)];
  const Row* const next = row.waits_for.empty() ? nullptr : owner_of(row.waits_for.front(), rows);
  if (next != nullptr) choose(*next, view);
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
    case KEY_ENTER: show_panel(Panel::kDetails, view); break;
    case 'p': show_panel(Panel::kPeers, view); break;
    case 'l': show_panel(Panel::kLists, view); break;
    case 'f': follow(rows, view); break;
    case KEY_NPAGE: view->scrolled += kPageLines; break;
    case KEY_PPAGE: view->scrolled -= std::min(view->scrolled, kPageLines); break;
    case KEY_UP:
      if (row > 0) choose(rows[row - 1], view);
      break;
    case KEY_DOWN:
      if (row + 1 < rows.size()) choose(rows[row + 1], view);
      break;
    default: break;
  }
}

void put_line(int y, const std::string& line, bool marked) {
  if (marked) attron(A_REVERSE);
  mvaddnstr(y, 0, line.c_str(), COLS);
  if (marked) attroff(A_REVERSE);
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> panel_lines(const View& view, const std::string& directory, const std::vector<Row>& rows) {
  const Row& row = rows[chosen_row(view, rows)];
  switch (view.panel) {
    case Panel::kNone: break;
    case Panel::kDetails: return details_of(row, rows);
    case Panel::kPeers: return peers_of(row, rows);
    case Panel::kLists: return lines_in(lists_of_process(directory, row.process.os_pid));
  }
  return {};
}

void draw(const View& view, const std::string& directory, const std::vector<Row>& rows) {
  erase();
  const std::time_t now = std::time(nullptr);
  char clock[16];
  std::strftime(clock, sizeof clock, "%H:%M:%S", std::localtime(&now));
  put_line(0,
           "ptl_top  " + std::string(clock) + "  " + std::to_string(rows.size()) + " processes, by " +
               order_name(view.order) + (view.job_key != 0 ? ", of one job" : ""),
           false);
  put_line(1,
           "up, down: choose  Enter: details  p: peers  l: lists  f: follow whom it waits for  PgUp, PgDn  s: sort  "
           "j: this job  q: quit",
           false);
  const std::vector<std::string> table = table_of(rows);
  const std::size_t chosen = chosen_row(view, rows);
  // The half of the screen, if details follow; the chosen row is always there.
  const int room = std::max(1, view.panel != Panel::kNone ? (LINES - 4) / 2 : LINES - 4);
  const std::size_t shown = static_cast<std::size_t>(room);
  const std::size_t first = chosen >= shown ? chosen - shown + 1 : 0;
  int y = 3;
  put_line(y++, table.front(), false);
  for (std::size_t i = first; i < rows.size() && i < first + shown; ++i) put_line(y++, table[i + 1], i == chosen);
  if (rows.empty()) put_line(y, "No process of this user has an interface open.", false);
  if (!rows.empty()) {
    ++y;
    const std::vector<std::string> lines = panel_lines(view, directory, rows);
    for (std::size_t i = view.scrolled; i < lines.size() && y < LINES; ++i) put_line(y++, lines[i], false);
  }
  refresh();
}

/// Until somebody wants the end, or nothing can be shown any more.
void show(const TopOptions& options, Look now, View* view) {
  Look before = now;
  const auto interval_ns = static_cast<std::uint64_t>(options.interval_s * 1e9);
  std::vector<Row> rows = rows_between(before, now, view->job_key, view->order);
  while (!view->ended && ending_signal.load(std::memory_order_relaxed) == 0) {
    draw(*view, options.directory, rows);
    timeout(static_cast<int>(std::clamp(options.interval_s * 1000, 50.0, 250.0)));
    const int key = getch();
    if (key != ERR) take_key(key, rows, view);
    Look next;
    if (key == ERR && is_terminal_gone()) ending_signal.store(SIGHUP, std::memory_order_relaxed);
    if (!look_at_node(options.directory, &next))
      view->failure = "the directory of the segments cannot be read any more";
    if (view->failure != nullptr) return;
    if (next.time_ns - now.time_ns >= interval_ns) {
      before = std::move(now);
      now = std::move(next);
    }
    rows = rows_between(before, now, view->job_key, view->order);
  }
}

}  // namespace

int show_on_screen(const TopOptions& options) {
  Look now;
  if (!look_at_node(options.directory, &now)) {
    std::fprintf(stderr, "ptl_top: cannot read %s\n", options.directory.c_str());
    return 1;
  }
  note_ending_signals();
  View view{.job_key = options.job_key};
  {
    const Terminal terminal;
    if (terminal.is_there()) {
      show(options, std::move(now), &view);
    } else {
      view.failure = "this is no terminal, or none that it knows (TERM); --once prints a table";
    }
  }
  if (view.failure == nullptr) return end_by(ending_signal.load(std::memory_order_relaxed));
  std::fprintf(stderr, "ptl_top: %s\n", view.failure);
  return 1;
}

}  // namespace portofu::tools
