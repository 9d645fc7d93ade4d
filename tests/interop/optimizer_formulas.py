"""The formulas of docs/optimizers.md in NumPy and fp64, written from that page alone: something to begin with for whoever repeats a run
in another program. Basis rotation as it is by default, or with stage-aware refresh; tests/optim/rotation_formula_test.cpp has its other
settings.

A matrix is (out, in). step(gradient, update from 1, learning rate, delay); `weight` is the result."""

import math

import numpy


def learning_rate(update, updates, peak, warmup=0, floor=0.1):
    """decay = "cosine"."""
    if update < warmup:
        return peak * update / warmup
    p = min(1, max(0, (update - warmup) / max(1, updates - warmup)))
    return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * p)) / 2)


def clip_factor(gradients, clip):
    norm = math.sqrt(sum((g * g).sum() for g in gradients))
    return clip / (norm + 1e-6) if norm > clip else 1


class AdamW:
    def __init__(self, weight, decay=0.01, betas=(0.9, 0.999), epsilon=1e-8):
        self.weight, self.decay, self.betas, self.epsilon = weight, decay, betas, epsilon
        self.m, self.v = numpy.zeros_like(weight), numpy.zeros_like(weight)

    def average(self, g):
        b1, b2 = self.betas
        self.m = b1 * self.m + (1 - b1) * g
        self.v = b2 * self.v + (1 - b2) * g * g

    def divisor(self, t):
        return numpy.sqrt(self.v / (1 - self.betas[1] ** t)) + self.epsilon

    def direction(self, g, t):
        self.average(g)
        return self.m / (1 - self.betas[0] ** t) / self.divisor(t)

    def step(self, g, t, rate, delay):
        self.weight = (1 - rate * self.decay) * self.weight - rate * self.direction(g, t)


class NesterovAsync(AdamW):
    product = 1.0

    def direction(self, g, t):
        now, following = (self.betas[0] * (1 - 0.5 * 0.96 ** (0.004 * i)) for i in (t, t + 1))
        self.product *= now
        self.average(g)
        return ((1 - now) / (1 - self.product) * g + following / (1 - self.product * following) * self.m) / self.divisor(t)


class PipeDreamLr(AdamW):
    def __init__(self, weight, delay_warmup, **adam):
        super().__init__(weight, **adam)
        self.delay_warmup = delay_warmup

    def step(self, g, t, rate, delay):
        super().step(g, t, rate / max(1, delay) ** (1 - min(t / self.delay_warmup, 1)), delay)


class DelayCompensated(AdamW):
    def __init__(self, weight, strength=0.04, **adam):
        super().__init__(weight, **adam)
        self.strength, self.versions = strength, [weight]

    def step(self, g, t, rate, delay):
        changed = self.versions[t - 1] - self.versions[t - 1 - delay]
        super().step(g + self.strength * g * g * changed, t, rate, delay)
        self.versions.append(self.weight)


class ErrorFeedback(AdamW):
    def __init__(self, weight, **adam):
        super().__init__(weight, **adam)
        self.last = numpy.zeros_like(weight)

    def step(self, g, t, rate, delay):
        u = rate * self.decay * self.weight + rate * self.direction(g, t)
        self.weight = self.weight - u - (u - self.last if delay > 0 and self.last.any() else 0)
        self.last = u


class Muon:
    def __init__(self, weight, decay=0.01, ratio=20):
        self.weight, self.decay, self.ratio, self.momentum = weight, decay, ratio, numpy.zeros_like(weight)

    def step(self, g, t, rate, delay):
        self.momentum = 0.95 * self.momentum + 0.05 * g
        x = 0.05 * g + 0.95 * self.momentum
        rows, columns = x.shape
        if rows > columns:
            x = x.T
        x = x / (numpy.linalg.norm(x) + 1e-7)
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        if rows > columns:
            x = x.T
        rate *= self.ratio
        self.weight = (1 - rate * self.decay) * self.weight - rate * math.sqrt(max(1, rows / columns)) * x


