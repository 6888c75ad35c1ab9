// Counts the orbits of graphlets of 2 to 5 vertices: connected induced subgraphs, each found once, by enumeration
// (Wernicke, IEEE/ACM TCBB 2006, algorithm ESU). benchmarks/data/graphlets.py compiles and calls it.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 5, ORBITS = 73 };

// A mark of the root's own, beside one bit for each member of the subgraph that a vertex is a neighbour of.
static const uint8_t ROOT = 0x80;

typedef struct {
  const int64_t* begins;      // of each vertex, its first entry in ends
  const int32_t* ends;        // its neighbours
  const uint8_t* orbits;      // by size, then by code: the orbit of each of MOST members
  const int32_t* first_code;  // by size
  uint32_t* counts;           // ORBITS of each vertex
  uint8_t* marks;             // of each vertex; zero outside the neighbourhood of the subgraph
  int32_t root;
  int32_t members[MOST];
  int32_t* candidates[MOST];  // by size of the subgraph: the vertices that can be its next member
} Search;

static void count(Search* s, int size, int code) {
  const uint8_t* orbits = s->orbits + (int64_t)(s->first_code[size] + code) * MOST;
  for (int i = 0; i < size; i++) s->counts[(int64_t)s->members[i] * ORBITS + orbits[i]]++;
}

// Adds a member, and the neighbours of it alone to the candidates; returns how many these are then.
static int enter(Search* s, int size, int32_t vertex, int32_t* candidates, int many) {
  s->members[size] = vertex;
  for (int64_t i = s->begins[vertex]; i < s->begins[vertex + 1]; i++) {
    int32_t next = s->ends[i];
    if (next > s->root && s->marks[next] == 0) candidates[many++] = next;
    s->marks[next] |= (uint8_t)(1 << size);
  }
  return many;
}

static void leave(Search* s, int size, int32_t vertex) {
  for (int64_t i = s->begins[vertex]; i < s->begins[vertex + 1]; i++) s->marks[s->ends[i]] &= (uint8_t)~(1 << size);
}

// Extends a subgraph of so many members, whose edges the code has, by each of its candidates in turn.
static void extend(Search* s, int size, int code, int many) {
  int32_t* candidates = s->candidates[size - 1];
  int shift = size * (size - 1) / 2;
  while (many > 0) {
    int32_t vertex = candidates[--many];
    int longer = code | (s->marks[vertex] & ((1 << size) - 1)) << shift;
    s->members[size] = vertex;
    count(s, size + 1, longer);
    if (size + 1 == MOST) continue;
    int32_t* next = s->candidates[size];
    memcpy(next, candidates, sizeof(int32_t) * (size_t)many);
    extend(s, size + 1, longer, enter(s, size, vertex, next, many));
    leave(s, size, vertex);
  }
}

// Adds to counts every subgraph whose least vertex lies between first and last. Returns 0, or -1 without memory.
int velocpy_count_orbits(const int64_t* begins, const int32_t* ends, int64_t vertices, int64_t most_neighbours, const uint8_t* orbits,
                         const int32_t* first_code, int64_t first, int64_t last, uint32_t* counts) {
  Search s = {.begins = begins, .ends = ends, .orbits = orbits, .first_code = first_code, .counts = counts};
  s.marks = calloc((size_t)vertices + 1, 1);
  int32_t* room = malloc(sizeof(int32_t) * (size_t)(MOST * MOST * most_neighbours + 1));
  if (s.marks == NULL || room == NULL) {
    free(s.marks);
    free(room);
    return -1;
  }
  for (int i = 0; i < MOST; i++) s.candidates[i] = room + (int64_t)i * MOST * most_neighbours;
  for (int64_t root = first; root < last; root++) {
    s.root = (int32_t)root;
    s.marks[root] |= ROOT;
    extend(&s, 1, 0, enter(&s, 0, s.root, s.candidates[0], 0));
    leave(&s, 0, s.root);
    s.marks[root] = 0;
  }
  free(s.marks);
  free(room);
  return 0;
}
