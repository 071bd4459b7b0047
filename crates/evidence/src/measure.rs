//! One measurement: an experiment at one combination of its lists.

use crate::bench::{Bench, Carried, ExperimentError, SystemKey, lacks, refused};
use crate::experiment::{Flow, Measure, Plain, Sharing, SweepAxis};
use offpath_capacity::MixObjective;
use offpath_plan::check::of_clients;
use offpath_plan::planner::Ready;
use offpath_plan::solve::{activity, host_seconds, stations};
use offpath_plan::{Design, Fold};
use offpath_quantity::{BitRate, Bytes, Quantity, Time};
use offpath_route::{AddressSpread, Demand, PathOperation, Posting, Route, Router, Verb, Visit};
use offpath_twin::{Arrivals, Load, Seed, run as run_load};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One combination of an experiment's lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) path: Option<String>,
    pub(crate) verb: Option<String>,
    pub(crate) payload: Option<String>,
    pub(crate) batch: Option<u32>,
    pub(crate) range: Option<String>,
    pub(crate) arrived: Option<String>,
    pub(crate) in_flight: Option<u32>,
    pub(crate) number: Option<String>,
    pub(crate) alternative: Option<String>,
    pub(crate) clients: Option<u64>,
    pub(crate) shares: Option<BTreeMap<String, f64>>,
}

impl Place {
    pub(crate) fn words(&self) -> String {
        let mut words: Vec<String> = [&self.alternative, &self.path, &self.verb, &self.payload, &self.number]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        words.extend(self.batch.map(|batch| format!("batch of {batch}")));
        words.extend(self.range.as_ref().map(|range| format!("over {range}")));
        words.extend(self.arrived.as_ref().map(|bytes| format!("of the newest {bytes}")));
        words.extend(self.in_flight.map(|count| format!("{count} in flight")));
        words.extend(self.clients.map(|count| format!("{count} clients")));
        for (name, share) in self.shares.iter().flatten() {
            words.push(format!("{:.0}% {name}", 100.0 * share));
        }
        words.join(" ")
    }
}

pub(crate) fn places(plain: &Plain) -> Vec<Place> {
    fn each<T: Clone>(places: Vec<Place>, values: &[T], set: fn(&mut Place, T)) -> Vec<Place> {
        if values.is_empty() {
            return places;
        }
        places
            .into_iter()
            .flat_map(|place| {
                values.iter().map(move |value| {
                    let mut more = place.clone();
                    set(&mut more, value.clone());
                    more
                })
            })
            .collect()
    }
    let places = vec![Place::default()];
    let places = each(places, &plain.alternative, |place, value| place.alternative = Some(value));
    let places = each(places, &plain.path, |place, value| place.path = Some(value));
    let places = each(places, &plain.verb, |place, value| place.verb = Some(value));
    let places = each(places, &plain.number, |place, value| place.number = Some(value));
    let places = each(places, &plain.payload, |place, value| place.payload = Some(value));
    let places = each(places, &plain.batch, |place, value| place.batch = Some(value));
    let places = each(places, &plain.range, |place, value| place.range = Some(value));
    let places = each(places, &plain.arrived, |place, value| place.arrived = Some(value));
    let places = each(places, &plain.in_flight, |place, value| place.in_flight = Some(value));
    let places = each(places, &plain.clients, |place, value| place.clients = Some(value));
    each(places, &plain.shares, |place, value| place.shares = Some(value))
}

/// How many places a sweep has of one operation, which lie side by side: an alternative, path, verb or number with its
/// places.
pub(crate) fn along(plain: &Plain) -> usize {
    let lists = [
        plain.payload.len(),
        plain.batch.len(),
        plain.range.len(),
        plain.arrived.len(),
        plain.in_flight.len(),
        plain.clients.len(),
        plain.shares.len(),
    ];
    lists.into_iter().map(|len| len.max(1)).product()
}