class BasisRotation(AdamW):
    def __init__(self, weight, interval=10, betas=(0.9, 0.99), **adam):
        """interval: until the first refresh, and between later ones (a pair, for stage-aware refresh)."""
        super().__init__(weight, betas=betas, **adam)
        rows, columns = weight.shape
        self.left = _Side(rows, columns if rows >= 2 * columns else rows)
        self.right = _Side(columns, rows if columns >= 2 * rows else columns)
        self.first, self.interval = interval if isinstance(interval, tuple) else (interval, interval)
        self.m = self.v = self.turned(numpy.zeros_like(weight))

    def turned(self, x):
        return self.left.turn() @ x @ self.right.turn().T

    def turned_back(self, x):
        return self.left.turn().T @ x @ self.right.turn()

    def step(self, g, t, rate, delay):
        beta = self.betas[1]
        late = [side.thin and side.basis is not None for side in (self.left, self.right)]
        for side, x, after in zip((self.left, self.right), (g, g.T), late):
            if not after:
                side.average(x, beta)
        if t % (self.first if self.left.basis is None else self.interval) == 0:
            own = self.turned_back(self.m)
            self.v = self.left.refresh(self.v)
            self.v = self.right.refresh(self.v.T).T
            self.m = self.turned(own)
        for side, x, after in zip((self.left, self.right), (g, g.T), late):
            if after:
                side.average(x, beta)
        direction = self.turned_back(self.direction(self.turned(g), t))
        self.weight = (1 - rate * self.decay) * self.weight - rate * direction


class _Side:
    """One side of a matrix. What it is given has that side as rows."""

    def __init__(self, size, directions):
        self.size, self.directions, self.thin = size, directions, directions < size
        self.covariance, self.basis = numpy.zeros((size, directions)), None
        self.begin = orthonormal(normals(size, directions)) if self.thin else None

    def turn(self):
        one = numpy.eye(self.size)
        if not self.thin:
            return one if self.basis is None else self.basis.T
        if self.basis is None:
            return numpy.vstack([numpy.zeros((self.directions, self.size)), one])
        return numpy.vstack([self.basis.T, one - self.basis @ self.basis.T])

    def average(self, x, beta):
        image = x @ (x.T @ (self.begin if self.basis is None else self.basis)) if self.thin else x @ x.T
        self.covariance = beta * self.covariance + (1 - beta) * image

    def refresh(self, v):
        """Second moments in the new basis."""
        c, old, r = self.covariance, self.basis, self.directions
        if old is None:
            if self.thin:
                self.basis = orthonormal(c / numpy.linalg.norm(c) + 1e-7 * self.begin)
            else:
                self.basis = numpy.linalg.eigh(c)[1][:, ::-1]
            shares = self.basis**2
            held = shares.T @ v[-self.size:]
            v = numpy.vstack([held, v[r:] * numpy.maximum(0, 1 - shares.sum(1))[:, None]]) if self.thin else held
        else:
            moved, size = (c, numpy.linalg.norm(c)) if self.thin else (c @ old, numpy.trace(c))
            order = numpy.argsort(-(old * moved).sum(0), kind="stable")
            self.basis = orthonormal(moved[:, order] + (1e-7 * size + 1e-30) * old[:, order])
            v = numpy.vstack([v[:r][order], v[r:]])
        if self.thin:
            self.covariance = c @ ((self.begin if old is None else old).T @ self.basis)
        return v


def orthonormal(a):
    q, r = numpy.linalg.qr(a)
    return q * numpy.where(numpy.diag(r) < 0, -1, 1)


def normals(rows, columns):
    """What Y0 is made of."""
    values = []
    for block in range((rows * columns + 3) // 4):
        x = stream_block(0, 6, rows, 0, block)
        for u, w in ((x[0], x[1]), (x[2], x[3])):
            h, phi = math.sqrt(-2 * math.log(((u >> 8) + 1) / 2**24)), 2 * math.pi * (w >> 8) / 2**24
            values += [h * math.cos(phi), h * math.sin(phi)]
    return numpy.array(values[:rows * columns]).reshape(rows, columns)


def stream_block(seed, purpose, index, sub, block):
    """Four numbers of 32 bits, of the random stream with that key."""
    low = 2**32 - 1
    key = _mix(_mix(seed) ^ purpose)
    return _philox4x32_10([block, sub, index & low, index >> 32], [key & low, key >> 32])


def _mix(x):
    """SplitMix64's."""
    low = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & low
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & low
    x = (x ^ x >> 27) * 0x94D049BB133111EB & low
    return x ^ x >> 31


def _philox4x32_10(counter, key):
    low = 2**32 - 1
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [b >> 32 ^ counter[1] ^ key[0], b & low, a >> 32 ^ counter[3] ^ key[1], a & low]
        key = [key[0] + 0x9E3779B9 & low, key[1] + 0xBB67AE85 & low]
    return counter
