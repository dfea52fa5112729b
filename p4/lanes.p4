// SPDX-License-Identifier: Apache-2.0
// Number of lanes of a packet, at compile time (-D ATP_LANES=62), and repetition: P4 has no loop that all compilers
// take.
#ifndef ATP_LANES_P4
#define ATP_LANES_P4

#ifndef ATP_LANES
#define ATP_LANES 62
#endif

#define ATP_1(WORK, AT) WORK(AT)
#define ATP_2(WORK, AT) ATP_1(WORK, AT) ATP_1(WORK, AT + 1)
#define ATP_4(WORK, AT) ATP_2(WORK, AT) ATP_2(WORK, AT + 2)
#define ATP_8(WORK, AT) ATP_4(WORK, AT) ATP_4(WORK, AT + 4)
#define ATP_16(WORK, AT) ATP_8(WORK, AT) ATP_8(WORK, AT + 8)
#define ATP_32(WORK, AT) ATP_16(WORK, AT) ATP_16(WORK, AT + 16)
#define ATP_64(WORK, AT) ATP_32(WORK, AT) ATP_32(WORK, AT + 32)
#define ATP_128(WORK, AT) ATP_64(WORK, AT) ATP_64(WORK, AT + 64)
#define ATP_256(WORK, AT) ATP_128(WORK, AT) ATP_128(WORK, AT + 128)

// WORK(lane), once for each lane.
#if ATP_LANES == 8
#define ATP_EACH_LANE(WORK) ATP_8(WORK, 0)
#elif ATP_LANES == 62
#define ATP_EACH_LANE(WORK) ATP_32(WORK, 0) ATP_16(WORK, 32) ATP_8(WORK, 48) ATP_4(WORK, 56) ATP_2(WORK, 60)
#elif ATP_LANES == 352
#define ATP_EACH_LANE(WORK) ATP_256(WORK, 0) ATP_64(WORK, 256) ATP_32(WORK, 320)
#else
#error ATP_LANES is none of 8, 62 and 352
#endif

#endif
