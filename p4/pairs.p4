// SPDX-License-Identifier: Apache-2.0
// Number of pairs of lanes of a pipeline, at compile time (-D ATP_PAIRS=31), and repetition.
#ifndef ATP_PAIRS_P4
#define ATP_PAIRS_P4

#ifndef ATP_PAIRS
#define ATP_PAIRS 31
#endif

// WORK(number), once for each pair. On Tofino 1, the first three are in the stage of `after`, the others in seven
// stages.
#define ATP_FIRST_PAIRS(WORK) WORK(0) WORK(1) WORK(2)
#define ATP_PAIRS_4(WORK) WORK(3) WORK(4) WORK(5) WORK(6)
#define ATP_PAIRS_8(WORK) ATP_PAIRS_4(WORK) WORK(7) WORK(8) WORK(9) WORK(10)
#define ATP_PAIRS_12(WORK) ATP_PAIRS_8(WORK) WORK(11) WORK(12) WORK(13) WORK(14)
#define ATP_PAIRS_16(WORK) ATP_PAIRS_12(WORK) WORK(15) WORK(16) WORK(17) WORK(18)
#define ATP_PAIRS_20(WORK) ATP_PAIRS_16(WORK) WORK(19) WORK(20) WORK(21) WORK(22)
#define ATP_PAIRS_24(WORK) ATP_PAIRS_20(WORK) WORK(23) WORK(24) WORK(25) WORK(26)
#define ATP_PAIRS_28(WORK) ATP_PAIRS_24(WORK) WORK(27) WORK(28) WORK(29) WORK(30)
#if ATP_PAIRS == 31
#define ATP_LATER_PAIRS(WORK) ATP_PAIRS_28(WORK)
#elif ATP_PAIRS == 27
#define ATP_LATER_PAIRS(WORK) ATP_PAIRS_24(WORK)
#elif ATP_PAIRS == 23
#define ATP_LATER_PAIRS(WORK) ATP_PAIRS_20(WORK)
#elif ATP_PAIRS == 19
#define ATP_LATER_PAIRS(WORK) ATP_PAIRS_16(WORK)
#elif ATP_PAIRS == 7
#define ATP_LATER_PAIRS(WORK) ATP_PAIRS_4(WORK)
#elif ATP_PAIRS == 4
#define ATP_LATER_PAIRS(WORK) WORK(3)
#else
#error ATP_PAIRS is none of 4, 7, 19, 23, 27 and 31
#endif
#define ATP_EACH_PAIR(WORK) ATP_FIRST_PAIRS(WORK) ATP_LATER_PAIRS(WORK)

#endif
