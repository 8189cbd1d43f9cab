"""What a figure depends on beside the code: processor, memory, its raw read, the commit."""
import datetime
import json
import os
import platform
import re
import subprocess
import time


def first_match(path, pattern):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = re.search(pattern, file.read(), re.M)
    except OSError:
        return None
    return found.group(1).strip() if found else None


def describe():
    memory_kib = int(first_match("/proc/meminfo", r"^MemTotal:\s+(\d+)") or 0)
    flags = (first_match("/proc/cpuinfo", r"^flags\s*:(.*)$") or "").split()
    telling = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
    return {"cpu": first_match("/proc/cpuinfo", r"^model name\s*:(.*)$") or platform.processor(),
            "cores": len(os.sched_getaffinity(0)), "memory_gib": round(memory_kib / 2**20, 1),
            "instruction_sets": [flag for flag in telling if flag in flags],
            "kernel": platform.release()}


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def commit(root):
    def git(*words):
        return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False).stdout.strip()
    name = git("rev-parse", "--short", "HEAD") or "unknown"
    # Results of this very run are no change of what was measured.
    changed = [line for line in git("status", "--porcelain").splitlines() if "bench/results/" not in line]
    return name + ("+changes" if changed else "")


def busy_share(seconds=0.5):
    """Percent of the processors' time that others take; call it while nothing measured runs."""
    def read():
        with open("/proc/stat", encoding="ascii") as stat:
            fields = [int(word) for word in stat.readline().split()[1:9]]
        return sum(fields), fields[3] + fields[4]
    total, idle = read()
    time.sleep(seconds)
    later, idle_later = read()
    return round(100 * (1 - (idle_later - idle) / max(1, later - total)), 1)


def raw_read(bench_kernels, threads):
    """GB/s that `threads` threads read together, undisturbed; None where the bench was not built."""
    if not os.access(bench_kernels, os.X_OK):
        return None
    done = subprocess.run([bench_kernels, f"--benchmark_filter=raw_read/threads:{threads}$", "--benchmark_min_time=0.3",
                           "--benchmark_format=json"], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        return None
    rows = json.loads(done.stdout)["benchmarks"]
    # The counter is per second of one thread's processor time.
    return rows[0]["GB/s"] * rows[0]["threads"] if rows else None
