/* When the card worked for this process lately: each moment is told once, however many streams had
 * work then, and whenever that becomes known. */
#include "meter.h"

enum { SPANS = 64 };
static struct { Span spans[SPANS]; int count; uint64_t dropped; } lines[SHARE_CARDS];

/* With the lock held: take a span in; return how much of it is new. */
uint64_t timeline_add(int card, Span span) {
    Span *spans = lines[card].spans;
    int count = lines[card].count, kept = 0;
    if (span.from < lines[card].dropped) span.from = lines[card].dropped;
    if (span.to <= span.from) return 0;
    uint64_t fresh = span.to - span.from, old = 0;
    Span whole = span;
    for (int i = 0; i < count; i++) {
        Span one = spans[i];
        if (one.to < span.from || one.from > span.to) {
            spans[kept++] = one;
            continue;
        }
        uint64_t from = one.from > span.from ? one.from : span.from, to = one.to < span.to ? one.to : span.to;
        if (to > from) old += to - from;
        if (one.from < whole.from) whole.from = one.from;
        if (one.to > whole.to) whole.to = one.to;
    }
    if (kept == SPANS) {
        int first = 0;
        for (int i = 1; i < kept; i++)
            if (spans[i].from < spans[first].from) first = i;
        lines[card].dropped = spans[first].to;
        spans[first] = spans[--kept];
    }
    spans[kept++] = whole;
    lines[card].count = kept;
    return fresh > old ? fresh - old : 0;
}

void timeline_clear(void) { memset(lines, 0, sizeof lines); }
