"""The tandem queue of offpath's benches on SimPy: pip install simpy; python simpy_tandem.py.

Poisson arrivals 1 us apart in the mean, two exponential servers of 0.8 us in the mean. An event is an
arrival or the end of a service, three for each customer, as in the other benches; SimPy handles more.
"""
import random
import statistics
import time

import simpy

CUSTOMERS, ARRIVAL_US, SERVICE_US = 100_000, 1.0, 0.8


def server(env, inbox, leave, draws):
    while True:
        customer = yield inbox.get()
        yield env.timeout(draws.expovariate(1 / SERVICE_US))
        leave(customer)


def source(env, inbox, draws):
    for _ in range(CUSTOMERS):
        yield env.timeout(draws.expovariate(1 / ARRIVAL_US))
        inbox.put(env.now)


def run(seed):
    env, draws, spent = simpy.Environment(), random.Random(seed), []
    first, second = simpy.Store(env), simpy.Store(env)
    env.process(source(env, first, draws))
    env.process(server(env, first, second.put, draws))
    env.process(server(env, second, lambda came: spent.append(env.now - came), draws))
    began = time.perf_counter()
    env.run()
    return 3 * CUSTOMERS / (time.perf_counter() - began), statistics.mean(spent)


rates, means = zip(*(run(seed) for seed in range(5)))
print(f"simpy: {statistics.median(rates) / 1e6:.3f} M events/s, {statistics.mean(means):.2f} us in the system")
