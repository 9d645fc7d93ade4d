#!/usr/bin/env python3
"""Writes PyTorch's own V-shaped schedules to CSV files in this directory: SCHEDULE-RANKS-MICROBATCHES.csv.

These files are from PyTorch 2.11. The constructors, which need stages and process groups, are bypassed: orders do not depend on them.
"""
import csv
import pathlib

from torch.distributed.pipelining.schedules import ScheduleDualPipeV, ScheduleZBVZeroBubble

SIZES = {
    ("zb-v", ScheduleZBVZeroBubble): [(1, 3), (2, 4), (3, 2), (3, 5), (4, 11)],
    ("dualpipe-v", ScheduleDualPipeV): [(1, 2), (2, 4), (2, 7), (3, 6), (4, 11)],
}

for (name, schedule_class), sizes in SIZES.items():
    for ranks, microbatches in sizes:
        schedule = schedule_class.__new__(schedule_class)
        schedule.pp_group_size = ranks
        schedule.num_stages = schedule._num_stages = 2 * ranks
        schedule._n_microbatches = microbatches
        path = pathlib.Path(__file__).parent / f"{name}-{ranks}-{microbatches}.csv"
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            for rank in range(ranks):
                writer.writerow(schedule._calculate_single_rank_operations(rank))
