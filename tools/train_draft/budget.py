"""Time that a run may take."""
import time

LONGEST_TICK_S = 30.0


class Budget:
    """Counts the seconds between calls of spent(). A process that was suspended, or a laptop that slept, loses at most
    LONGEST_TICK_S of them."""

    def __init__(self, seconds, clock=time.monotonic):
        self.seconds, self.clock = seconds, clock
        self.used, self.last = 0.0, clock()

    def spent(self):
        """Share of the budget that is used, from 0; 1 and above: it is over."""
        now = self.clock()
        self.used += min(now - self.last, LONGEST_TICK_S)
        self.last = now
        return self.used / self.seconds if self.seconds > 0 else 1.0
