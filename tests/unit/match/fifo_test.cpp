// The intrusive FIFO: order, both ends, and what the links say of an entry that is in none.

#include "engine/match/fifo.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace portofu {
namespace {

struct Node {
  FifoLinks<Node> links;
};

struct Fifo : testing::Test {
  void append_all() {
    for (Node& node : nodes) fifo_append(head, node, &Node::links);
  }
  void remove(Node& node) { fifo_remove(head, node, &Node::links); }
  std::vector<Node*> content() const {
    std::vector<Node*> found;
    for (Node* node = head; node != nullptr; node = node->links.next) found.push_back(node);
    return found;
  }

  std::array<Node, 4> nodes;
  Node* head = nullptr;
};

TEST_F(Fifo, Append__keeps_the_order) {
  append_all();
  EXPECT_EQ(content(), (std::vector{&nodes[0], &nodes[1], &nodes[2], &nodes[3]}));
  EXPECT_EQ(head->links.prev, &nodes[3]);
}

TEST_F(Fifo, Remove__first) {
  append_all();
  remove(nodes[0]);
  EXPECT_EQ(content(), (std::vector{&nodes[1], &nodes[2], &nodes[3]}));
  EXPECT_EQ(head->links.prev, &nodes[3]);
}

TEST_F(Fifo, Remove__middle) {
  append_all();
  remove(nodes[1]);
  EXPECT_EQ(content(), (std::vector{&nodes[0], &nodes[2], &nodes[3]}));
}

TEST_F(Fifo, Remove__last_makes_the_one_before_it_the_last) {
  append_all();
  remove(nodes[3]);
  fifo_append(head, nodes[3], &Node::links);
  EXPECT_EQ(content(), (std::vector{&nodes[0], &nodes[1], &nodes[2], &nodes[3]}));
}

TEST_F(Fifo, Remove__all_clears_links_and_head) {
  append_all();
  for (Node& node : nodes) {
    remove(node);
    EXPECT_EQ(node.links.next, nullptr);
    EXPECT_EQ(node.links.prev, nullptr);
  }
  EXPECT_EQ(head, nullptr);
}

TEST_F(Fifo, Ends__are_the_first_and_the_last) {
  append_all();
  EXPECT_TRUE(fifo_is_at_an_end(nodes[0], &Node::links));
  EXPECT_FALSE(fifo_is_at_an_end(nodes[1], &Node::links));
  EXPECT_FALSE(fifo_is_at_an_end(nodes[2], &Node::links));
  EXPECT_TRUE(fifo_is_at_an_end(nodes[3], &Node::links));
}

TEST_F(Fifo, Remove_between__needs_no_head) {
  append_all();
  fifo_remove_between(nodes[2], &Node::links);
  EXPECT_EQ(content(), (std::vector{&nodes[0], &nodes[1], &nodes[3]}));
  EXPECT_EQ(nodes[2].links.prev, nullptr);
  fifo_remove_between(nodes[1], &Node::links);
  EXPECT_EQ(content(), (std::vector{&nodes[0], &nodes[3]}));
}

TEST_F(Fifo, Single_entry__is_first_and_last) {
  fifo_append(head, nodes[0], &Node::links);
  EXPECT_TRUE(fifo_is_at_an_end(nodes[0], &Node::links));
  remove(nodes[0]);
  EXPECT_EQ(head, nullptr);
}

}  // namespace
}  // namespace portofu
