//! Development tasks.
use std::path::PathBuf;
use std::sync::Arc;
use analysis::load::{LoadOptions, load};
use analysis::{recover, verify, replay as areplay};
use replay::policy;
fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let mode = args.next().unwrap();
    let mut options = LoadOptions::default();
    let mut specs: Vec<String> = vec![];
    for arg in args {
        if let Some((k, v)) = arg.split_once('=') {
            if k == "accesses" { options.accesses = Some(PathBuf::from(v)); } else if k == "policy" { specs.push(v.into()); } else { options.set.push((k.into(), v.into())); }
            continue;
        }
        let path = PathBuf::from(&arg);
        let loaded = match load(&path, &options) { Ok(l) => l, Err(e) => { println!("{arg}: {e}"); continue; } };
        let mut source = loaded.source;
        let own = recover::recover(&mut source);
        if mode == "verify" {
            let policy = match specs.first() { Some(s) => policy::parse(s)?, None => own.unwrap() };
            match verify::verify(&source, &*policy) {
                Ok(v) => println!("{:34} {:12} {:?} fol {} {} {} {} reads {} {} {} {} unrec {} exact {} ms {} {:?} opens {} {:?}", path.file_name().unwrap().to_string_lossy(), v.policy, v.stream, v.folios.recorded, v.folios.replayed, v.folios.matched, v.folios.in_order, v.device_reads.recorded, v.device_reads.replayed, v.device_reads.matched, v.device_reads.in_order, v.unrecorded_reads, v.exact, source.settings.max_sectors_kb.value, source.settings.max_sectors_kb.origin, source.opens.len(), v.first_difference),
                Err(e) => println!("{e}"),
            }
        } else {
            let policies: Vec<Arc<dyn policy::Policy>> = specs.iter().map(|s| policy::parse(s).unwrap()).collect();
            for r in areplay::replay_all(&source, &policies, &areplay::Model::default()) { println!("{}: {} {:?} reads {:?} pages {:?} el {} wait {:?} lock {:?} win {}", path.display(), r.policy, r.folios, r.device_reads, r.pages, r.elapsed_ns, r.read_wait_ns, r.cache_lock, r.windows); }
        }
    }
    Ok(())
}
