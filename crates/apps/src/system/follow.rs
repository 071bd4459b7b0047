//! Following the code of one request, from which plans learn what it demands.

use super::values::Given;
use offpath_fabric::{Fabric, Role};
use offpath_quantity::Time;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Requests that are made in a row. The first looks up what later ones know, and is not counted.
pub const REQUESTS: u64 = 3;
/// Longer than any request: an idle twin answers, and asking again would be counted.
pub const PATIENCE: Time = Time::from_ms(60_000);

/// What is to be followed.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The alternative's label.
    pub alternative: &'a str,
    /// The operation of the workload, or `request` where all are alike.
    pub operation: &'a str,
    /// What the design tells the system.
    pub given: &'a Given,
    /// The share of the requests that find what they read in a cache.
    pub hit_ratio: f64,
}

/// What a request may do.
#[derive(Clone, Debug)]
pub enum Course<C> {
    /// One thing.
    Straight(C),
    /// One with this probability, else the other.
    Branch {
        /// From 0 to 1.
        probability: f64,
        /// With it.
        then: Box<Course<C>>,
        /// Else.
        otherwise: Box<Course<C>>,
    },
}

/// Marks where a followed request begins and ends.
#[derive(Clone)]
pub struct Follow {
    begin: Rc<dyn Fn(Time)>,
    end: Rc<dyn Fn(Time)>,
}

impl Follow {
    /// Marks that call these with the time of their fabric.
    pub fn new(begin: impl Fn(Time) + 'static, end: impl Fn(Time) + 'static) -> Follow {
        Follow { begin: Rc::new(begin), end: Rc::new(end) }
    }

    /// Awaits one request between its marks.
    pub async fn request<F: Fabric, T>(&self, fabric: &F, request: impl Future<Output = T>) -> T {
        (self.begin)(fabric.now());
        let answer = request.await;
        (self.end)(fabric.now());
        answer
    }
}

/// One thing that a request may do, set up to be followed.
pub trait FollowedCode: Clone + 'static {
    /// What requests of an alternative do; refused where it has no such operation.
    fn courses(asked: &Asked<'_>) -> Result<Course<Self>, String>;

    /// The objects of the design that regions stand for, by a region's length in bytes.
    fn objects(&self) -> BTreeMap<u64, String> {
        BTreeMap::new()
    }

    /// The roles. One makes [`REQUESTS`] requests, each in [`Follow::request`]; who waits for requests is in
    /// the background. An error says why the code cannot be on this platform.
    fn roles<F: Fabric>(&self, follow: &Follow) -> Vec<Role<F, Result<(), String>>>;
}
