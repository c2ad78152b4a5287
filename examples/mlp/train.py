"""Data-parallel training of a small neural network, with numpy and MPI only.

Every rank holds the same weights. For each batch a rank computes the gradient of its own share of
the samples, `Allreduce` adds the shares up, and all ranks take the same step. The number of ranks
changes the speed, never the result.

Run it as `python -m mpi4py train.py`: if one rank raises, the others are stopped too. With plain
`python` they would wait for that rank in `Allreduce` for ever.
"""

import argparse
import itertools
import sys

import numpy as np
from mpi4py import MPI

CLASSES = 3
LAYERS = (2, 64, 64, CLASSES)
BATCH = 256
LEARNING_RATE = 0.01
WANTED_ACCURACY = 0.95

world = MPI.COMM_WORLD


def spirals(count, seed):
    """Noisy points on three spirals wound into each other, and which spiral each is on."""
    random = np.random.default_rng(seed)
    labels = random.integers(CLASSES, size=count)
    radius = np.sqrt(random.uniform(0.02, 1.0, size=count))
    angle = 6.0 * radius + labels * 2.0 * np.pi / CLASSES + random.normal(0.0, 0.4, size=count)
    return np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1), labels


class Network:
    """A multilayer perceptron. All weights and gradients lie in one array each, so that one
    message carries them; `layers` and `slopes` are views into those arrays."""

    def __init__(self, seed):
        shapes = list(itertools.pairwise(LAYERS))
        self.weights = np.zeros(sum((inputs + 1) * outputs for inputs, outputs in shapes))
        self.gradient = np.zeros_like(self.weights)
        self.layers, self.slopes = [], []
        random, start = np.random.default_rng(seed), 0
        for inputs, outputs in shapes:
            size = (inputs + 1) * outputs  # the last row is the bias
            part = slice(start, start + size)
            self.layers.append(self.weights[part].reshape(inputs + 1, outputs))
            self.slopes.append(self.gradient[part].reshape(inputs + 1, outputs))
            self.layers[-1][:-1] = random.normal(0.0, np.sqrt(2.0 / inputs), (inputs, outputs))
            start += size

    def forward(self, points):
        """The input of every layer, and the score of every class at the end."""
        values = [points]
        for number, layer in enumerate(self.layers):
            scores = values[-1] @ layer[:-1] + layer[-1]
            last = number == len(self.layers) - 1
            values.append(scores if last else np.maximum(scores, 0.0))
        return values

    def backward(self, points, labels):
        """Fills `gradient` for these samples, and returns their loss; both are sums."""
        *values, scores = self.forward(points)
        chances = np.exp(scores - scores.max(axis=1, keepdims=True, initial=0.0))
        chances /= chances.sum(axis=1, keepdims=True)
        mine = np.arange(len(labels)), labels
        loss = -np.log(chances[mine]).sum()
        error = chances
        error[mine] -= 1.0
        for layer, slope, value in zip(
            reversed(self.layers), reversed(self.slopes), reversed(values), strict=True
        ):
            slope[:-1] = value.T @ error
            slope[-1] = error.sum(axis=0)
            error = (error @ layer[:-1].T) * (value > 0.0)
        return loss


class Adam:
    """Steps that adapt to how large and how steady the gradient of each weight is."""

    def __init__(self, weights):
        self.weights = weights
        self.mean, self.square, self.steps = np.zeros_like(weights), np.zeros_like(weights), 0

    def step(self, gradient):
        self.steps += 1
        self.mean += 0.1 * (gradient - self.mean)
        self.square += 0.01 * (gradient**2 - self.square)
        mean = self.mean / (1.0 - 0.9**self.steps)
        square = self.square / (1.0 - 0.99**self.steps)
        self.weights -= LEARNING_RATE * mean / (np.sqrt(square) + 1e-8)


def train(network, points, labels, epochs):
    world.Bcast(network.weights, root=0)  # all ranks start from the same weights
    optimizer = Adam(network.weights)
    order = np.random.default_rng(2)  # seeded alike, so all ranks agree on the batches
    for epoch in range(1, epochs + 1):
        loss = 0.0
        for batch in np.array_split(order.permutation(len(points)), len(points) // BATCH):
            share = batch[world.rank :: world.size]
            loss += network.backward(points[share], labels[share])
            world.Allreduce(MPI.IN_PLACE, network.gradient)
            optimizer.step(network.gradient / len(batch))
        loss = world.allreduce(loss) / len(points)
        if world.rank == 0:
            print(f"epoch {epoch}/{epochs} loss {loss:.4f}", flush=True)


def measure(network, points, labels):
    """How many of the samples the network gets right; every rank looks at its share."""
    share = slice(world.rank, None, world.size)
    guesses = network.forward(points[share])[-1].argmax(axis=1)
    return world.allreduce(int((guesses == labels[share]).sum())) / len(points)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    epochs = parser.parse_args().epochs

    network = Network(seed=1)
    train(network, *spirals(4096, seed=3), epochs)
    accuracy = measure(network, *spirals(2000, seed=4))
    if world.rank == 0:
        print(f"accuracy: {accuracy:.4f}", flush=True)
        if accuracy < WANTED_ACCURACY:
            sys.exit(f"accuracy is below {WANTED_ACCURACY}: give more than --epochs {epochs}")


if __name__ == "__main__":
    main()