/// One measurement.
pub(crate) struct One<'b> {
    pub(crate) bench: &'b Bench,
    pub(crate) plain: &'b Plain,
    pub(crate) router: Arc<Router>,
    pub(crate) place: &'b Place,
    pub(crate) grid: &'b [(String, &'b SweepAxis, usize)],
    pub(crate) key: SystemKey,
}

pub(crate) type Measured = Result<(f64, Option<String>), ExperimentError>;

impl One<'_> {
    fn payload(&self) -> Result<Bytes, ExperimentError> {
        self.place.payload.as_deref().ok_or_else(|| lacks("payload"))?.parse().map_err(refused)
    }

    /// The routes of a flow: one, or two where a datagram is answered.
    fn routes(&self, path: &str, verb: &str) -> Result<Vec<Route>, ExperimentError> {
        let router = &self.router;
        let path = router.path(path).map_err(refused)?;
        let posting = match self.place.batch {
            None | Some(0) => Posting::Single,
            Some(count) => Posting::Batch(count),
        };
        let Place { range, arrived, .. } = &self.place;
        let given = range.as_ref().or(arrived.as_ref()).map(|text| text.parse().map_err(refused));
        let access =
            AddressSpread { range: given.transpose()?, arrived: arrived.is_some(), ..AddressSpread::UNIFORM };
        let payload = self.payload()?;
        let route = |verb: Verb, path: offpath_route::Path| {
            let operation = PathOperation::new(verb, path, payload).posted(posting).accessing(access);
            router.route(&operation).map_err(refused)
        };
        if verb == "echo" {
            let back = offpath_route::Path {
                requester: path.responder.clone(),
                responder: path.requester.clone(),
                engine: None,
            };
            return Ok(vec![route(Verb::SendDatagram, path)?, route(Verb::SendDatagram, back)?]);
        }
        let verb: Result<Verb, _> = verb.parse();
        Ok(vec![route(verb.map_err(refused)?, path)?])
    }

    pub(crate) fn own_routes(&self) -> Result<Vec<Route>, ExperimentError> {
        let path = self.place.path.as_deref().ok_or_else(|| lacks("path"))?;
        let verb = self.place.verb.as_deref().ok_or_else(|| lacks("verb"))?;
        self.routes(path, verb)
    }

    /// A route's demand, or its links' alone.
    fn fold(&self, route: &Route) -> Fold {
        let mut fold = Fold::of(route, &self.router);
        self.keep_links(&mut fold);
        fold
    }

    fn keep_links(&self, fold: &mut Fold) {
        if self.bench.links_alone {
            fold.requests.clear();
            let is_wire =
                |name: &str| self.router.stations().iter().any(|one| one.wire.is_some() && one.name == name);
            fold.seconds.retain(|station, _| is_wire(station));
        }
    }

    fn latency(&self, router: &Router, routes: &[Route]) -> f64 {
        if self.bench.links_alone {
            let links = |route: &Route| -> f64 {
                let mut route = route.clone();
                route.visits.retain(|visit| matches!(visit, Visit::Delay { .. } | Visit::Train(_)));
                route.latency(router).as_us()
            };
            return routes.iter().map(links).sum();
        }
        match &self.plain.term {
            None => routes.iter().map(|route| route.latency(router).as_us()).sum(),
            Some(term) => routes
                .iter()
                .flat_map(|route| route.unloaded(router).terms)
                .filter(|one| one.label == *term)
                .map(|one| one.time.as_us())
                .sum(),
        }
    }

    pub(crate) fn measure(&self) -> Measured {
        match self.plain.measure {
            Measure::Latency => Ok((self.latency(&self.router, &self.own_routes()?), None)),
            Measure::Rate => self.rate(),
            Measure::Bandwidth => {
                let (rate, binding) = self.rate()?;
                Ok((rate * self.payload()?.get() as f64 * 8.0 / 1e3, binding))
            }
            Measure::BlockingBandwidth => {
                let latency_us = self.latency(&self.router, &self.own_routes()?);
                Ok((self.payload()?.get() as f64 * 8.0 / latency_us / 1e3, None))
            }
            Measure::Posting => {
                let routes = self.own_routes()?;
                Ok((routes.iter().map(|route| route.post_time().as_us()).sum(), None))
            }
            Measure::PostingBandwidth => {
                let (rate, binding) = self.posted_rate()?;
                Ok((rate * self.payload()?.get() as f64 * 8.0 / 1e3, binding))
            }
            Measure::Threads | Measure::Budget => self.threads(),
            Measure::Packets => {
                let counted = self.packets()?;
                let (rate, binding) = match &self.plain.at {
                    Some(at) => {
                        let rate: BitRate = at.parse().map_err(refused)?;
                        (rate.as_gbit_per_s() * 1e3 / (self.payload()?.get() as f64 * 8.0), None)
                    }
                    None => self.rate()?,
                };
                Ok((rate * counted, binding))
            }
            Measure::PacketCount => Ok((self.packets()?, None)),
            Measure::Crossings => {
                let routes = self.own_routes()?;
                let ledgers: Vec<_> = routes.iter().map(|route| route.ledger(&self.router)).collect();
                let payload: u64 = routes.iter().map(|route| route.payload.get()).sum();
                let carried: u64 = ledgers
                    .iter()
                    .flat_map(|ledger| &ledger.links)
                    .filter(|(station, _)| self.on_links(station))
                    .map(|(_, packets)| packets.payload.get())
                    .sum();
                Ok((carried as f64 / payload as f64, None))
            }
            Measure::RoundTrips => {
                let crossings = self
                    .own_routes()?
                    .iter()
                    .flat_map(|route| &route.visits)
                    .filter(|visit| matches!(visit, Visit::Cross { .. }))
                    .count();
                Ok((crossings as f64 / 2.0, None))
            }
            Measure::Holds => self.holds(),
            Measure::Number => {
                let name = self.place.number.as_deref().ok_or_else(|| lacks("number"))?;
                let value = self.number(name)?;
                Ok((value / self.plain.per.as_deref().map_or(Ok(1.0), |per| self.number(per))?, None))
            }
            Measure::Cycles => {
                let name = self.place.number.as_deref().ok_or_else(|| lacks("number"))?;
                let clock = self.plain.clock.as_deref().ok_or_else(|| lacks("clock"))?;
                Ok((self.number(name)? * self.number(clock)?, None))
            }
            Measure::Mmios => {
                let mmios = self
                    .own_routes()?
                    .iter()
                    .flat_map(|route| &route.visits)
                    .map(|visit| match visit {
                        Visit::Serve { label, .. } if *label == "post (MMIO)" => 1.0,
                        // One doorbell stands for the whole list.
                        Visit::Serve { label, .. } if *label == "post (doorbell batch)" => {
                            1.0 / f64::from(self.place.batch.unwrap_or(1).max(1))
                        }
                        _ => 0.0,
                    })
                    .sum::<f64>();
                Ok((mmios * f64::from(self.place.batch.unwrap_or(1).max(1)), None))
            }
            Measure::LinkUse => {
                let routes = self.own_routes()?;
                let payload: u64 = routes.iter().map(|route| route.payload.get()).sum();
                let framed: u64 = routes
                    .iter()
                    .flat_map(|route| route.ledger(&self.router).links)
                    .filter(|(station, _)| self.is_pcie(station))
                    .map(|(_, packets)| packets.framed.get())
                    .sum();
                Ok((payload as f64 / framed as f64, None))
            }
            Measure::Loop | Measure::LoopLatency => self.closed_loop(),
            Measure::LoopRate | Measure::LoopTotal => self.loops(),
            Measure::DesignRate
            | Measure::DesignBandwidth
            | Measure::DesignLatency
            | Measure::DesignHostCpu
            | Measure::DesignNetworkBytes
            | Measure::DesignVerbs
            | Measure::DesignLinkBytes
            | Measure::DesignClients => self.design(),
            Measure::DesignBreakEven => self.break_even(),
        }
    }

    /// A number of the profile, or a product of several as in `soc.cores * soc.frequency`.
    fn number(&self, names: &str) -> Result<f64, ExperimentError> {
        names.split(" * ").try_fold(1.0, |product, name| Ok(product * self.one_number(name)?))
    }

    fn one_number(&self, name: &str) -> Result<f64, ExperimentError> {
        let system = self.router.system();
        let number = system.numbers.get(name).ok_or_else(|| {
            ExperimentError::Incomplete(format!("reads `{name}`, which {} does not have", system.device))
        })?;
        Ok(match number.value {
            Quantity::Time(time) => time.as_us(),
            Quantity::BitRate(rate) => rate.as_gbit_per_s(),
            Quantity::OpRate(rate) => rate.as_million_per_s(),
            Quantity::Frequency(frequency) => frequency.hz() as f64 / 1e6,
            other => other.base(),
        })
    }

    /// The greatest rate in millions per second of one thread of the requester's processor, and what binds.
    fn posted_rate(&self) -> Measured {
        let (rate, binding) = self.rate()?;
        let routes = self.own_routes()?;
        let requester = &routes.first().ok_or_else(|| lacks("verb"))?.path.requester;
        let cpu = self.router.processor(requester).ok_or_else(|| lacks("path"))?;
        let of =
            |route: &Route| route.demand(&self.router).time.get(&cpu).copied().unwrap_or_default().as_us();
        let own: f64 = routes.iter().map(of).sum();
        Ok(match own * rate > 1.0 && !self.bench.links_alone {
            true => (own.recip(), Some(self.router.stations()[cpu.index()].name.clone())),
            false => (rate, binding),
        })
    }

    /// How many threads of the responder's processor keep up with all other stations, or how long each of all may take for
    /// an operation so that they keep up with the port.
    fn threads(&self) -> Measured {
        let routes = self.own_routes()?;
        let responder = &routes.first().ok_or_else(|| lacks("verb"))?.path.responder;
        let cpu = self.router.processor(responder).ok_or_else(|| lacks("path"))?;
        let servers = self.router.stations()[cpu.index()].servers() as f64;
        let mut demand = Demand::default();
        routes.iter().for_each(|route| demand.add(&route.demand(&self.router)));
        let own = demand.time.remove(&cpu).unwrap_or_default().as_seconds();
        if self.plain.measure == Measure::Budget {
            demand.time.retain(|station, _| self.router.stations()[station.index()].wire.is_some());
            (demand.requests, demand.banks) = (BTreeMap::new(), BTreeMap::new());
        }
        let (rate, station) =
            demand.capacity(&self.router).ok_or_else(|| refused("nothing else bounds it"))?;
        let name = Some(self.router.stations()[station.index()].name.clone());
        // As many threads as are busy at that rate; a hair above a whole number is that number.
        Ok(match self.plain.measure {
            Measure::Budget => (servers / rate * 1e6, name),
            _ => ((own * rate - 1e-9).ceil(), name),
        })
    }

    /// The links that count: those that are named, else all PCIe links of the server.
    fn on_links(&self, station: &str) -> bool {
        if self.plain.links.is_empty() {
            return self.is_pcie(station);
        }
        self.plain
            .links
            .iter()
            .any(|link| station == link || station.rsplit_once('.').is_some_and(|(of, _)| of == link))
    }

    fn is_pcie(&self, station: &str) -> bool {
        let Some((link, _)) = station.rsplit_once('.') else { return false };
        self.router
            .system()
            .machines
            .iter()
            .filter(|machine| machine.prefix.is_empty())
            .any(|machine| machine.links.iter().any(|own| own.name == link && own.pcie.is_some()))
    }

    fn packets(&self) -> Result<f64, ExperimentError> {
        let packets: u64 = self
            .own_routes()?
            .iter()
            .flat_map(|route| route.ledger(&self.router).links)
            .filter(|(station, _)| self.on_links(station))
            .map(|(_, packets)| packets.data)
            .sum();
        Ok((packets + if self.plain.control { self.read_requests()? } else { 0 }) as f64)
    }

    /// Read requests on the links that count.
    fn read_requests(&self) -> Result<u64, ExperimentError> {
        let mut packets = 0;
        for route in self.own_routes()? {
            for visit in &route.visits {
                let Visit::Train(train) = visit else { continue };
                let on = |one: &&offpath_route::Requests| {
                    self.on_links(&self.router.stations()[one.station.index()].name)
                };
                packets +=
                    train.requests.iter().filter(on).map(|one| route.payload.packets(one.limit)).sum::<u64>();
            }
        }
        Ok(packets)
    }

    /// How many times the latency holds a number: its growth over the number's.
    fn holds(&self) -> Measured {
        let name = self.place.number.as_deref().ok_or_else(|| lacks("number"))?;
        let step = Time::from_ns(100);
        let Some(Quantity::Time(base)) = self.router.system().numbers.get(name).map(|number| number.value)
        else {
            return Err(ExperimentError::Incomplete(format!(
                "counts `{name}`, which is not a time of the profile"
            )));
        };
        let moved = Quantity::Time(base + step);
        let system = self.router.system().with(name, moved).map_err(refused)?;
        let other = Arc::new(Router::new(&system).map_err(refused)?);
        let moved = One {
            bench: self.bench,
            plain: self.plain,
            router: other.clone(),
            place: self.place,
            grid: self.grid,
            key: self.key.clone(),
        };
        let before = self.latency(&self.router, &self.own_routes()?);
        let after = moved.latency(&other, &moved.own_routes()?);
        Ok(((after - before) / step.as_us(), None))
    }

    /// The greatest rate in millions per second, and what binds.
    fn rate(&self) -> Measured {
        if self.plain.together.is_empty() && !self.bench.links_alone {
            let mut demand = Demand::default();
            for route in self.own_routes()? {
                demand.add(&route.demand(&self.router));
            }
            let (rate, station) =
                demand.capacity(&self.router).ok_or_else(|| refused("nothing bounds this operation"))?;
            return Ok((rate / 1e6, Some(self.router.stations()[station.index()].name.clone())));
        }
        let mut problem = stations(&self.router, None);
        let own = self.place.path.iter().map(|path| Flow { path: path.clone(), ..Flow::default() }).collect();
        let flows = if self.plain.together.is_empty() { own } else { self.plain.together.clone() };
        for (index, flow) in flows.iter().enumerate() {
            problem.activities.push(activity(&index.to_string(), &self.flow(flow)?, &self.router));
        }
        let names: Vec<String> = (0..flows.len()).map(|index| index.to_string()).collect();
        let (objective, counted): (MixObjective, Option<&String>) = match self.plain.sharing {
            Sharing::Most => (MixObjective::Throughput, None),
            Sharing::Shares => {
                let shares = names
                    .iter()
                    .zip(&flows)
                    .map(|(name, flow)| (name.clone(), flow.share.unwrap_or(1.0 / names.len() as f64)));
                (MixObjective::Shares(shares.collect()), None)
            }
            Sharing::InOrder => (MixObjective::Greedy(names.clone()), None),
            Sharing::LastInOrder => (MixObjective::Greedy(names.clone()), names.last()),
        };
        let solution = problem.solve(&objective).map_err(refused)?;
        let binding = solution.binding.first().map(|binding| binding.constraint.to_string());
        let rate = match counted {
            None => solution.total,
            Some(name) => solution.rates.get(name).copied().unwrap_or(0.0),
        };
        Ok((rate / 1e6, binding))
    }

    fn flow(&self, flow: &Flow) -> Result<Fold, ExperimentError> {
        let verb = flow.verb.as_deref().or(self.place.verb.as_deref()).ok_or_else(|| lacks("verb"))?;
        let mut fold = Fold::default();
        for route in self.routes(&flow.path, verb)? {
            fold.add(&self.fold(&route), 1.0);
        }
        Ok(fold)
    }

    fn closed_loop(&self) -> Measured {
        let in_flight = self.place.in_flight.ok_or_else(|| lacks("in_flight"))?;
        let verb = |flow: Option<&Flow>| -> Result<String, ExperimentError> {
            let own = flow.and_then(|flow| flow.verb.as_deref()).or(self.place.verb.as_deref());
            Ok(own.ok_or_else(|| lacks("verb"))?.to_string())
        };
        let mut mix = Vec::new();
        if self.plain.together.is_empty() {
            for route in self.own_routes()? {
                mix.push((Arc::new(route), 1.0));
            }
        }
        for flow in &self.plain.together {
            for route in self.routes(&flow.path, &verb(Some(flow))?)? {
                mix.push((Arc::new(route), flow.share.unwrap_or(1.0)));
            }
        }
        let router = &self.router;
        let latency_s = mix.iter().map(|(route, _)| route.latency(router).as_seconds()).fold(0.0, f64::max);
        let requesters = mix
            .iter()
            .filter_map(|(route, _)| router.machine_of(&route.path.requester))
            .map(|machine| router.system().machines[machine].count)
            .max()
            .unwrap_or(1);
        let in_flight = in_flight * u32::try_from(requesters).unwrap_or(u32::MAX);
        let span = |times: f64| Time::from_seconds(latency_s * times);
        let seen = run_load(
            router,
            &Load {
                mix,
                arrivals: Arrivals::Closed { in_flight },
                warm_up: span(20.0),
                window: span(200.0),
                seed: Seed::new(1),
                faults: None,
            },
        )
        .map_err(refused)?;
        let value = match self.plain.measure {
            Measure::LoopLatency => seen
                .latencies
                .mean()
                .map(Time::as_us)
                .ok_or_else(|| refused("no request ended in the window"))?,
            _ => seen.throughput_per_s * self.payload()?.get() as f64 * 8.0 / 1e9,
        };
        Ok((value, None))
    }

    /// The rate of the first flow, or of all, where every flow keeps its own requests in flight.
    fn loops(&self) -> Measured {
        let mut flows = Vec::new();
        for flow in &self.plain.together {
            let verb = flow.verb.as_deref().or(self.place.verb.as_deref()).ok_or_else(|| lacks("verb"))?;
            let in_flight = flow.in_flight.ok_or_else(|| lacks("in_flight"))?;
            flows.push((flow.path.clone(), verb.to_string(), in_flight));
        }
        let carried = self.bench.carried(&self.key, flows.clone(), self.place, || self.run_loops(&flows))?;
        let counted = match self.plain.measure {
            Measure::LoopTotal => carried.turns,
            _ => carried.turns_of_first,
        };
        Ok((counted as f64 / carried.window_s / 1e6, None))
    }

    fn run_loops(&self, flows: &[(String, String, u32)]) -> Result<Carried, ExperimentError> {
        let mut mix = Vec::new();
        for (path, verb, in_flight) in flows {
            // An echo is one turn of its loop: the answer follows the message at once.
            let route = self.routes(path, verb)?.into_iter().reduce(|mut there, back| {
                there.visits.extend(back.visits);
                there
            });
            let route = route.ok_or_else(|| lacks("verb"))?;
            mix.push((Arc::new(route), f64::from(*in_flight)));
        }
        let total: f64 = mix.iter().map(|(_, count)| count).sum();
        let slowest = mix.iter().map(|(route, _)| {
            let capacity =
                route.demand(&self.router).capacity(&self.router).map_or(f64::INFINITY, |(rate, _)| rate);
            route.latency(&self.router).as_seconds().max(total / capacity)
        });
        let turn = slowest.fold(0.0, f64::max);
        let span = |times: f64| Time::from_seconds(turn * times);
        let load = Load {
            mix,
            arrivals: Arrivals::Loops,
            warm_up: span(4.0),
            window: span(12.0),
            seed: Seed::new(1),
            faults: None,
        };
        let seen = run_load(&self.router, &load).map_err(refused)?;
        Ok(Carried {
            turns: seen.completed,
            turns_of_first: seen.completed_of.first().copied().unwrap_or(0),
            window_s: load.window.as_seconds(),
        })
    }

    /// The parameter at which an alternative is as fast as another, by bisection.
    fn break_even(&self) -> Measured {
        let sought = self.plain.break_even.as_ref().ok_or_else(|| lacks("break_even"))?;
        let faster = |value: f64| -> Result<bool, ExperimentError> {
            let mut plain = self.plain.clone();
            plain.measure = Measure::DesignRate;
            plain.parameters.insert(sought.parameter.clone(), format!("{value:.6}"));
            let rate = |name: &str| -> Result<f64, ExperimentError> {
                let place = Place { alternative: Some(name.to_string()), ..self.place.clone() };
                let one = One {
                    bench: self.bench,
                    plain: &plain,
                    router: self.router.clone(),
                    place: &place,
                    grid: self.grid,
                    key: self.key.clone(),
                };
                Ok(one.design()?.0)
            };
            Ok(rate(self.place.alternative.as_deref().ok_or_else(|| lacks("alternative"))?)?
                > rate(&sought.with)?)
        };
        let (mut low, mut high) = (sought.from, sought.to);
        if !faster(low)? || faster(high)? {
            return Err(refused(format!("`{}` changes no places between {low} and {high}", sought.with)));
        }
        while high - low > 1e-4 {
            let middle = (low + high) / 2.0;
            if faster(middle)? { low = middle } else { high = middle }
        }
        Ok(((low + high) / 2.0, None))
    }

    fn design(&self) -> Measured {
        let mut parameters: BTreeMap<String, String> = self.plain.parameters.clone();
        for (_, axis, at) in self.grid {
            parameters.extend(axis.parameter.iter().map(|name| (name.clone(), axis.values[*at].clone())));
        }
        let prepared = self.bench.prepared(self.plain, parameters.into_iter().collect(), &self.key)?;
        let (design, ready) = &*prepared;
        let named = |name: &str| -> Result<&Ready, ExperimentError> {
            ready.iter().find(|one| one.alternative.name == name).ok_or_else(|| {
                ExperimentError::Incomplete(format!(
                    "names `{name}`, which is not an alternative of {}",
                    design.name
                ))
            })
        };
        let alternative = self.place.alternative.as_deref();
        let fold = |name: &str| -> Result<Fold, ExperimentError> {
            let one = named(name)?;
            Ok(one.compiled.fold(&one.router))
        };
        let own = || alternative.ok_or_else(|| lacks("alternative")).and_then(fold);
        match self.plain.measure {
            Measure::DesignLatency => Ok((own()?.latency * 1e6, None)),
            Measure::DesignHostCpu => {
                let name = alternative.ok_or_else(|| lacks("alternative"))?;
                let one = named(name)?;
                Ok((host_seconds(&one.compiled.fold(&one.router), &one.router) * 1e6, None))
            }
            Measure::DesignNetworkBytes => {
                let shares = self.shares(design, ready)?.0;
                let mut bytes = 0.0;
                for (name, share) in &shares {
                    bytes += share * fold(name)?.network_bytes;
                }
                Ok((bytes, None))
            }
            Measure::DesignVerbs => {
                let one = named(alternative.ok_or_else(|| lacks("alternative"))?)?;
                let path = self.place.path.as_deref();
                let on = |route: &&Route| path.is_none_or(|path| route.path.to_string() == path);
                Ok((one.compiled.routes().filter(on).count() as f64, None))
            }
            Measure::DesignLinkBytes => {
                let one = named(alternative.ok_or_else(|| lacks("alternative"))?)?;
                Ok((
                    one.compiled
                        .routes()
                        .map(|route| {
                            route
                                .ledger(&one.router)
                                .links
                                .iter()
                                .filter(|(station, _)| self.on_links(station))
                                .map(|(_, packets)| packets.payload.get() as f64)
                                .sum::<f64>()
                        })
                        .sum(),
                    None,
                ))
            }
            Measure::DesignClients => {
                let clients = self.place.clients.ok_or_else(|| lacks("clients"))?;
                let (shares, capacity, _) = self.shares(design, ready)?;
                let per_request = design.unit.map_or(1e-6, |unit| unit.get() as f64 * 8.0 / 1e9);
                // However many clients there are, links carry no more.
                if self.bench.links_alone {
                    return Ok((capacity * per_request, None));
                }
                let used: Vec<&Ready> = shares.keys().map(|name| named(name)).collect::<Result<_, _>>()?;
                let weights: Vec<f64> = shares.values().copied().collect();
                let clients = u32::try_from(clients).unwrap_or(u32::MAX);
                let carried =
                    of_clients(&used, &weights, clients, capacity, Seed::new(1)).map_err(refused)?;
                Ok((carried.mean * per_request, None))
            }
            _ => {
                let (_, total, binding) = self.shares(design, ready)?;
                let value = match self.plain.measure {
                    Measure::DesignBandwidth => total * bits(design)? / 1e9,
                    _ => total / 1e6,
                };
                Ok((value, binding))
            }
        }
    }

    /// The shares of the alternative or mix that is asked for, its greatest rate, and what binds.
    #[allow(clippy::type_complexity)]
    fn shares(
        &self,
        design: &Design,
        ready: &[Ready],
    ) -> Result<(BTreeMap<String, f64>, f64, Option<String>), ExperimentError> {
        let main = ready
            .iter()
            .find(|one| match self.place.alternative.as_deref() {
                Some(name) => one.alternative.name == name,
                None => one.alternative.device.is_none(),
            })
            .ok_or_else(|| lacks("alternative"))?;
        let mut problem = stations(&main.router, design.host_cpu_share);
        let known: BTreeSet<&str> = ready.iter().map(|one| one.alternative.name.as_str()).collect();
        for one in ready.iter().filter(|one| Arc::ptr_eq(&one.router, &main.router)) {
            let mut fold = one.compiled.fold(&one.router);
            self.keep_links(&mut fold);
            problem.activities.push(activity(&one.alternative.name, &fold, &one.router));
        }
        let objective = match (self.place.alternative.as_deref(), self.plain.mix.as_deref()) {
            (Some(name), None) => MixObjective::Shares(BTreeMap::from([(name.to_string(), 1.0)])),
            (None, Some("optimal")) => {
                problem.activities.retain(|activity| {
                    ready.iter().any(|one| one.alternative.name == activity.name && one.alternative.mixed)
                });
                MixObjective::Throughput
            }
            (None, Some(name)) => {
                let mix = design.mixes.iter().find(|mix| mix.name == name).ok_or_else(|| {
                    ExperimentError::Incomplete(format!(
                        "names `{name}`, which is not a mix of {}",
                        design.name
                    ))
                })?;
                MixObjective::Greedy(mix.fill.clone())
            }
            (None, None) if self.place.shares.is_some() => {
                let shares = self.place.shares.clone().unwrap_or_default();
                if let Some(stranger) = shares.keys().find(|name| !known.contains(name.as_str())) {
                    return Err(ExperimentError::Incomplete(format!(
                        "shares `{stranger}`, which is not an alternative"
                    )));
                }
                MixObjective::Shares(shares)
            }
            _ => {
                return Err(ExperimentError::Incomplete(
                    "needs one of `alternative`, `mix`, `shares`".to_string(),
                ));
            }
        };
        let solution = problem.solve(&objective).map_err(refused)?;
        let shares = solution.shares.into_iter().filter(|(_, share)| *share > 1e-9).collect();
        let binding = solution.binding.first().map(|binding| binding.constraint.to_string());
        Ok((shares, solution.total, binding))
    }
}

fn bits(design: &Design) -> Result<f64, ExperimentError> {
    let unit =
        design.unit.ok_or_else(|| refused(format!("design {} counts requests, not bytes", design.name)))?;
    Ok(unit.get() as f64 * 8.0)
}
