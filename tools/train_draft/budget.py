"""Time that a run may take."""
import time

TRAINING_TICK_S = 30.0     # far more than a batch takes
GENERATING_TICK_S = 3600.0


class Budget:
    """Counts the seconds between calls of spent(), each time `longest_tick` at most: so much does a process lose that was
    suspended, or a laptop that slept."""

    def __init__(self, seconds, longest_tick, clock=time.monotonic):
        self.seconds, self.longest_tick, self.clock = seconds, longest_tick, clock
        self.used, self.last = 0.0, clock()

    def spent(self):
        """Share of the budget that is used, from 0; 1 and above: it is over."""
        now = self.clock()
        self.used += min(now - self.last, self.longest_tick)
        self.last = now
        return self.used / self.seconds if self.seconds > 0 else 1.0
