// One connection of a strict limiter: of one group of it.
#pragma once

#include "drive.h"

void wr_lane_tick(struct wr_drive *drive, uint32_t group, int64_t now_us);
void wr_lane_work(struct wr_drive *drive, uint32_t group, short ready);
void wr_lane_drop(struct wr_drive *drive, uint32_t group);
