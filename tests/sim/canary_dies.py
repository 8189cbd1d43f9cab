#!/usr/bin/env python3
"""Usage: canary_dies.py PROGRAM. Passes when the simulation over a broken rule starts and fails."""
import subprocess
import sys


def main(program):
    # Abort as well as a failed expectation counts; a run that hangs does not.
    run = subprocess.run([program, "--gtest_fail_fast"], capture_output=True, text=True, timeout=100, check=False)
    said = run.stdout + run.stderr
    if "[ RUN      ]" not in said:
        print(said)
        print("The simulation did not start.")
        return 1
    if run.returncode == 0:
        print("The rule is broken and the simulation did not notice.")
        return 1
    print("\n".join(said.splitlines()[-5:]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
