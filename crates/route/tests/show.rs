use offpath_profile::{Library, Request};
use offpath_quantity::*;
use offpath_route::*;
#[test]
fn show() {
    for device in ["connectx6","bluefield2"] {
    let system = Library::builtin().load(&Request { device, ..Request::default() }).unwrap();
    let r = Router::new(&system).unwrap();
    for p in r.paths() { 
        if p.to_string().contains("backup") || p.responder=="client" {continue}
        for (_, v) in &Verb::NAMES[..3] { for n in [0u64,64,256,4096,262144] {
            let Ok(route) = r.route(&Operation::new(*v, p.clone(), Bytes::new(n))) else {continue};
            let u = route.unloaded(&r);
            assert_eq!(u.latency, route.latency(&r));
            let (c,s) = route.demand(&r).capacity(&r).unwrap();
            println!("{device} {p} {v} {n}: {:.3} us  {:.2} M/s {:.1} Gb/s {} held {:?} sum {}", u.latency.as_us(), c/1e6, c*n as f64*8e-9, r.stations()[s.index()].name, u.held, u.terms.iter().map(|t|t.time).sum::<Time>().as_us());
            if n==64 && p.to_string()=="client-host" { for t in &u.terms { println!("      {} {}", t.label, t.time); } }
        }}
    }}
}
