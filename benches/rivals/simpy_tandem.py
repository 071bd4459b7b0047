"""The tandem queue of offpath's benches on SimPy: pip install simpy; python simpy_tandem.py.

Poisson arrivals 1 us apart in the mean, two exponential servers of 0.8 us in the mean. An event is an
arrival or the end of a service, three for each customer, as in the other benches. Once as SimPy's users
write it, with processes and stores, whose events of its own are not counted; and once with callbacks on
timeouts and two queues, which is what the other benches do.
"""
import collections
import random
import statistics
import time

import simpy

CUSTOMERS, ARRIVAL_US, SERVICE_US = 100_000, 1.0, 0.8


def processes(env, draws, spent):
    def server(inbox, leave):
        while True:
            customer = yield inbox.get()
            yield env.timeout(draws.expovariate(1 / SERVICE_US))
            leave(customer)

    def source(inbox):
        for _ in range(CUSTOMERS):
            yield env.timeout(draws.expovariate(1 / ARRIVAL_US))
            inbox.put(env.now)

    first, second = simpy.Store(env), simpy.Store(env)
    env.process(source(first))
    env.process(server(first, second.put))
    env.process(server(second, lambda came: spent.append(env.now - came)))


def callbacks(env, draws, spent):
    first, second = collections.deque(), collections.deque()

    def after(mean, what):
        simpy.events.Timeout(env, draws.expovariate(1 / mean)).callbacks.append(what)

    def join(queue, customer, served):
        queue.append(customer)
        if len(queue) == 1:
            after(SERVICE_US, served)

    def arrive(_, left=iter(range(CUSTOMERS - 1))):
        join(first, env.now, leave_first)
        if next(left, None) is not None:
            after(ARRIVAL_US, arrive)

    def leave_first(_):
        join(second, first.popleft(), leave_second)
        if first:
            after(SERVICE_US, leave_first)

    def leave_second(_):
        spent.append(env.now - second.popleft())
        if second:
            after(SERVICE_US, leave_second)

    after(ARRIVAL_US, arrive)


def run(build, seed):
    env, draws, spent = simpy.Environment(), random.Random(seed), []
    build(env, draws, spent)
    began = time.perf_counter()
    env.run()
    assert len(spent) == CUSTOMERS
    return 3 * CUSTOMERS / (time.perf_counter() - began), statistics.mean(spent)


for build in processes, callbacks:
    rates, means = zip(*(run(build, seed) for seed in range(5)))
    rate, mean = statistics.median(rates) / 1e6, statistics.mean(means)
    print(f"simpy, {build.__name__}: {rate:.3f} M events/s, {mean:.2f} us in the system")
